//! The names of extracted files: those that `cuobjdump` gives (measured, 13.5), but never the same twice.

use std::collections::HashSet;
use std::mem;

use fatbin::{EntryKind, Sm, Suffix};

/// Gives names to the entries of one file.
///
/// An entry with an identifier is named for the identifier's file, another for the host file and by its number among the
/// entries of its kind. The suffix `f` is in the name of PTX alone. Where `cuobjdump` would overwrite a file with another of the same name,
/// ours has its number in it; so for entries of several files.
#[derive(Debug, Default)]
pub struct Names {
    stem: String,
    counts: [usize; 3],
    given: HashSet<String>,
}

impl Names {
    /// For the entries of the file of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { stem: plain(stem(name)), counts: [0; 3], given: HashSet::new() }
    }

    /// For the entries of the next file: what was given to this one's is not given again.
    #[must_use]
    pub fn of_next(&mut self, name: &str) -> Self {
        Self { given: mem::take(&mut self.given), ..Self::new(name) }
    }

    /// The name of the next entry, or part of one.
    pub fn next(&mut self, kind: EntryKind, sm: Sm, identifier: &str) -> String {
        let [elf, ptx, other] = &mut self.counts;
        let count = match kind {
            EntryKind::Elf | EntryKind::Cubin => elf,
            EntryKind::Ptx => ptx,
            _ => other,
        };
        *count += 1;
        let suffix = match (sm.suffix, kind) {
            // of cubins, cuobjdump goes by the file itself, which does not record it
            (Suffix::Family, kind) if kind != EntryKind::Ptx => "",
            (suffix, _) => suffix.letter(),
        };
        let end = format!("sm_{}{suffix}.{}", sm.number, extension(kind));
        let numbered = |stem: &str| format!("{stem}.{count}.{end}");
        let name = if identifier.is_empty() {
            numbered(&self.stem)
        } else {
            let file = identifier.rsplit('/').next().unwrap_or(identifier);
            let stem = plain(stem(file));
            let name = format!("{stem}.{end}");
            if self.given.contains(&name) { numbered(&stem) } else { name }
        };
        self.unique(name)
    }

    /// The name, with a number behind its stem if it is given already.
    fn unique(&mut self, name: String) -> String {
        let (stem, end) = name.split_at(name.find(".sm_").unwrap_or(name.len()));
        let numbered = |number: usize| match number {
            1 => name.clone(),
            number => format!("{stem}-{number}{end}"),
        };
        let free = (1..).map(numbered).find(|name| !self.given.contains(name));
        let name = free.unwrap_or_default();
        self.given.insert(name.clone());
        name
    }
}

/// The most bytes of a name before its end, which file systems have room for.
const LONGEST: usize = 180;

/// A name that is plain: letters, digits and a few signs, that no shell or terminal takes for something else, and no option. Others
/// become `-`.
#[must_use]
pub fn plain(name: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '=' | '@' | ',');
    let mut plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    if plain.len() > LONGEST {
        plain.truncate(plain.floor_char_boundary(LONGEST));
    }
    if plain.starts_with('-') {
        plain.replace_range(..1, "_");
    }
    plain
}

/// What comes before the last dot.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// What files of a kind are called.
#[must_use]
pub const fn extension(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Elf | EntryKind::Cubin => "cubin",
        EntryKind::Ptx | EntryKind::RelocatablePtx => "ptx",
        EntryKind::Nvvm => "nvvm",
        EntryKind::TileIr => "tileir",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_cuobjdump_names_them() {
        let mut names = Names::new("libnvjpeg.so.13");
        let mut next =
            |kind, sm: &str, identifier| names.next(kind, sm.parse().unwrap(), identifier);
        assert_eq!(next(EntryKind::Elf, "75", ""), "libnvjpeg.so.1.sm_75.cubin");
        assert_eq!(next(EntryKind::Elf, "100f", ""), "libnvjpeg.so.2.sm_100.cubin");
        assert_eq!(next(EntryKind::Ptx, "90a", ""), "libnvjpeg.so.1.sm_90a.ptx");
        assert_eq!(next(EntryKind::Ptx, "120f", ""), "libnvjpeg.so.2.sm_120f.ptx");
        assert_eq!(next(EntryKind::Elf, "75", "/x/we ird.bar.cu"), "we-ird.bar.sm_75.cubin");
        assert_eq!(next(EntryKind::Elf, "75", "we ird.bar.cu"), "we-ird.bar.4.sm_75.cubin");
        assert_eq!(next(EntryKind::Elf, "75", "a/"), ".sm_75.cubin");
        assert_eq!(next(EntryKind::Elf, "75", "..\\$(x)\u{202e}\n.cu"), "..---x---.sm_75.cubin");
        assert_eq!(next(EntryKind::Elf, "75", "--help.cu"), "_-help.sm_75.cubin");
        assert_eq!(next(EntryKind::Elf, "75", &"ü".repeat(300)).len(), 180 + ".sm_75.cubin".len());
        assert_eq!(Names::new("noext").next(EntryKind::Ptx, Sm::new(52), ""), "noext.1.sm_52.ptx");
        let mut names = names.of_next("libnvjpeg.so.13");
        assert_eq!(names.next(EntryKind::Elf, Sm::new(75), ""), "libnvjpeg.so.1-2.sm_75.cubin");
    }
}
