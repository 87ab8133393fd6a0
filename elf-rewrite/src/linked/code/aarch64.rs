//! References of AArch64: `ADR`, literals, and `ADRP`, which gives a page to which later instructions add.
//!
//! Where a page holds bytes that move and others, the register with its address is followed along all paths until it gets another
//! value. What is done with it other than adding an offset is taken for a reference.

use std::collections::HashSet;

use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::super::moves::{Move, moved};
use super::extents::Extents;
use super::reference::{Code, Referring};

const PAGE: u64 = 0x1000;
/// The most instructions after an `ADRP` that are looked at.
const STEPS: usize = 1 << 14;
/// Registers up to this, and the link register, belong to whom is called (AAPCS64, "General-purpose Registers").
const LAST_OF_CALLEE: u32 = 18;
const LINK: u32 = 30;

/// The first instruction that refers to a region that moves.
pub(super) fn find<'m>(
    code: Code<'_>,
    extents: &Extents,
    moves: &'m [Move],
) -> Option<Referring<'m>> {
    let mut literals = code.bytes.windows(8).step_by(4).zip((code.address..).step_by(4));
    let literal = |(bytes, address): (&[u8], u64)| {
        let to = moved(moves, u64::from_le_bytes(*bytes.first_chunk()?))?;
        Some(Referring { address, text: String::from("an address among the code"), to })
    };
    let at_fixed_address = code.fixed.then(|| literals.find_map(literal)).flatten();
    at_fixed_address.or_else(|| {
        let (words, _) = code.bytes.as_chunks();
        let mut all = words.iter().map(|word| u32::from_le_bytes(*word)).zip(0..);
        // a table among the code is none
        let is_code = |index: u64| {
            extents.data_at(code.address.wrapping_add(index.wrapping_mul(4))).is_none()
        };
        all.find_map(|(word, index)| refers(&code, word, index, moves).filter(|_| is_code(index)))
    })
}

/// Whether instruction `index` refers to a region that moves, and how.
fn refers<'m>(code: &Code<'_>, word: u32, index: u64, moves: &'m [Move]) -> Option<Referring<'m>> {
    let address = code.address.wrapping_add(index.wrapping_mul(4));
    let of = |to| Referring { address, text: text(word), to };
    if is(word, 0x9f00_0000, 0x9000_0000) {
        let page = (address & !(PAGE - 1)).wrapping_add_signed(page_offset(word) << 12);
        let on_page = |one: &&Move| {
            one.old < page.saturating_add(PAGE) && page < one.old.saturating_add(one.size)
        };
        let one = moves.iter().find(on_page)?;
        let ends = page.saturating_add(PAGE);
        if one.old <= page && ends <= one.old.saturating_add(one.size) {
            return Some(of(one));
        }
        let shared = Shared { code, register: field(word, 0), page, moves, one };
        return shared.follow(index.saturating_add(1));
    }
    let target = if is(word, 0x9f00_0000, 0x1000_0000) {
        address.wrapping_add_signed(page_offset(word))
    } else if is(word, 0x3b00_0000, 0x1800_0000) {
        address.wrapping_add_signed(distance(word >> 5, 19))
    } else {
        return None;
    };
    moved(moves, target).map(of)
}

/// A register that holds the address of a page of which a part moves.
struct Shared<'c, 'm> {
    code: &'c Code<'c>,
    register: u32,
    page: u64,
    moves: &'m [Move],
    /// What moves.
    one: &'m Move,
}

/// What an instruction does with the register.
#[derive(Debug, PartialEq, Eq)]
enum Use {
    /// Nothing.
    None,
    /// Gives it another value.
    Kills,
    /// Adds an offset to it; `kills` if its value is another then.
    Offset { offset: u64, kills: bool },
    /// What is not understood.
    Unclear,
}

/// Where control goes.
#[derive(Debug, PartialEq, Eq)]
enum Flow {
    Next,
    /// Away, by so many bytes.
    To(i64),
    /// Away or on.
    Either(i64),
    /// To a function, and back.
    Call,
    Return,
    Unknown,
}

impl<'m> Shared<'_, 'm> {
    /// Follows the register from instruction `start` on; gives the instruction that refers to what moves, or may do so.
    fn follow(&self, start: u64) -> Option<Referring<'m>> {
        let (mut paths, mut seen) = (vec![start], HashSet::new());
        while let Some(index) = paths.pop() {
            if !seen.insert(index) {
                continue;
            }
            let word = self.word(index);
            let address = self.code.address.wrapping_add(index.wrapping_mul(4));
            let Some(word) = word.filter(|_| seen.len() < STEPS) else {
                let text = String::from("where a page's address is followed to");
                return Some(Referring { address, text, to: self.one });
            };
            let refers = |to| Some(Referring { address, text: text(word), to });
            match usage(word, self.register) {
                Use::None => {}
                Use::Kills => continue,
                Use::Unclear => return refers(self.one),
                Use::Offset { offset, kills } => {
                    if let Some(to) = moved(self.moves, self.page.wrapping_add(offset)) {
                        return refers(to);
                    }
                    if kills {
                        continue;
                    }
                }
            }
            let next = index.wrapping_add(1);
            let to = |distance: i64| index.wrapping_add_signed(distance >> 2);
            match flow(word) {
                Flow::Next => paths.push(next),
                Flow::To(distance) => paths.push(to(distance)),
                Flow::Either(distance) => paths.extend([next, to(distance)]),
                Flow::Call if self.register <= LAST_OF_CALLEE || self.register == LINK => {}
                Flow::Call => paths.push(next),
                Flow::Return => {}
                Flow::Unknown => return refers(self.one),
            }
        }
        None
    }

    fn word(&self, index: u64) -> Option<u32> {
        let at = usize::try_from(index.checked_mul(4)?).ok()?;
        Some(u32::from_le_bytes(*self.code.bytes.get(at..)?.first_chunk()?))
    }
}

/// What an instruction does with a register (Arm ARM, C4.1 "A64 instruction set encoding").
fn usage(word: u32, register: u32) -> Use {
    let [d, n, m, a] = [0, 5, 16, 10].map(|at| field(word, at) == register);
    let offset = |offset, kills| Use::Offset { offset, kills };
    if is(word, 0x7f80_0000, 0x1100_0000) && n {
        // ADD (immediate)
        let shift = if word & 1 << 22 == 0 { 0 } else { 12 };
        return offset(u64::from(word >> 10 & 0xfff) << shift, d);
    }
    // of a load or store: a general register, which it reads or writes
    let is_vector = word & 1 << 26 != 0;
    let prefetches = is(word, 0xc400_0000, 0xc000_0000) && is(word, 0x00c0_0000, 0x0080_0000);
    let d_or = |loads: bool, d: bool| match d && !is_vector && !prefetches {
        false => Use::None,
        true if loads => Use::Kills,
        true => Use::Unclear,
    };
    let loads = word & 3 << 22 != 0;
    if is(word, 0x3b00_0000, 0x3900_0000) {
        // load or store, unsigned offset
        let size = word >> 30 | (word >> 21 & word >> 24 & 4);
        return match d_or(loads, d) {
            other if !n => other,
            Use::Unclear => Use::Unclear,
            other => offset(u64::from(word >> 10 & 0xfff) << size, other == Use::Kills),
        };
    }
    if is(word, 0x1f00_0000, 0x1000_0000) || is(word, 0x1f80_0000, 0x1280_0000) {
        // ADR, ADRP; MOVN, MOVZ, and MOVK, which keeps a part
        let keeps = is(word, 0x7f80_0000, 0x7280_0000);
        return match d {
            false => Use::None,
            true if keeps => Use::Unclear,
            true => Use::Kills,
        };
    }
    match word >> 25 & 0xf {
        // branches that compare the register, or go to it
        0xa | 0xb if is(word, 0x7c00_0000, 0x3400_0000) && d => Use::Unclear,
        0xa | 0xb if is(word, 0xfe00_0000, 0xd600_0000) && n => Use::Unclear,
        // data processing: immediate, register
        8 | 9 if n => Use::Unclear,
        5 | 0xd if n || m || (a && is(word, 0x1f00_0000, 0x1b00_0000)) => Use::Unclear,
        8 | 9 | 5 | 0xd if d => Use::Kills,
        // literals; pairs; other offsets, a register among them; what else there is
        4 | 6 | 0xc | 0xe if is(word, 0x3b00_0000, 0x1800_0000) => d_or(true, d),
        4 | 6 | 0xc | 0xe if n => Use::Unclear,
        4 | 6 | 0xc | 0xe if is(word, 0x3a00_0000, 0x2800_0000) => {
            d_or(word & 1 << 22 != 0, d || a)
        }
        4 | 6 | 0xc | 0xe if is(word, 0x3b20_0000, 0x3800_0000) => d_or(loads, d),
        4 | 6 | 0xc | 0xe if is(word, 0x3b20_0c00, 0x3820_0800) && !m => d_or(loads, d),
        4 | 6 | 0xc | 0xe if d || m || a => Use::Unclear,
        _ => Use::None,
    }
}

fn flow(word: u32) -> Flow {
    if is(word, 0xfc00_0000, 0x1400_0000) {
        Flow::To(distance(word, 26)) // B
    } else if is(word, 0xff00_0000, 0x5400_0000) || is(word, 0x7e00_0000, 0x3400_0000) {
        Flow::Either(distance(word >> 5, 19)) // B.cond, CBZ, CBNZ
    } else if is(word, 0x7e00_0000, 0x3600_0000) {
        Flow::Either(distance(word >> 5, 14)) // TBZ, TBNZ
    } else if is(word, 0xfc00_0000, 0x9400_0000) || is(word, 0xfeff_f000, 0xd63f_0000) {
        Flow::Call // BL, BLR
    } else if is(word, 0xfeff_f000, 0xd65f_0000) {
        Flow::Return
    } else if is(word, 0xfe00_0000, 0xd600_0000) {
        Flow::Unknown // BR and its kin
    } else if is(word, 0xffe0_001f, 0xd420_0000) || is(word, 0xffff_0000, 0) {
        Flow::Return // BRK, UDF
    } else {
        Flow::Next
    }
}

const fn is(word: u32, mask: u32, value: u32) -> bool {
    word & mask == value
}

/// The number of a register.
const fn field(word: u32, at: u32) -> u32 {
    word >> at & 0x1f
}

/// The distance of `ADR`, or the pages of `ADRP`.
fn page_offset(word: u32) -> i64 {
    sign_extended(u64::from(word >> 5 & 0x7_ffff) << 2 | u64::from(word >> 29 & 3), 21)
}

/// Bytes to where a branch or literal of so many bits leads.
fn distance(word: u32, bits: u32) -> i64 {
    sign_extended(u64::from(word) << 2, bits.saturating_add(2))
}

const fn sign_extended(value: u64, bits: u32) -> i64 {
    let unused = 64_u32.saturating_sub(bits);
    (value << unused).cast_signed() >> unused
}

fn text(word: u32) -> String {
    let bytes = word.to_le_bytes();
    let instruction = InstDecoder::default().decode(&mut U8Reader::new(&bytes));
    instruction.map_or_else(|_| format!(".word {word:#x}"), |found| found.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::super::moves::Moved;
    use super::*;

    const MOVE: Move = Move {
        old: 0x1_0800,
        size: 0x2400,
        new: 0,
        new_size: 0,
        offset: 0x800,
        kind: Moved::Alone,
    };

    /// The address of the instruction that refers to 0x10800..0x12c00, of code at 0x1000.
    fn found(words: &[u32]) -> Option<u64> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = Code { bytes: &bytes, address: 0x1000, fixed: false };
        find(code, &Extents::default(), &[MOVE]).map(|found| found.address)
    }

    const RET: u32 = 0xd65f_03c0;
    /// `adrp x0, 0x10000` at 0x1000.
    const ADRP: u32 = 0xf000_0060;

    #[test]
    fn pages() {
        // adrp x0, 0x11000: all of it moves
        assert_eq!(found(&[0x9000_0080, RET]), Some(0x1000));
        // adrp x0, 0x13000
        assert_eq!(found(&[0xd000_0080, RET]), None);
        // add x0, x0, #0x7f8; #0x800
        assert_eq!(found(&[ADRP, 0x911f_e000, RET]), None);
        assert_eq!(found(&[ADRP, 0x9120_0000, RET]), Some(0x1004));
        // ldr x1, [x0, #0x7f8]; [x0, #0x800]; ldr q1, [x0, #0x800]; ldrb w0, [x0, #0x800]
        assert_eq!(found(&[ADRP, 0xf943_fc01, RET]), None);
        assert_eq!(found(&[ADRP, 0xf944_0001, RET]), Some(0x1004));
        assert_eq!(found(&[ADRP, 0x3dc2_0001, RET]), Some(0x1004));
        assert_eq!(found(&[ADRP, 0x3960_0000, RET]), Some(0x1004));
        // str x0, [sp, #8]; stp x0, x1, [sp]; mov x1, x0
        assert_eq!(found(&[ADRP, 0xf900_07e0, RET]), Some(0x1004));
        assert_eq!(found(&[ADRP, 0xa900_07e0, RET]), Some(0x1004));
        assert_eq!(found(&[ADRP, 0xaa00_03e1, RET]), Some(0x1004));
        // ldp x0, x2, [x1] and prfm pldl1keep, [x1] are none
        assert_eq!(found(&[ADRP, 0xa940_0820, RET]), None);
        assert_eq!(found(&[ADRP, 0xf980_0020, 0x9120_0000, RET]), Some(0x1008));
        // mov x0, x1 and ldr x0, [x1] end it; add x0, x0, #0x800 says nothing then
        assert_eq!(found(&[ADRP, 0xaa01_03e0, 0x9120_0000, RET]), None);
        assert_eq!(found(&[ADRP, 0xf940_0020, 0x9120_0000, RET]), None);
    }

    #[test]
    fn paths() {
        // cbz x1, +8: over ret, to add x0, x0, #0x800
        assert_eq!(found(&[ADRP, 0xb400_0041, RET, 0x9120_0000, RET]), Some(0x100c));
        // b +8; bl: x0 is another after it; br x1
        assert_eq!(found(&[ADRP, 0x1400_0002, RET, 0x9120_0000, RET]), Some(0x100c));
        assert_eq!(found(&[ADRP, 0x9400_0010, 0x9120_0000, RET]), None);
        assert_eq!(found(&[ADRP, 0xd61f_0020]), Some(0x1004));
        // adrp x19, 0x10000; bl; add x0, x19, #0x800
        assert_eq!(found(&[ADRP | 19, 0x9400_0010, 0x9120_0260, RET]), Some(0x1008));
        // a loop, and code that ends
        assert_eq!(found(&[ADRP, 0x17ff_ffff]), None);
        assert_eq!(found(&[ADRP]), Some(0x1004));
    }

    #[test]
    fn near() {
        // adr x0, +0xf800, which is 0x10800; ldr x0, +0xf7fc
        assert_eq!(found(&[0x1007_c000, RET]), Some(0x1000));
        assert_eq!(found(&[RET, 0x5807_bfe0]), Some(0x1004));
        assert_eq!(found(&[RET, 0x5807_bfc0]), None);
        assert_eq!(text(RET), "ret");
    }
}
