//! Fields: the bits of words that take a value, and how the addend of a `REL` relocation is read from them.
//!
//! An A32 instruction has the byte order of the file, a Thumb instruction of 32 bits is two halfwords, the first of which is the upper
//! one of the words here.

use elf_core::{Bits, Field, Unencodable};

const fn bits(at: u8, width: u8) -> Bits {
    Bits::new(at, width)
}

const fn a32(parts: &'static [Bits]) -> Field {
    Field::data(4, parts)
}

const fn t16(parts: &'static [Bits]) -> Field {
    Field::data(2, parts)
}

const fn t32(parts: &'static [Bits]) -> Field {
    Field::halfwords(parts)
}

pub(crate) const DATA31: Field = Field::data(4, &[bits(0, 31)]);

/// imm24 of B and BL, and H of BLX.
pub(crate) const A32_BRANCH: Field = a32(&[bits(0, 24).shr(2)]).decoded(a32_branch);
/// S, J1, J2, imm10 and imm11 of B.W, BL and BLX, J1 and J2 before they are xor-ed with S.
pub(crate) const T32_BRANCH: Field = t32(&[
    bits(0, 11).shr(1),
    bits(11, 1).shr(22),
    bits(13, 1).shr(23),
    bits(16, 10).shr(12),
    bits(26, 1).shr(24),
])
.decoded(t32_branch);
/// S, J1, J2, imm6 and imm11 of B<c>.W.
pub(crate) const T32_BRANCH19: Field = t32(&[
    bits(0, 11).shr(1),
    bits(11, 1).shr(19),
    bits(13, 1).shr(18),
    bits(16, 6).shr(12),
    bits(26, 1).shr(20),
]);
pub(crate) const T16_BRANCH11: Field = t16(&[bits(0, 11).scaled(1)]);
pub(crate) const T16_BRANCH8: Field = t16(&[bits(0, 8).scaled(1)]);
/// i and imm5 of CBZ and CBNZ.
pub(crate) const T16_BRANCH6: Field =
    t16(&[bits(3, 5).scaled(1), bits(9, 1).shr(6)]).decoded(t16_branch6);

/// imm4 and imm12 of MOVW.
pub(crate) const A32_MOVW: Field = a32(&[bits(0, 12), bits(16, 4).shr(12)]);
/// imm4 and imm12 of MOVT. The addend has no more bits than that of its MOVW, and is not shifted.
pub(crate) const A32_MOVT: Field =
    a32(&[bits(0, 12).shr(16), bits(16, 4).shr(28)]).decoded(a32_movw);
/// imm4, i, imm3 and imm8 of MOVW.
pub(crate) const T32_MOVW: Field =
    t32(&[bits(0, 8), bits(12, 3).shr(8), bits(26, 1).shr(11), bits(16, 4).shr(12)]);
/// imm4, i, imm3 and imm8 of MOVT.
pub(crate) const T32_MOVT: Field =
    t32(&[bits(0, 8).shr(16), bits(12, 3).shr(24), bits(26, 1).shr(27), bits(16, 4).shr(28)])
        .decoded(t32_movw);

/// imm8 of MOVS and ADDS, which takes one byte of the value.
pub(crate) const T16_BYTE0: Field = t16(&[bits(0, 8)]).decoded(t16_byte);
pub(crate) const T16_BYTE1: Field = t16(&[bits(0, 8).shr(8)]).decoded(t16_byte);
pub(crate) const T16_BYTE2: Field = t16(&[bits(0, 8).shr(16)]).decoded(t16_byte);
pub(crate) const T16_BYTE3: Field = t16(&[bits(0, 8).shr(24)]).decoded(t16_byte);

/// imm8 of LDR and ADR by the program counter.
pub(crate) const T16_LITERAL: Field = t16(&[bits(0, 8).scaled(2)]).decoded(t16_literal);
/// imm5 of LDR and STR.
pub(crate) const T16_OFFSET5: Field = t16(&[bits(6, 5).scaled(2)]).decoded(t16_offset5);
/// imm12 of LDR, which is not negative.
pub(crate) const T32_OFFSET12: Field = t32(&[bits(0, 12)]).decoded(t32_offset12);
/// i, imm3 and imm8 of ADR.W, which adds or subtracts.
pub(crate) const T32_ADR: Field = t32(&[bits(0, 8), bits(12, 3).shr(8), bits(26, 1).shr(11)])
    .encoded(put_t32_adr)
    .decoded(t32_adr);

/// Of the branches of Armv8.1-M that are hints: immA, immB and immC.
pub(crate) const BF16: Field = t32(&[bits(1, 10).shr(2), bits(11, 1).shr(1), bits(16, 5).shr(12)])
    .encoded(hint)
    .with_argument(17)
    .decoded(held_hint::<17>);
pub(crate) const BF12: Field = t32(&[bits(1, 10).shr(2), bits(11, 1).shr(1), bits(16, 1).shr(12)])
    .encoded(hint)
    .with_argument(13)
    .decoded(held_hint::<13>);
pub(crate) const BF18: Field = t32(&[bits(1, 10).shr(2), bits(11, 1).shr(1), bits(16, 7).shr(12)])
    .encoded(hint)
    .with_argument(19)
    .decoded(held_hint::<19>);

/// `value` as a signed number of so many bits.
pub(crate) const fn signed(value: u64, bits: u8) -> i64 {
    let unused = 64u8.saturating_sub(bits) as u32;
    value.unbounded_shl(unused).cast_signed().unbounded_shr(unused)
}

/// Whether it is one already.
pub(crate) const fn is_signed(value: i64, bits: u8) -> bool {
    signed(value.cast_unsigned(), bits) == value
}

const fn a32_branch(word: u64) -> Option<i64> {
    let half = if is_blx(word) { word >> 23 & 2 } else { 0 };
    Some(signed(word << 2 | half, 26))
}

/// Whether it is BLX to an immediate, which has no condition.
pub(crate) const fn is_blx(word: u64) -> bool {
    word & 0xfe00_0000 == 0xfa00_0000
}

const fn t32_branch(word: u64) -> Option<i64> {
    // I = !(J ^ S)
    let word = exchange_j(word);
    let value = (word & 0x7ff) << 1
        | (word >> 11 & 1) << 22
        | (word >> 13 & 1) << 23
        | (word >> 16 & 0x3ff) << 12
        | (word >> 26 & 1) << 24;
    Some(signed(value, 25))
}

/// I1 and I2 for J1 and J2 and back: inverted, unless S is set.
pub(crate) const fn exchange_j(word: u64) -> u64 {
    if word & 1 << 26 == 0 { word ^ 0x2800 } else { word }
}

const fn t16_branch6(word: u64) -> Option<i64> {
    let held = (word >> 3 & 0x1f) << 1 | (word >> 9 & 1) << 6;
    Some(((held.wrapping_add(4) & 0x7f).cast_signed()).wrapping_sub(4))
}

const fn a32_movw(word: u64) -> Option<i64> {
    Some(signed(word >> 4 & 0xf000 | word & 0xfff, 16))
}

const fn t32_movw(word: u64) -> Option<i64> {
    let held = word & 0xff | word >> 4 & 0x700 | word >> 15 & 0x800 | word >> 4 & 0xf000;
    Some(signed(held, 16))
}

const fn t16_byte(word: u64) -> Option<i64> {
    Some((word & 0xff).cast_signed())
}

const fn t16_literal(word: u64) -> Option<i64> {
    let held = (word & 0xff) << 2;
    Some((held.wrapping_add(4) & 0x3ff).cast_signed().wrapping_sub(4))
}

const fn t16_offset5(word: u64) -> Option<i64> {
    Some((word >> 4 & 0x7c).cast_signed())
}

const fn t32_offset12(word: u64) -> Option<i64> {
    Some((word & 0xfff).cast_signed())
}

/// Bits that are set where ADR.W subtracts.
const T32_SUB: u64 = 0x00a0_0000;

const fn t32_adr(word: u64) -> Option<i64> {
    let held = (word & 0xff | word >> 4 & 0x700 | word >> 15 & 0x800).cast_signed();
    Some(if word & T32_SUB == 0 { held } else { held.wrapping_neg() })
}

const fn put_t32_adr(word: u64, value: i64, _: u8) -> Result<u64, Unencodable> {
    let size = value.unsigned_abs();
    if size > 0xfff {
        return Err(Unencodable::Value);
    }
    let sign = if value < 0 { T32_SUB } else { 0 };
    let part = size & 0xff | (size & 0x700) << 4 | (size & 0x800) << 15;
    Ok(word & !(T32_SUB | 0x0400_70ff) | sign | part)
}

/// The addend of such a branch has bit 0 set.
const fn held_hint<const BITS: u8>(word: u64) -> Option<i64> {
    let held = 1 | word << 1 & 0xffc | word >> 10 & 2 | word >> 4 & 0x7f000;
    Some(signed(held, BITS))
}

/// A branch that is a hint: where it does not reach, nothing is right, too.
#[expect(clippy::unnecessary_wraps, reason = "an encoder may fail")]
const fn hint(word: u64, value: i64, bits: u8) -> Result<u64, Unencodable> {
    const NOP_W: u64 = 0xf3af_8000;
    Ok(if is_signed(value, bits) { word } else { NOP_W })
}
