//! Stubs, which jump through a GOT entry and change state as it says, and which one a branch goes by way of.
//!
//! All of them run wherever they are, and clobber nothing but `ip` (AAPCS32, "Use of IP by the linker").

use crate::arm::{
    R_ARM_CALL, R_ARM_GOT_PREL, R_ARM_JUMP24, R_ARM_PC24, R_ARM_PLT32, R_ARM_PREL31,
    R_ARM_THM_CALL, R_ARM_THM_JUMP19, R_ARM_THM_JUMP24,
};
use crate::attributes::{BLX, J1J2, MICROCONTROLLER, THUMB2};
use elf_core::{Check, Kind, Stub, StubChoice, StubRelocation, SymbolAttributes};

/// Thumb code of every processor that has any: M-profile without MOVW, Armv4T. It takes 4 bytes of stack.
const THUMB: u8 = 0;
/// Arm code since Armv4T.
const ARM: u8 = 1;
/// Thumb-2.
const WIDE: u8 = 2;

/// BL and BLX before Armv6T2.
const REACH_OF_THUMB: u64 = 1 << 22;
const REACH_OF_ARM: u64 = 1 << 25;
/// B with a condition.
const REACH_OF_WIDE: u64 = 1 << 20;

/// The first one stands for a function wherever its address is asked for, and so is one that every processor runs.
pub(crate) const STUBS: &[Stub] = &[
    Stub::new(&THUMB_CODE, 4, &[StubRelocation::new(16, R_ARM_GOT_PREL, 8)])
        .reach(REACH_OF_THUMB)
        .thumb()
        .unit(2),
    Stub::new(&ARM_CODE, 4, &[StubRelocation::new(12, R_ARM_GOT_PREL, 0)])
        .reach(REACH_OF_ARM)
        .unit(4),
    Stub::new(&WIDE_CODE, 4, &[StubRelocation::new(12, R_ARM_GOT_PREL, 4)])
        .reach(REACH_OF_WIDE)
        .thumb()
        .unit(2),
];

#[rustfmt::skip]
const THUMB_CODE: [u8; 20] = [
    0x01, 0xb4, //             push {r0}
    0x03, 0x48, //             ldr  r0, 0f
    0x78, 0x44, //             add  r0, pc
    0x00, 0x68, //             ldr  r0, [r0]
    0x84, 0x46, //             mov  ip, r0
    0x01, 0xbc, //             pop  {r0}
    0x60, 0x47, //             bx   ip
    0xc0, 0x46, //             nop
    0x00, 0x00, 0x00, 0x00, // 0: GOT entry - (stub + 8)
];

#[rustfmt::skip]
const ARM_CODE: [u8; 16] = [
    0x04, 0xc0, 0x9f, 0xe5, // ldr  ip, 0f
    0x0c, 0xc0, 0x9f, 0xe7, // ldr  ip, [pc, ip]
    0x1c, 0xff, 0x2f, 0xe1, // bx   ip
    0x00, 0x00, 0x00, 0x00, // 0: GOT entry - (stub + 12)
];

#[rustfmt::skip]
const WIDE_CODE: [u8; 16] = [
    0xdf, 0xf8, 0x08, 0xc0, // ldr.w ip, 0f
    0xfc, 0x44, //             add   ip, pc
    0xdc, 0xf8, 0x00, 0xf0, // ldr.w pc, [ip]
    0x00, 0xbf, //             nop
    0x00, 0x00, 0x00, 0x00, // 0: GOT entry - (stub + 8)
];

/// The stub of a branch to a target. A label that is no function may be code of either state: there is none for it.
pub(crate) fn choose(kind: &Kind, target: SymbolAttributes) -> Option<StubChoice> {
    let can = |what| target.processor & what != 0;
    // on M-profile no code is Arm code, and no stub reaches what has no T
    let is_function = target.is_function && (target.is_thumb || !can(MICROCONTROLLER));
    let is_arm = is_function && !target.is_thumb;
    let thumb = StubChoice::new(if can(THUMB2) { WIDE } else { THUMB });
    let choice = match kind.number {
        R_ARM_CALL => return Some(StubChoice::new(ARM).always(target.is_thumb && !can(BLX))),
        R_ARM_PC24 | R_ARM_PLT32 | R_ARM_JUMP24 => {
            return Some(StubChoice::new(ARM).always(target.is_thumb));
        }
        // the personality routine of an unwinding table
        R_ARM_PREL31 => return Some(StubChoice::new(THUMB)),
        R_ARM_THM_CALL if can(J1J2) => thumb.always(is_arm && !can(BLX)),
        R_ARM_THM_CALL => thumb.always(is_arm && !can(BLX)).within(Check::Signed(23)),
        R_ARM_THM_JUMP24 | R_ARM_THM_JUMP19 => thumb.always(is_arm),
        _ => return None,
    };
    (is_function || target.is_thumb).then_some(choice)
}
