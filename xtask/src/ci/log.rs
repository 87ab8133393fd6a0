//! What matters of what a step prints.

/// Lines shown behind one that tells of a failure.
const CONTEXT: usize = 12;
/// Lines shown of the end.
const END: usize = 15;
/// Lines and characters of each shown at most: the end of a build's output is what is read.
const LINES: usize = 150;
/// Lines that name what failed, at most.
const NAMES: usize = 30;
const WIDTH: usize = 300;

/// The lines of `text` that tell what failed.
pub(super) fn telling(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = vec![false; lines.len()];
    let mark = |shown: &mut Vec<bool>, from: usize, count: usize| {
        shown.iter_mut().skip(from).take(count).for_each(|shown| *shown = true);
    };
    // what the harness of tests says of those that failed stands between "failures:" and its closing line
    let has_tests = lines.contains(&"failures:");
    let mut of_tests = false;
    for (at, line) in lines.iter().enumerate() {
        of_tests = (of_tests || *line == "failures:") && !line.starts_with("test result:");
        if of_tests || line.starts_with("skipped, and should not be") {
            mark(&mut shown, at, 1);
        } else if !has_tests && (line.starts_with("error") || line.contains("panicked at")) {
            mark(&mut shown, at, CONTEXT);
        } else if line.contains("FAILED") || line.contains("| FAIL") {
            mark(&mut shown, at, 1);
        }
    }
    mark(&mut shown, lines.len().saturating_sub(END), END);
    let chosen: Vec<&str> =
        lines.iter().zip(shown).filter_map(|(line, shown)| shown.then_some(*line)).collect();
    let left_out = chosen.len().saturating_sub(LINES);
    let mut result = String::new();
    if left_out > 0 {
        result.push_str(&format!("({left_out} lines like these before)\n"));
    }
    for line in chosen.iter().skip(left_out) {
        result.extend(line.chars().take(WIDTH));
        result.push('\n');
    }
    result
}

/// The lines of `text` that name what failed, without its reasons: tests, cells of a table, messages of compilers.
pub(super) fn failed(text: &str) -> String {
    let named = |line: &&str| line.contains("FAILED") || line.starts_with("error");
    let mut result = String::new();
    for line in text.lines().filter(named).take(NAMES) {
        result.extend(line.chars().take(WIDTH));
        result.push('\n');
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_found_among_much_else() {
        let noise = "test a ... ok\n".repeat(1000);
        let text = format!(
            "{noise}failures:\n\n---- b stdout ----\nleft 1, right 2\n\nfailures:\n    b\n\ntest result: FAILED. 1 failed\n{noise}",
        );
        let shown = telling(&text);
        assert!(shown.contains("left 1, right 2"), "{shown}");
        assert!(shown.lines().count() < 40, "{shown}");
    }

    #[test]
    fn an_error_is_shown_with_what_follows() {
        let noise = "   Compiling something\n".repeat(100);
        let shown = telling(&format!("{noise}error[E0308]: mismatched types\n --> a.rs\n{noise}"));
        assert!(shown.contains(" --> a.rs"), "{shown}");
    }

    #[test]
    fn what_failed_is_named() {
        let text = "test a ... ok\ntest b ... FAILED\n| armv7 | c | none | FAILED: x | 1.0 |\n";
        assert_eq!(failed(text).lines().count(), 2);
    }

    #[test]
    fn no_more_is_shown_than_is_read() {
        let shown = telling(&"error: x\n".repeat(10_000));
        assert!(shown.starts_with("(9850 lines"));
        assert_eq!(shown.lines().count(), LINES + 1);
    }
}
