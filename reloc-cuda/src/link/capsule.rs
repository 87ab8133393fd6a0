//! `.nv.capmerc.text.F`: the Mercury form of a function, as what it differs in from the machine code.
//!
//! Words: the section of the machine code, the version, the number of instructions. A bit for each instruction, set if it is
//! made of the machine code's. From the next multiple of 4 on a record for each of the others, in order; its first byte says how
//! long it is. A pair of bytes that is no record may stand before one: so many instructions of the machine code are passed over.
//! Found by comparing what nvlink 13.5 reads and writes.

use alloc::vec::Vec;
use core::iter;

/// The version that is known: of toolkit 13.5.
const VERSION: u32 = 0xc000_0001;
/// Bytes before the bits.
const HEAD: usize = 12;
/// Of the first byte: the record is of 4 bytes, or of 2.
const SHORT: u8 = 0x40;
const SHORTEST: u8 = 0x10;
/// Of the first byte: 16 bytes so many times. None in 2 bytes is a record.
const UNITS: u8 = 0xf;
/// Bytes of a record that has a constant, and where that is.
const LONG: usize = 32;
const CONSTANT: usize = 28;

/// What is not made of the machine code.
struct Record {
    /// Number of the instruction in the machine code.
    instruction: u64,
    at: usize,
    size: usize,
}

/// Whether all of a section is understood.
pub(super) fn is_known(section: &[u8]) -> bool {
    word(section, 4) == Some(VERSION) && records(section).is_some()
}

/// Writes what a relocation of the machine code, at `offset` there, resolves to: where the instruction has a record of its own.
pub(super) fn put(section: &mut [u8], offset: u64, value: u32) {
    let ours = |one: &Record| one.instruction == offset / 16 && one.size == LONG;
    let found = records(section).and_then(|all| all.into_iter().find(ours));
    let place = found.and_then(|record| record.at.checked_add(CONSTANT));
    put_word(section, place.unwrap_or(usize::MAX), value);
}

/// Writes the number of the machine code's section.
pub(super) fn put_section(section: &mut [u8], number: u32) {
    put_word(section, 0, number);
}

fn records(section: &[u8]) -> Option<Vec<Record>> {
    let count = usize::try_from(word(section, 8)?).ok()?;
    let end = HEAD.checked_add(count.div_ceil(8))?;
    let bits = section.get(HEAD..end)?.iter().copied();
    let bits = bits.flat_map(|byte| (0..8).map(move |bit| byte.unbounded_shr(bit) & 1 == 1));
    let (mut at, mut passed_over) = (end.checked_next_multiple_of(4)?, 0u64);
    let mut found = Vec::new();
    for (number, _) in (0u64..).zip(bits.take(count)).filter(|(_, is_code)| !is_code) {
        let pairs = iter::from_fn(|| {
            let first = *section.get(at)?;
            let is_pair = first & (SHORT | SHORTEST) == SHORT | SHORTEST && first & UNITS != 0;
            let count = section.get(at.checked_add(1)?).filter(|_| is_pair)?;
            at = at.checked_add(2)?;
            Some(u64::from(*count))
        });
        passed_over = pairs.fold(passed_over, u64::saturating_add);
        let size = match *section.get(at)? {
            first if first & (SHORT | SHORTEST) == SHORT | SHORTEST => 2,
            first if first & SHORT != 0 => 4,
            // of none the section does not end where it should
            first => usize::from(first & UNITS).checked_mul(16)?,
        };
        found.push(Record { instruction: number.checked_add(passed_over)?, at, size });
        at = at.checked_add(size)?;
    }
    (at == section.len()).then_some(found)
}

fn word(section: &[u8], at: usize) -> Option<u32> {
    section.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn put_word(section: &mut [u8], at: usize, value: u32) {
    if let Some(word) = section.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::{is_known, put, put_section};
    use alloc::{vec, vec::Vec};

    /// Ten instructions, of which the second, third and last have records: of 32 bytes, of 4, and behind a pair of 2.
    fn section() -> Vec<u8> {
        let mut bytes = vec![7, 0, 0, 0, 1, 0, 0, 0xc0, 10, 0, 0, 0, 0xf9, 0xfd, 0, 0];
        bytes.push(2);
        bytes.extend([0; 31]);
        bytes.extend([0x42, 0, 0, 0, 0x51, 3, 0x50, 8]);
        bytes
    }

    #[test]
    fn every_truncation_is_unknown() {
        assert!(is_known(&section()));
        for end in 0..section().len() {
            assert!(!is_known(&section()[..end]), "{end}");
        }
    }

    #[test]
    fn constants_are_written_where_a_record_has_them() {
        let mut bytes = section();
        put(&mut bytes, 0x20, 0xffff);
        put(&mut bytes, 0x90, 0xffff);
        put(&mut bytes, 0x1000, 0xffff);
        assert_eq!(bytes, section());
        put(&mut bytes, 0x14, 0x0102_0304);
        assert_eq!(bytes[44..48], [4, 3, 2, 1]);
    }

    #[test]
    fn the_number_of_the_code_is_the_first_word() {
        let mut bytes = section();
        put_section(&mut bytes, 0x0102_0304);
        assert_eq!((&bytes[..4], &bytes[4..]), (&[4, 3, 2, 1][..], &section()[4..]));
    }
}
