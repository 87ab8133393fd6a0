//! The end of a string and its hash, found together: names of archives are many, and each is read once.

use crate::hash::{START, end, mix};

/// What one look at the bytes of a string finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HashedString {
    /// Number of bytes before the NUL.
    pub(super) length: usize,
    /// The [`hash`](crate::hash::hash) of these.
    pub(super) hash: u64,
    /// Whether an `@` may be among them.
    pub(super) may_have_version: bool,
}

/// Finds the end of the string that `bytes` begin with, and its hash. `None` if there is no NUL.
pub(super) fn hash_string(bytes: &[u8]) -> Option<HashedString> {
    let (mut hash, mut marks, mut length) = (START, 0, 0usize);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let nul = zeros(word);
        marks |= zeros(word ^ AT_SIGNS);
        if nul != 0 {
            let before = nul.trailing_zeros() / 8;
            let tail = word & !u64::MAX.unbounded_shl(before * 8);
            length = length.saturating_add(before as usize);
            return Some(HashedString {
                length,
                hash: end(hash, tail, length),
                may_have_version: marks != 0,
            });
        }
        hash = mix(hash ^ word);
        length = length.saturating_add(8);
    }
    let before = rest.iter().position(|&byte| byte == 0)?;
    let tail = rest.get(..before)?;
    let word = tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    length = length.saturating_add(before);
    Some(HashedString {
        length,
        hash: end(hash, word, length),
        may_have_version: marks != 0 || tail.contains(&b'@'),
    })
}

/// `@` eight times.
const AT_SIGNS: u64 = u64::from_le_bytes([b'@'; 8]);

/// The highest bit of the first byte that is 0, perhaps those of others behind it; 0 if there is none.
const fn zeros(word: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([1; 8]);
    word.wrapping_sub(LOW) & !word & LOW << 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash;

    extern crate std;

    #[test]
    fn a_string_has_the_hash_of_its_bytes() {
        let text: std::vec::Vec<u8> = (0..100).map(|at| b'a' + at % 26).collect();
        for length in 0..40 {
            for behind in 0..20 {
                for mark in 0..=length {
                    let mut bytes = text[..length].to_vec();
                    if let Some(byte) = bytes.get_mut(mark) {
                        *byte = b'@';
                    }
                    let hash = hash(&bytes);
                    assert_eq!(hash_string(&bytes), None);
                    bytes.push(0);
                    bytes.extend(text.iter().take(behind));
                    let found = hash_string(&bytes).unwrap();
                    assert_eq!((found.length, found.hash), (length, hash));
                    assert!(found.may_have_version || mark == length, "{bytes:?}");
                }
            }
        }
        let many = hash_string(b"_ZN4llvm6memcpyEv\0a@b").unwrap();
        assert!(!many.may_have_version);
    }
}
