//! How LoongArch code with TLS descriptors, and code of initial exec, becomes local exec (LoongArch ELF psABI, "TLS Descriptors"; newer lld
//! for what the ABI leaves to it).
//!
//! Each instruction is rewritten at its own place, since they need not stand together: those that make the descriptor's address become
//! NOPs, and the load and the call make the offset; of initial exec both instructions make it. NOPs go where they may be relaxed (`relax.rs`).
//! Code of general dynamic stays, and so does what finds an entry of initial exec by an offset of 64 bits.

use crate::relax;
use elf_core::tls::{Form, Tls, TpOffsets, Transition, Variant, replace, sequence};

/// The block starts where `tp` points.
pub(crate) const TLS: Tls = Tls::new(Variant::I { reserved: 0 });

pub(crate) const ADDRESS: Transition = Transition::new(address);
pub(crate) const fn marked_address<const MARK: u32>() -> Transition {
    ADDRESS.going(4, relax::descriptor_address::<MARK>)
}

pub(crate) const fn marked_load<const MARK: u32>() -> Transition {
    Transition::new(load).going(4, relax::needs_no_upper_part::<MARK>)
}

pub(crate) const CALL: Transition = Transition::new(call);

pub(crate) const fn initial_exec_high<const MARK: u32>() -> Transition {
    Transition::new(entry_high).going(4, relax::needs_no_upper_part::<MARK>)
}

pub(crate) const INITIAL_EXEC_LOW: Transition = Transition::new(entry_low);

const NOP: u32 = 0x0340_0000;
const LU12I_W_A0: u32 = 0x1400_0004;
const LU12I_W: u32 = 0x1400_0000;
const ORI: u32 = 0x0380_0000;
const ORI_A0_ZERO: u32 = 0x0380_0004;
const ORI_A0_A0: u32 = 0x0380_0084;

/// `pcalau12i`, `pcaddi`, `pcaddu12i`, `lu12i.w` and `lu32i.d`; `addi.d`, `addi.w`, `ori` and `lu52i.d`.
const PARTS: &[Form] = &[
    (0xfe00_0000, 0x1a00_0000),
    (0xfe00_0000, 0x1800_0000),
    (0xfe00_0000, 0x1c00_0000),
    (0xfe00_0000, 0x1400_0000),
    (0xfe00_0000, 0x1600_0000),
    (0xffc0_0000, 0x02c0_0000),
    (0xffc0_0000, 0x0280_0000),
    (0xffc0_0000, 0x0380_0000),
    (0xffc0_0000, 0x0300_0000),
];

/// A part of the descriptor's address.
fn address(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    replace(code, place, PARTS, NOP).map(|()| 0)
}

/// `ld.d ra, a0, %desc_ld(x)`
fn load(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, _) = parts(offsets)?;
    let new = if high == 0 { NOP } else { LU12I_W_A0 | high << 5 };
    replace(code, place, &[(0xffc0_03ff, 0x28c0_0081)], new).map(|()| 0)
}

/// `jirl ra, ra, %desc_call(x)`
fn call(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, low) = parts(offsets)?;
    let or = if high == 0 { ORI_A0_ZERO } else { ORI_A0_A0 };
    replace(code, place, &[(0xfc00_03ff, 0x4c00_0021)], or | low << 10).map(|()| 0)
}

/// `pcalau12i rX, %ie_pc_hi20(x)`
fn entry_high(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, _) = parts(offsets)?;
    let register = u32::from_le_bytes(*sequence::<4>(code, place, 0)?) & 31;
    let new = if high == 0 { NOP } else { LU12I_W | high << 5 | register };
    replace(code, place, &[(0xfe00_0000, 0x1a00_0000)], new).map(|()| 0)
}

/// `ld.d rX, rY, %ie_pc_lo12(x)`
fn entry_low(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, low) = parts(offsets)?;
    // of the upper part, or zero
    let from = if high == 0 { 0 } else { 31 << 5 };
    let registers = u32::from_le_bytes(*sequence::<4>(code, place, 0)?) & (from | 31);
    replace(code, place, &[(0xffc0_0000, 0x28c0_0000)], ORI | low << 10 | registers).map(|()| 0)
}

/// The upper 20 bits of the variable's offset, and the lower 12, which `ori` takes without a sign.
fn parts(offsets: &TpOffsets) -> Option<(u32, u32)> {
    let offset = i32::try_from(offsets.variable).ok()?.cast_unsigned();
    Some((offset >> 12, offset & 0xfff))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pcalau12i a0, 0; addi.d a0, a0, 0; ld.d ra, a0, 0; jirl ra, ra, 0`
    const SEQUENCE: [u32; 4] = [0x1a00_0004, 0x02c0_0084, 0x28c0_0081, 0x4c00_0021];

    fn rewritten(code: [u32; 4], variable: i64) -> Option<[u32; 4]> {
        let mut bytes = [0; 16];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(code) {
            *place = word.to_le_bytes();
        }
        let offsets = TpOffsets::new(variable, 0);
        for (at, Transition { rewrite, .. }) in
            [ADDRESS, ADDRESS, marked_load::<100>(), CALL].into_iter().enumerate()
        {
            assert_eq!(rewrite(&mut bytes, 4 * at, &offsets)?, 0);
        }
        let words = bytes.as_chunks::<4>().0;
        Some(core::array::from_fn(|at| u32::from_le_bytes(words[at])))
    }

    #[test]
    fn descriptors_to_local_exec() {
        // ori a0, zero, 0xfff
        assert_eq!(rewritten(SEQUENCE, 0xfff), Some([NOP, NOP, NOP, 0x03bf_fc04]));
        // lu12i.w a0, 1; ori a0, a0, 0
        assert_eq!(rewritten(SEQUENCE, 0x1000), Some([NOP, NOP, 0x1400_0024, 0x0380_0084]));
        // lu12i.w a0, -0x80000; ori a0, a0, 0
        let least = -0x8000_0000;
        assert_eq!(rewritten(SEQUENCE, least), Some([NOP, NOP, 0x1500_0004, 0x0380_0084]));
        assert_eq!(rewritten(SEQUENCE, least - 1), None);
        assert!(rewritten(SEQUENCE, 0x7fff_ffff).is_some());
        assert_eq!(rewritten(SEQUENCE, 0x8000_0000), None);
    }

    #[test]
    fn initial_exec_to_local_exec() {
        // pcalau12i t0, 0; ld.d a3, t0, 0
        const ENTRY: [u32; 2] = [0x1a00_000c, 0x28c0_0187];
        let rewritten = |code: [u32; 2], variable: i64| {
            let mut bytes = code.map(u32::to_le_bytes).concat();
            let offsets = TpOffsets::new(variable, 0);
            (initial_exec_high::<100>().rewrite)(&mut bytes, 0, &offsets)?;
            (INITIAL_EXEC_LOW.rewrite)(&mut bytes, 4, &offsets)?;
            let words = bytes.as_chunks::<4>().0;
            Some([0, 1].map(|at| u32::from_le_bytes(words[at])))
        };
        // ori a3, zero, 0xfff
        assert_eq!(rewritten(ENTRY, 0xfff), Some([NOP, 0x03bf_fc07]));
        // lu12i.w t0, 1; ori a3, t0, 8
        assert_eq!(rewritten(ENTRY, 0x1008), Some([0x1400_002c, 0x0380_2187]));
        assert!(rewritten(ENTRY, -1).is_some());
        assert_eq!(rewritten(ENTRY, 0x8000_0000), None);
        assert_eq!(rewritten([NOP, ENTRY[1]], 0), None);
        // addi.d a3, t0, 0
        assert_eq!(rewritten([ENTRY[0], 0x02c0_0187], 0), None);
    }

    #[test]
    fn other_code_stays() {
        for at in 0..4 {
            let mut code = SEQUENCE;
            code[at] = NOP;
            assert_eq!(rewritten(code, 0), None);
        }
    }
}
