//! Complaints without the numbers of sections and addresses, which are others after a change.

/// A line without numbers, be they written with letters or not.
pub(super) fn without_numbers(line: &str) -> String {
    let mut parts = line.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("0x");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    text.retain(|c| !c.is_ascii_digit());
    // numbers of sections are as wide as others
    text.replace("[ ", "[")
}

#[test]
fn numbers_are_the_same() {
    let lines = ["[ 9]: _DYNAMIC_ 0x14cf6c8 is not 0x1512000", "[33]: _DYNAMIC_ 0xa is not 0xb"];
    let [one, other] = lines.map(without_numbers);
    assert_eq!(one, other);
    assert_eq!(other, "[]: _DYNAMIC_ x is not x");
}
