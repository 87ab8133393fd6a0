//! Long texts in little room: where what fits of several is the same, that is shown in which they differ.

use std::collections::HashMap;

/// Stands for what there is no room for.
pub const MORE: char = '\u{2026}';
/// Letters that are shown before those that differ.
const BEFORE: usize = 6;
/// The least room in which a part of the middle says something.
const LEAST: usize = 24;

/// Of texts that are wider than `room` and begin with as much as fits of another: their start, and the part where they differ from
/// those that are most like them. Texts that are not ASCII are left to others.
#[must_use]
pub fn apart<'t>(
    texts: impl IntoIterator<Item = &'t str>,
    room: usize,
) -> HashMap<&'t str, String> {
    let is_long = |text: &&str| text.is_ascii() && text.len() > room && room >= LEAST;
    let mut sorted: Vec<_> = texts.into_iter().filter(is_long).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let same = |one: &str, other: &str| {
        one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
    };
    let pairs: Vec<usize> = sorted.array_windows().map(|[one, other]| same(one, other)).collect();
    let mut shown = HashMap::new();
    for (at, text) in sorted.iter().enumerate() {
        let behind = pairs.get(at).copied().unwrap_or(0);
        let before = at.checked_sub(1).and_then(|at| pairs.get(at)).copied().unwrap_or(0);
        let equal = before.max(behind);
        if equal.saturating_add(1) < room {
            continue; // as much as fits tells it from others
        }
        let head = room / 3;
        let start = equal.saturating_sub(BEFORE).max(head.saturating_add(1));
        let rest = room.saturating_sub(head + 1);
        let part = text.get(start..).unwrap_or_default();
        let mut line = format!("{}{MORE}", text.get(..head).unwrap_or_default());
        match part.get(..rest.saturating_sub(1)).filter(|_| part.len() > rest) {
            Some(part) => line.extend(part.chars().chain([MORE])),
            None => {
                // with room to spare more of the end is shown
                let start = text.len().saturating_sub(rest).max(head);
                line.push_str(text.get(start..).unwrap_or_default());
            }
        }
        shown.insert(*text, line);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_differ_where_they_are_shown() {
        let long = |end: &str| format!("void run<{}{end}", "float, int, ".repeat(8));
        let texts = [
            long("A>(int, int, int, int, int, int, int, int)"),
            long("B>(int)"),
            long("C>(int, long)"),
        ];
        let short =
            ["one", "a name that is longer than there is room for, and alone with its start"];
        let all = texts.iter().map(String::as_str).chain(short);
        let shown = apart(all, 30);
        let of = |text: &String| shown[text.as_str()].clone();
        assert_eq!(
            texts.each_ref().map(of),
            [
                "void run<f\u{2026} int, A>(int, int,\u{2026}",
                "void run<f\u{2026}float, int, B>(int)",
                "void run<f\u{2026} int, C>(int, long)",
            ]
        );
        assert!(shown.values().all(|text| text.chars().count() <= 30) && shown.len() == 3);
        assert!(apart(["größe".repeat(20).as_str(), "größe".repeat(21).as_str()], 30).is_empty());
    }
}
