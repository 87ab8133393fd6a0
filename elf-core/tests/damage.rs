//! Damaged files: reading ends, and does not panic.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod common;

use common::{everything, fixtures};

/// As many times every fixture is changed, by one to five bytes; fewer where an emulator is likely.
const CHANGES: u32 = if cfg!(target_arch = "x86_64") { 1000 } else { 50 };

/// A generator of pseudo-random numbers (xorshift64): the same ones every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

#[test]
fn every_truncation() {
    for (path, bytes) in fixtures() {
        let all = everything(&bytes);
        assert!(all > 0, "{}", path.display());
        // The tables are at the end: without the last byte something is missing.
        let step =
            bytes.len().div_ceil(if cfg!(target_arch = "x86_64") { 4096 } else { 256 }).max(1);
        for end in (0..bytes.len()).step_by(step) {
            everything(&bytes[..end]);
        }
    }
}

#[test]
fn random_bytes_changed() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (_, bytes) in fixtures() {
        let mut changed = bytes.clone();
        for _ in 0..CHANGES {
            for _ in 0..=random.below(4) {
                let values = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8];
                let (at, value) = (random.below(bytes.len()), values[random.below(values.len())]);
                changed[at] = value;
            }
            // Headers are where most of the paths branch off.
            if random.below(2) == 0 {
                changed[..64].copy_from_slice(&bytes[..64]);
            }
            everything(&changed);
            if random.below(8) == 0 {
                changed.copy_from_slice(&bytes);
            }
        }
    }
}
