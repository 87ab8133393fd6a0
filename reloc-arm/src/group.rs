//! Group relocations: a value in several instructions, eight bits at a time from the highest on (AAELF32, "Group relocations"),
//! and the offsets of loads, which have a sign of their own.

use crate::field::signed;
use elf_core::{Field, Unencodable};

/// Instruction `group` of those that add or subtract a value. The last one must leave nothing.
pub(crate) const fn alu(group: u8, is_last: bool) -> Field {
    let field = Field::data(4, &[]).decoded(held_addition).with_argument(group);
    field.encoded(if is_last { last_addition } else { addition })
}

/// The load of a word or byte behind so many additions.
pub(crate) const fn ldr(groups: u8) -> Field {
    Field::data(4, &[]).encoded(load).decoded(held_load).with_argument(groups)
}

/// The same of a halfword, doubleword or with a sign.
pub(crate) const fn ldrs(groups: u8) -> Field {
    Field::data(4, &[]).encoded(short_load).decoded(held_short_load).with_argument(groups)
}

/// The same of a coprocessor.
pub(crate) const fn ldc(groups: u8) -> Field {
    Field::data(4, &[])
        .encoded(coprocessor_load)
        .decoded(held_coprocessor_load)
        .with_argument(groups)
}

/// The load of a literal of Thumb-2 code, of which U and the offset are where A32 code has them.
pub(crate) const T32_LOAD: Field = Field::halfwords(&[]).encoded(load).decoded(held_load);

/// What is left of a value when `groups` instructions have had their eight bits.
#[inline(never)]
const fn rest(value: i64, groups: u8) -> u32 {
    residual(size_of(value), groups)
}

/// What is left of `size` when `groups` instructions have had their eight bits.
const fn residual(size: u32, groups: u8) -> u32 {
    let (mut rest, mut done) = (size, 0u8);
    while done < groups {
        rest &= !0xffu32.unbounded_shl(shift(rest));
        done = done.wrapping_add(1);
    }
    rest
}

/// By how much the highest eight bits, counted from an even one, are shifted.
const fn shift(rest: u32) -> u32 {
    // the smallest processors have no instruction that counts zeros
    let mut shift = 0u32;
    while rest.unbounded_shr(shift) > 0xff {
        shift = shift.wrapping_add(2);
    }
    shift
}

/// Of the value: addresses of 4 bytes have no larger ones.
const fn size_of(value: i64) -> u32 {
    value.unsigned_abs() as u32
}

/// Bit 23: the offset is added.
const UP: u64 = 1 << 23;
const ADD: u64 = 0x0280_0000;
const SUB: u64 = 0x0240_0000;
/// Of data processing with an immediate value: the operation.
const OPERATION: u64 = 0x0fe0_0000;

const fn addition(word: u64, value: i64, groups: u8) -> Result<u64, Unencodable> {
    if !matches!(word & OPERATION, ADD | SUB) {
        return Err(Unencodable::Instruction);
    }
    let rest = rest(value, groups);
    let shift = shift(rest);
    let turn = 32u32.wrapping_sub(shift) >> 1 & 0xf;
    let immediate = (rest.unbounded_shr(shift) & 0xff | turn << 8) as u64;
    Ok(word & !(OPERATION | 0xfff) | if value < 0 { SUB } else { ADD } | immediate)
}

const fn last_addition(word: u64, value: i64, groups: u8) -> Result<u64, Unencodable> {
    if rest(value, groups.wrapping_add(1)) != 0 {
        return Err(Unencodable::Value);
    }
    addition(word, value, groups)
}

const fn held_addition(word: u64) -> Option<i64> {
    let value = (word as u32 & 0xff).rotate_right((word >> 7 & 0x1e) as u32);
    match word & OPERATION {
        ADD => Some(signed(value as u64, 32)),
        SUB => Some(signed((value as u64).wrapping_neg(), 32)),
        _ => None,
    }
}

const fn sign(word: u64, value: i64) -> u64 {
    if value < 0 { word & !UP } else { word | UP }
}

const fn with_sign(word: u64, size: u64) -> Option<i64> {
    let size = size.cast_signed();
    Some(if word & UP == 0 { size.wrapping_neg() } else { size })
}

const fn load(word: u64, value: i64, groups: u8) -> Result<u64, Unencodable> {
    match rest(value, groups) {
        rest @ ..=0xfff => Ok(sign(word, value) & !0xfff | rest as u64),
        _ => Err(Unencodable::Value),
    }
}

const fn held_load(word: u64) -> Option<i64> {
    with_sign(word, word & 0xfff)
}

const fn short_load(word: u64, value: i64, groups: u8) -> Result<u64, Unencodable> {
    match rest(value, groups) {
        rest @ ..=0xff => {
            let parts = (rest << 4 & 0xf00 | rest & 0xf) as u64;
            Ok(sign(word, value) & !0xf0f | parts)
        }
        _ => Err(Unencodable::Value),
    }
}

const fn held_short_load(word: u64) -> Option<i64> {
    with_sign(word, word >> 4 & 0xf0 | word & 0xf)
}

const fn coprocessor_load(word: u64, value: i64, groups: u8) -> Result<u64, Unencodable> {
    match rest(value, groups) {
        rest @ ..=0x3ff if rest & 3 == 0 => Ok(sign(word, value) & !0xff | (rest >> 2) as u64),
        _ => Err(Unencodable::Value),
    }
}

const fn held_coprocessor_load(word: u64) -> Option<i64> {
    with_sign(word, (word & 0xff) << 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_as_the_abi_has_them() {
        // 0x12345678 in four: 0x12000000, 0x00344000, 0x00001640, 0x00000038
        let value = 0x1234_5678;
        let rests = [0x1234_5678, 0x0034_5678, 0x0000_1678, 0x38, 0];
        for (groups, rest) in (0..).zip(rests) {
            assert_eq!(residual(value, groups), rest, "{groups}");
        }
        assert_eq!(residual(0xff00_0000, 1), 0);
        assert_eq!(residual(0x0000_03fc, 1), 0);
        assert_eq!(residual(0x0000_01fe, 1), 2);
        assert_eq!(residual(u32::MAX, 4), 0);
        assert_eq!(residual(0x101, 1), 1);
    }

    #[test]
    fn additions_hold_what_they_are_given() {
        const ADD_R0_PC: u64 = 0xe28f_0000;
        for value in [0, 0xff, 0x100, 0x3fc, 0xff0, 0x3fc0_0000, 0xff00_0000, 0xf000_0000] {
            for value in [value, -value] {
                let word = last_addition(ADD_R0_PC, value, 0).unwrap();
                let held = held_addition(word).unwrap();
                assert_eq!(held as u32, value as u32, "{value:#x} {word:#x}");
                assert_eq!(word >> 28, 0xe);
            }
        }
        assert_eq!(last_addition(ADD_R0_PC, 0x101, 0), Err(Unencodable::Value));
        assert_eq!(addition(ADD_R0_PC, 0x101, 0), Ok(0xe28f_0f40));
        assert_eq!(addition(ADD_R0_PC, -0x101, 1), Ok(0xe24f_0001));
        assert_eq!(addition(0xe59f_0000, 0, 0), Err(Unencodable::Instruction));
    }
}
