//! How RISC-V code with TLS descriptors becomes local exec (RISC-V psABI, "TLS Descriptors"; lld for what the ABI leaves to it).
//!
//! Each of the four instructions is rewritten at its own place, since they need not stand together. Where the first may be relaxed, those
//! that come to nothing go (`relax.rs`). Code of general dynamic and initial exec stays as it is: no linker has anything else for it.

use crate::relax;
use elf_core::tls::{Tls, TpOffsets, Transition, Variant, replace};

/// The block starts where `tp` points; `__tls_get_addr` counts from 0x800 bytes behind its start.
pub(crate) const TLS: Tls = Tls::new(Variant::I { reserved: 0 }).dtp_bias(-0x800);

pub(crate) const fn of_high<N: relax::Numbers>() -> Transition {
    Transition::new(high).going(4, relax::descriptor::<N>)
}

pub(crate) const fn of_load<N: relax::Numbers>() -> Transition {
    Transition::new(load).going(4, relax::descriptor::<N>)
}

pub(crate) const fn of_add<N: relax::Numbers>() -> Transition {
    Transition::new(add).going(4, relax::descriptor_add::<N>)
}

pub(crate) const CALL: Transition = Transition::new(call);

const NOP: u32 = 0x0000_0013;
const LUI_A0: u32 = 0x0000_0537;
const ADDI_A0_ZERO: u32 = 0x0000_0513;
const ADDI_A0_A0: u32 = 0x0005_0513;

/// `auipc tX, %tlsdesc_hi(x)`
fn high(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    replace(code, place, &[(0x7f, 0x17)], NOP).map(|()| 0)
}

/// `ld tY, %tlsdesc_load_lo(label)(tX)`
fn load(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    replace(code, place, &[(0x7f, 0x03)], NOP).map(|()| 0)
}

/// `addi a0, tX, %tlsdesc_add_lo(label)`
fn add(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, _) = parts(offsets)?;
    replace(code, place, &[(0x7fff, 0x0513)], if high == 0 { NOP } else { LUI_A0 | high })
        .map(|()| 0)
}

/// `jalr t0, tY, %tlsdesc_call(label)`
fn call(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, low) = parts(offsets)?;
    let add = if high == 0 { ADDI_A0_ZERO } else { ADDI_A0_A0 };
    replace(code, place, &[(0x7fff, 0x02e7)], add | low).map(|()| 0)
}

/// The upper part of the variable's offset as `lui` has it, and the lower as `addi`.
fn parts(offsets: &TpOffsets) -> Option<(u32, u32)> {
    let rounded = offsets.variable.checked_add(0x800)?;
    let high = i32::try_from(rounded).ok()?.cast_unsigned() & !0xfff;
    Some((high, (offsets.variable as u32) << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `auipc a0, 0; ld a1, 0(a0); addi a0, a0, 0; jalr t0, a1`
    const SEQUENCE: [u32; 4] = [0x0000_0517, 0x0005_3583, 0x0005_0513, 0x0005_82e7];

    enum Numbers {}

    impl relax::Numbers for Numbers {
        const RELAX: u32 = 51;
        const JAL: u32 = 17;
        const RVC_JUMP: u32 = 45;
        const RVC_LUI: u32 = 46;
    }

    fn transitions() -> [Transition; 4] {
        [of_high::<Numbers>(), of_load::<Numbers>(), of_add::<Numbers>(), CALL]
    }

    fn rewritten(code: [u32; 4], variable: i64) -> Option<[u32; 4]> {
        let mut bytes = [0; 16];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(code) {
            *place = word.to_le_bytes();
        }
        let offsets = TpOffsets::new(variable, 0);
        for (at, Transition { rewrite, .. }) in transitions().into_iter().enumerate() {
            assert_eq!(rewrite(&mut bytes, 4 * at, &offsets)?, 0);
        }
        let words = bytes.as_chunks::<4>().0;
        Some(core::array::from_fn(|at| u32::from_le_bytes(words[at])))
    }

    #[test]
    fn descriptors_to_local_exec() {
        // li a0, 0x7ff
        assert_eq!(rewritten(SEQUENCE, 0x7ff), Some([NOP, NOP, NOP, 0x7ff0_0513]));
        // lui a0, 1; addi a0, a0, -0x800
        assert_eq!(rewritten(SEQUENCE, 0x800), Some([NOP, NOP, 0x0000_1537, 0x8005_0513]));
        // lui a0, 0x80000; addi a0, a0, -0x800
        let least = -0x8000_0800;
        assert_eq!(rewritten(SEQUENCE, least), Some([NOP, NOP, 0x8000_0537, 0x8005_0513]));
        assert_eq!(rewritten(SEQUENCE, least - 1), None);
        assert!(rewritten(SEQUENCE, 0x7fff_f7ff).is_some());
        assert_eq!(rewritten(SEQUENCE, 0x7fff_f800), None);
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
