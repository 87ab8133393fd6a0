//! SHA-256 of files.

use sha2::{Digest as _, Sha256};

use crate::mapped::Mapped;

/// The digest of a file, of which little is in memory at a time.
#[must_use]
pub fn bytes(file: &Mapped) -> Vec<u8> {
    const PIECE: usize = 8 << 20;
    let mut digest = Sha256::new();
    for (at, piece) in (0_u64..).step_by(PIECE).zip(file.bytes().chunks(PIECE)) {
        digest.update(piece);
        file.done_with(at..at.saturating_add(piece.len() as u64));
    }
    digest.finalize().to_vec()
}

/// The same in hexadecimal.
#[must_use]
pub fn of(file: &Mapped) -> String {
    hexadecimal(&bytes(file))
}

/// The digest of bytes, in hexadecimal.
#[must_use]
pub fn of_slice(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A digest in hexadecimal as bytes: those that the text has.
#[must_use]
pub fn raw(hexadecimal: &str) -> Vec<u8> {
    let pair = |at: usize| hexadecimal.get(at..at.saturating_add(2));
    let byte = |at| u8::from_str_radix(pair(at)?, 16).ok();
    (0..hexadecimal.len()).step_by(2).filter_map(byte).collect()
}
