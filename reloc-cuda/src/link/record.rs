//! Attributes as bytes, for the file that is made.

use alloc::vec::Vec;
use nvinfo::{Attribute, AttributeValue};

/// A record as bytes.
pub(super) type Bytes = Vec<u8>;

/// A record whose value is words (`EIFMT_SVAL`).
pub(super) fn words(attribute: u8, words: &[u32]) -> Bytes {
    let size = u16::try_from(words.len().saturating_mul(4)).unwrap_or(u16::MAX);
    let mut bytes = Vec::from([4, attribute]);
    bytes.extend(size.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// A record whose value is a byte (`EIFMT_BVAL`).
pub(super) fn byte(attribute: u8, value: u32) -> Bytes {
    Vec::from([2, attribute, value as u8, 0])
}

/// A record as it was.
pub(super) fn raw(row: &Attribute<'_>) -> Bytes {
    match row.value {
        AttributeValue::None(value) => head(1, row.number, value),
        AttributeValue::Byte(low, high) => Vec::from([2, row.number, low, high]),
        AttributeValue::Half(value) => head(3, row.number, value),
        AttributeValue::Bytes(value) => {
            let mut bytes = head(4, row.number, value.len() as u16);
            bytes.extend_from_slice(value);
            bytes
        }
    }
}

/// A record whose value is a half (`EIFMT_HVAL`), or that has none (`EIFMT_NVAL`).
pub(super) fn head(format: u8, attribute: u8, value: u16) -> Bytes {
    let [low, high] = value.to_le_bytes();
    Vec::from([format, attribute, low, high])
}
