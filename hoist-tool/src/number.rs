//! Numbers as the command line takes them.

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

#[cfg(test)]
mod tests {
    use super::*;

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
