//! Arm code with TLS descriptors, and how it becomes local exec (AAELF32, "Relocations for thread-local storage"; GNU ld for what the ABI leaves
//! to it).
//!
//! A word beside the code says how far the descriptor is from the call that asks it; what the call gives is the variable's offset from
//! the thread pointer, in `r0`. So the word becomes that offset, which the code has in `r0` already, and the call, or the
//! instructions in place of it, do nothing. GNU ld does the same of variables that only the object knows; of others it makes initial
//! exec.
//!
//! Code that stays as it is calls a routine of the linker's, which finds the descriptor by its return address.

use crate::attributes::{J1J2, THUMB2};
use elf_core::Stub;
use elf_core::tls::{Form, Tls, TpOffsets, Transition, Variant, sequence};

pub(crate) const TLS: Tls = Tls::new(Variant::I { reserved: 8 }).call(TLS_CALL, J1J2);

/// Calls the function of a TLS descriptor, for Arm and Thumb code. `r0` and the return address make the address of the descriptor, and
/// 4 more in Arm code, 6 in Thumb code, which has bit 0 in both.
const TLS_CALL: Stub = Stub::new(&TLS_CALL_CODE, 4, &[]).thumb().unit(2);

#[rustfmt::skip]
const TLS_CALL_CODE: [u8; 12] = [
    0x70, 0x44, // add  r0, lr
    0x80, 0x08, // lsrs r0, r0, #2
    0x80, 0x00, // lsls r0, r0, #2
    0x04, 0x38, // subs r0, #4
    0x41, 0x68, // ldr  r1, [r0, #4]
    0x08, 0x47, // bx   r1
];

pub(crate) const WORD: Transition = Transition::new(word);
pub(crate) const CALL: Transition = Transition::new(call);
pub(crate) const SEQUENCE: Transition = Transition::new(in_sequence);
pub(crate) const THUMB_CALL: Transition = Transition::new(thumb_call);
pub(crate) const THUMB_SEQUENCE: Transition = Transition::new(in_thumb_sequence);
pub(crate) const WIDE_SEQUENCE: Transition = Transition::new(in_wide_sequence);

/// `mov r0, r0`
const NOP: u32 = 0xe1a0_0000;
/// `mov r8, r8`, which every processor with Thumb code has.
const THUMB_NOP: u32 = 0x46c0;
/// `nop.w`
const WIDE_NOP: u32 = 0xf3af_8000;

/// The word that the code loads: what it holds is no addend of the variable.
fn word(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let offset = i32::try_from(offsets.variable.checked_sub(offsets.addend)?).ok()?;
    change::<4>(code, place, offsets, |_| Some(offset.cast_unsigned()))
}

/// `bl` or `blx` to the routine.
fn call(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    const CALLS: &[Form] = &[(0xff00_0000, 0xeb00_0000), (0xfe00_0000, 0xfa00_0000)];
    change::<4>(code, place, offsets, |code| is_of(code, CALLS).then_some(NOP))
}

/// `add rX, pc, rY`, `ldr rX, [rY, #4]` or `blx rX`
fn in_sequence(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    const IDLE: &[Form] = &[(0xfff0_0fff, 0xe590_0004), (0xffff_fff0, 0xe12f_ff30)];
    change::<4>(code, place, offsets, |code| {
        // mov rX, rY
        let is_add = code & 0xffff_0ff0 == 0xe08f_0000;
        is_add.then_some(NOP | code & 0xffff).or(is_of(code, IDLE).then_some(NOP))
    })
}

/// `bl` or `blx` to the routine.
fn thumb_call(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    const CALLS: &[Form] = &[(0xf800_c000, 0xf000_c000)];
    let nop = match offsets.processor & THUMB2 {
        0 => THUMB_NOP << 16 | THUMB_NOP,
        _ => WIDE_NOP,
    };
    change_wide(code, place, offsets, CALLS, nop)
}

/// `add rX, pc`, `ldr rX, [rY, #4]` or `blx rX`
fn in_thumb_sequence(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    const IDLE: &[Form] = &[(0xff78, 0x4478), (0xffc0, 0x6840), (0xff87, 0x4780)];
    change::<2>(code, place, offsets, |code| is_of(code, IDLE).then_some(THUMB_NOP))
}

/// `ldr.w rX, [rY, #4]`
fn in_wide_sequence(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    change_wide(code, place, offsets, &[(0xfff0_0fff, 0xf8d0_0004)], WIDE_NOP)
}

fn is_of(code: u32, forms: &[Form]) -> bool {
    forms.iter().any(|(mask, bits)| code & mask == *bits)
}

/// Puts `new` for the instruction of two halfwords at the place, if it has one of the forms.
fn change_wide(
    code: &mut [u8],
    place: usize,
    offsets: &TpOffsets,
    forms: &[Form],
    new: u32,
) -> Option<u64> {
    // the first halfword is the upper one, and stands first in either byte order
    let turn = if offsets.big_endian { 0 } else { 16 };
    change::<4>(code, place, offsets, |code| {
        is_of(code.rotate_left(turn), forms).then_some(new.rotate_left(turn))
    })
}

/// Puts what `new` makes of it for the word of `N` bytes at the place, in the file's byte order.
fn change<const N: usize>(
    code: &mut [u8],
    place: usize,
    offsets: &TpOffsets,
    new: impl FnOnce(u32) -> Option<u32>,
) -> Option<u64> {
    let bytes = sequence::<N>(code, place, 0)?;
    let fold = |word, byte: &u8| word << 8 | u32::from(*byte);
    let old = match offsets.big_endian {
        true => bytes.iter().fold(0, fold),
        false => bytes.iter().rev().fold(0, fold),
    };
    let mut rest = new(old)?;
    let put = |byte: &mut u8| {
        *byte = rest as u8;
        rest >>= 8;
    };
    match offsets.big_endian {
        true => bytes.iter_mut().rev().for_each(put),
        false => bytes.iter_mut().for_each(put),
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::arm::KINDS;
    use elf_core::Special;
    use std::vec;
    use std::vec::Vec;

    const OFFSETS: TpOffsets = TpOffsets::new(0x1234, 0).counting(0x34);

    /// What becomes of an instruction, given and shown by halfwords or words in both byte orders.
    fn changed<const N: usize>(transition: Transition, units: &[u32], on: u32) -> Option<Vec<u32>> {
        let mut results = [false, true].map(|is_big| {
            let in_order = |unit: &u32| {
                let mut bytes = unit.to_be_bytes()[4 - N..].to_vec();
                if !is_big {
                    bytes.reverse();
                }
                bytes
            };
            let mut code: Vec<u8> =
                [0xaa; 3].into_iter().chain(units.iter().flat_map(in_order)).collect();
            let offsets = OFFSETS.big_endian(is_big).on(on);
            assert_eq!((transition.rewrite)(&mut code, 3, &offsets)?, 0);
            let units = code[3..].chunks(N).map(|unit| {
                let fold = |word, byte: &u8| word << 8 | u32::from(*byte);
                if is_big { unit.iter().fold(0, fold) } else { unit.iter().rev().fold(0, fold) }
            });
            Some(units.collect::<Vec<u32>>())
        });
        assert_eq!(results[0], results[1]);
        results[0].take()
    }

    #[test]
    fn descriptors_to_local_exec() {
        assert_eq!(changed::<4>(WORD, &[0x15], 0), Some(vec![0x1200]), "an addend that counts");
        assert_eq!(changed::<4>(CALL, &[0xebff_fffe], 0), Some(vec![NOP]), "bl");
        assert_eq!(changed::<4>(CALL, &[0xfb00_0000], 0), Some(vec![NOP]), "blx");
        // add r2, pc, r1; ldr r3, [r2, #4]; blx r3
        assert_eq!(changed::<4>(SEQUENCE, &[0xe08f_2001], 0), Some(vec![0xe1a0_2001]));
        assert_eq!(changed::<4>(SEQUENCE, &[0xe592_3004], 0), Some(vec![NOP]));
        assert_eq!(changed::<4>(SEQUENCE, &[0xe12f_ff33], 0), Some(vec![NOP]));
        for call in [[0xf000, 0xf800], [0xf7ff, 0xeffe], [0xf000, 0xc000]] {
            let wide = changed::<2>(THUMB_CALL, &call, THUMB2);
            assert_eq!(wide, Some(vec![0xf3af, 0x8000]), "{call:x?}");
            assert_eq!(changed::<2>(THUMB_CALL, &call, 0), Some(vec![THUMB_NOP; 2]), "{call:x?}");
        }
        // add r1, pc; ldr r1, [r0, #4]; blx r1
        for code in [0x4479, 0x6841, 0x4788] {
            assert_eq!(changed::<2>(THUMB_SEQUENCE, &[code], 0), Some(vec![THUMB_NOP]));
        }
        // ldr.w r9, [r8, #4]
        let wide = changed::<2>(WIDE_SEQUENCE, &[0xf8d8, 0x9004], THUMB2);
        assert_eq!(wide, Some(vec![0xf3af, 0x8000]));
    }

    #[test]
    fn offsets_of_32_bits() {
        let put = |variable, addend| {
            let mut code = [0; 4];
            let offsets = TpOffsets::new(variable, 0).counting(addend);
            word(&mut code, 0, &offsets).map(|_| i32::from_le_bytes(code))
        };
        assert_eq!(put(0x7fff_ffff, 0), Some(0x7fff_ffff));
        assert_eq!(put(0x8000_0000, 0), None);
        assert_eq!(put(0x8000_0000, 1), Some(0x7fff_ffff));
        assert_eq!(put(-0x8000_0000, 0), Some(-0x8000_0000));
        assert_eq!(put(i64::MIN, 1), None);
    }

    #[test]
    fn other_code_is_left_alone() {
        // a branch, a conditional call, another offset, another base
        for code in [0xea00_0000, 0x0b00_0000, 0xe590_0008, 0xe08e_0000] {
            for transition in [CALL, SEQUENCE] {
                assert_eq!(changed::<4>(transition, &[code], 0), None);
            }
        }
        for code in [[0xf000, 0x8000], [0xf000, 0x9000], [0xe800, 0xf000], [0xf8d0, 0x0008]] {
            for transition in [THUMB_CALL, WIDE_SEQUENCE] {
                assert_eq!(changed::<2>(transition, &code, THUMB2), None);
            }
            assert_eq!(changed::<2>(THUMB_SEQUENCE, &code, THUMB2), None);
        }
    }

    #[test]
    fn all_stays_inside() {
        let mut count = 0;
        for kind in KINDS {
            let Special::Transition(transition) = kind.special else { continue };
            count += 1;
            for length in 0..6 {
                for place in [0, 1, 2, 5, usize::MAX] {
                    let mut code = vec![0; length];
                    let is_changed = (transition.rewrite)(&mut code, place, &OFFSETS).is_some();
                    let is_word = place.checked_add(4).is_some_and(|end| end <= length);
                    // nothing there is code of a sequence, but any word may be one that code loads
                    assert_eq!(is_changed, kind.name == "R_ARM_TLS_GOTDESC" && is_word);
                }
            }
        }
        assert_eq!(count, 6);
    }
}
