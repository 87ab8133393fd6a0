//! Numbers as the command line takes them, and as people read them.

/// A number: decimal, or hexadecimal after `0x`.
///
/// # Errors
/// If it is none, or needs more than 64 bits.
pub fn number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|error| error.to_string())
}

/// A power of two, written as a [`number`].
///
/// # Errors
/// If it is none.
pub fn power_of_two(text: &str) -> Result<u64, String> {
    let number = number(text)?;
    if number.is_power_of_two() { Ok(number) } else { Err(String::from("no power of two")) }
}

/// A number of bytes as people read it.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// By how much something became smaller or larger: `, 62.1 % smaller`; nothing where the tenth does not show it.
#[must_use]
pub fn smaller(before: u64, after: u64) -> String {
    let part = before.abs_diff(after) as f64 * 100.0 / before.max(1) as f64;
    let what = if after < before { "smaller" } else { "larger" };
    if part < 0.05 { String::new() } else { format!(", {part:.1} % {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([999, 1000, 12_345_678].map(size), ["999 B", "1.0 kB", "12.3 MB"]);
        assert_eq!(smaller(5_313_609, 2_012_182), ", 62.1 % smaller");
        assert_eq!(smaller(1000, 1533), ", 53.3 % larger");
        assert_eq!((smaller(7, 7), smaller(10_000, 9999), smaller(0, 0)), <_>::default());
    }

    #[test]
    fn numbers() {
        assert_eq!(number("4096"), Ok(4096));
        assert_eq!(number("0xffffffffffffffff"), Ok(u64::MAX));
        assert!(
            number("0x10000000000000000").is_err()
                && number("ten").is_err()
                && number("-1").is_err()
        );
        assert_eq!(power_of_two("0x80"), Ok(128));
        assert!(power_of_two("0").is_err() && power_of_two("24").is_err());
    }
}
