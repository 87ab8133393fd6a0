//! How AArch64 code becomes local exec (AAELF64, section 5.7.11 "Thread-local storage descriptors" and its neighbours; GNU ld and
//! lld for what the ABI leaves to them). Sequences of the large code model, with 16 bits an instruction, stay as they are.

use elf_core::tls::{Tls, TpOffsets, Transition, Variant, sequence};

pub(crate) const TLS: Tls = Tls::new(Variant::I { reserved: 16 });

pub(crate) const GD_TINY: Transition = Transition::with_call(general_tiny);
pub(crate) const GD_PAGE: Transition = Transition::new(general_page);
pub(crate) const GD_CALL: Transition = Transition::with_call(general_call);
pub(crate) const LD_PAGE: Transition = Transition::new(local_page);
pub(crate) const LD_CALL: Transition = Transition::with_call(local_call);
pub(crate) const IE_PAGE: Transition = Transition::new(initial_page);
pub(crate) const IE_LOAD: Transition = Transition::new(initial_load);
pub(crate) const DESC_TINY: Transition = Transition::new(descriptor_tiny);
pub(crate) const DESC_TINY_ADD: Transition = Transition::new(descriptor_tiny_add);
pub(crate) const DESC_PAGE: Transition = Transition::new(descriptor_page);
pub(crate) const DESC_LOAD: Transition = Transition::new(descriptor_load);
pub(crate) const DESC_ADD: Transition = Transition::new(descriptor_add);
pub(crate) const DESC_CALL: Transition = Transition::new(descriptor_call);

const MOVZ_HIGH: u32 = 0xd2a0_0000; // movz xN, #.., lsl #16
const MOVZ: u32 = 0xd280_0000; // movz xN, #..
const MOVK: u32 = 0xf280_0000; // movk xN, #..
const NOP: u32 = 0xd503_201f;
const MRS_X0: u32 = 0xd53b_d040; // mrs x0, tpidr_el0
const MRS_X1: u32 = 0xd53b_d041; // mrs x1, tpidr_el0
const ADD_X0_X1_X0: u32 = 0x8b00_0020;
const ADD_X0_X0: u32 = 0x9100_0000; // add x0, x0, #..
const ADD_X0_X1: u32 = 0x9100_0020; // add x0, x1, #..
const BY_12: u32 = 1 << 22; // ..., lsl #12

/// Whether an instruction is of this form, whatever its registers and operands.
#[derive(Clone, Copy)]
struct Form {
    mask: u32,
    bits: u32,
}

impl Form {
    const ADR: Self = Self { mask: 0x9f00_0000, bits: 0x1000_0000 };
    const ADRP: Self = Self { mask: 0x9f00_0000, bits: 0x9000_0000 };
    const ADD: Self = Self { mask: 0xffc0_0000, bits: 0x9100_0000 };
    const LDR: Self = Self { mask: 0xffc0_0000, bits: 0xf940_0000 };
    const LDR_LITERAL: Self = Self { mask: 0xff00_0000, bits: 0x5800_0000 };
    const BL: Self = Self { mask: 0xfc00_0000, bits: 0x9400_0000 };
    const BLR: Self = Self { mask: 0xffff_fc1f, bits: 0xd63f_0000 };
    const NOP: Self = Self { mask: !0, bits: NOP };

    /// With this destination.
    const fn to(self, register: u32) -> Self {
        Self { mask: self.mask | 0x1f, bits: self.bits | register }
    }

    const fn fits(self, word: u32) -> bool {
        word & self.mask == self.bits
    }
}

/// Replaces instructions from the place on, if they are of these forms.
fn replace<const N: usize>(
    code: &mut [u8],
    place: usize,
    forms: [Form; N],
    new: [u32; N],
) -> Option<()> {
    let words = code.get_mut(place..)?.as_chunks_mut::<4>().0.get_mut(..N)?;
    if !words.iter().zip(forms).all(|(word, form)| form.fits(u32::from_le_bytes(*word))) {
        return None;
    }
    for (word, new) in words.iter_mut().zip(new) {
        *word = new.to_le_bytes();
    }
    Some(())
}

/// The register that an instruction's lowest bits name.
fn destination(code: &mut [u8], place: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*sequence(code, place, 0)?) & 0x1f)
}

/// The upper and the lower half of a TP offset of 32 bits, as immediate operands. TP offsets are not negative here (TLS variant I).
fn halves(offsets: &TpOffsets) -> Option<(u32, u32)> {
    let tp_offset = u32::try_from(offsets.variable).ok()?;
    Some((tp_offset >> 16 << 5, (tp_offset & 0xffff) << 5))
}

/// The upper and the lower part of a TP offset of 24 bits, as immediate operands of additions.
fn parts(tp_offset: i64) -> Option<(u32, u32)> {
    let tp_offset = u32::try_from(tp_offset).ok().filter(|tp_offset| tp_offset >> 24 == 0)?;
    Some((BY_12 | tp_offset >> 12 << 10, (tp_offset & 0xfff) << 10))
}

/// `adr x0, :tlsgd:x; bl __tls_get_addr; nop`
fn general_tiny(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, low) = parts(offsets.variable)?;
    let new = [MRS_X1, ADD_X0_X1 | high, ADD_X0_X0 | low];
    replace(code, place, [Form::ADR.to(0), Form::BL, Form::NOP], new).map(|()| 4)
}

/// `adrp x0, :tlsgd:x`
fn general_page(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    replace(code, place, [Form::ADRP.to(0)], [MOVZ_HIGH | halves(offsets)?.0]).map(|()| 0)
}

/// `add x0, x0, :tlsgd_lo12:x; bl __tls_get_addr; nop`
fn general_call(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let new = [MOVK | halves(offsets)?.1, MRS_X1, ADD_X0_X1_X0];
    replace(code, place, [Form::ADD.to(0), Form::BL, Form::NOP], new).map(|()| 4)
}

/// `adrp x0, :tlsldm:x`
fn local_page(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    parts(offsets.block)?;
    replace(code, place, [Form::ADRP.to(0)], [MRS_X0]).map(|()| 0)
}

/// `add x0, x0, :tlsldm_lo12_nc:x; bl __tls_get_addr`
fn local_call(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let (high, low) = parts(offsets.block)?;
    let high = if high == BY_12 { NOP } else { ADD_X0_X0 | high };
    replace(code, place, [Form::ADD.to(0), Form::BL], [ADD_X0_X0 | low, high]).map(|()| 4)
}

/// `adrp xN, :gottprel:x`
fn initial_page(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let register = destination(code, place)?;
    let new = MOVZ_HIGH | halves(offsets)?.0 | register;
    replace(code, place, [Form::ADRP], [new]).map(|()| 0)
}

/// `ldr xN, [xM, :gottprel_lo12:x]`: into the other half of xM, or of another register where all is in this half.
fn initial_load(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let word = u32::from_le_bytes(*sequence(code, place, 0)?);
    let (register, base) = (word & 0x1f, word >> 5 & 0x1f);
    let new = match halves(offsets)? {
        (_, low) if register == base => MOVK | low,
        (0, low) => MOVZ | low,
        _ => return None,
    };
    replace(code, place, [Form::LDR], [new | register]).map(|()| 0)
}

/// `ldr x1, :tlsdesc:x`
fn descriptor_tiny(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let new = MOVZ_HIGH | halves(offsets)?.0;
    replace(code, place, [Form::LDR_LITERAL], [new]).map(|()| 0)
}

/// `adr x0, :tlsdesc:x`
fn descriptor_tiny_add(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    replace(code, place, [Form::ADR.to(0)], [MOVK | halves(offsets)?.1]).map(|()| 0)
}

/// `adrp x0, :tlsdesc:x`
fn descriptor_page(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    replace(code, place, [Form::ADRP.to(0)], [MOVZ_HIGH | halves(offsets)?.0]).map(|()| 0)
}

/// `ldr xN, [x0, :tlsdesc_lo12:x]`
fn descriptor_load(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    replace(code, place, [Form::LDR], [MOVK | halves(offsets)?.1]).map(|()| 0)
}

/// `add x0, x0, :tlsdesc_lo12:x`
fn descriptor_add(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    replace(code, place, [Form::ADD.to(0)], [NOP]).map(|()| 0)
}

/// `blr xN`
fn descriptor_call(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    replace(code, place, [Form::BLR], [NOP]).map(|()| 0)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::aarch64::*;
    use elf_core::{Kind, Special, find};
    use std::vec;
    use std::vec::Vec;

    fn transition(kind: &Kind) -> Option<Transition> {
        match kind.special {
            Special::Transition(transition) => Some(transition),
            _ => None,
        }
    }

    #[test]
    fn other_code_is_left_alone() {
        let offsets = TpOffsets::new(0x1234, 0x1000);
        for transition in KINDS.iter().filter_map(transition) {
            for length in 0..16 {
                for place in 0..16 {
                    let mut code = vec![0; length];
                    assert!((transition.rewrite)(&mut code, place, &offsets).is_none());
                    assert_eq!(code, vec![0; length]);
                }
            }
        }
    }

    /// Linkers fill half of a register that nobody has set, if another one has the page's address.
    #[test]
    fn initial_exec_of_two_registers() {
        let load = |register: u32, variable| {
            let mut code = (0xf940_0020 | register).to_le_bytes(); // ldr xN, [x1, :gottprel_lo12:x]
            let kind = find(KINDS, R_AARCH64_TLSIE_LD64_GOTTPREL_LO12_NC);
            let transition = kind.and_then(transition).unwrap();
            let done = (transition.rewrite)(&mut code, 0, &TpOffsets::new(variable, 16));
            done.map(|_| u32::from_le_bytes(code))
        };
        assert_eq!(load(1, 0x12_3450), Some(0xf286_8a01)); // movk x1, #0x3450
        assert_eq!(load(0, 0x3450), Some(0xd286_8a00)); // movz x0, #0x3450
        assert_eq!(load(0, 0x12_3450), None);
    }

    /// `:tlsldm:` of a block that is not at the start, as its alignment may have it.
    #[test]
    fn blocks_far_from_the_thread_pointer() {
        let rewrite = |block| {
            let words: [u32; 2] = [0x9100_0000, 0x9400_0000]; // add x0, x0, :tlsldm_lo12_nc:x; bl
            let mut code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let kind = find(KINDS, R_AARCH64_TLSLD_ADD_LO12_NC);
            let transition = kind.and_then(transition).unwrap();
            let done = (transition.rewrite)(&mut code, 0, &TpOffsets::new(0, block));
            done.map(|_| code.as_chunks::<4>().0.iter().map(|it| u32::from_le_bytes(*it)).collect())
        };
        // add x0, x0, #0x10; nop
        assert_eq!(rewrite(0x10), Some(vec![0x9100_4000, NOP]));
        // add x0, x0, #0x10; add x0, x0, #2, lsl #12
        assert_eq!(rewrite(0x2010), Some(vec![0x9100_4000, 0x9140_0800]));
        assert_eq!(rewrite(0xff_f000), Some(vec![0x9100_0000, 0x917f_fc00]));
        assert_eq!(rewrite(0x100_0000), None);
    }

    #[test]
    fn sequence_of_a_descriptor() {
        let offsets = TpOffsets::new(0x12_3456, 0x10);
        let words: [u32; 4] = [0x9000_0000, 0xf940_0001, 0x9100_0000, 0xd63f_0020];
        let mut code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (number, place) in [
            (R_AARCH64_TLSDESC_ADR_PAGE21, 0),
            (R_AARCH64_TLSDESC_LD64_LO12, 4),
            (R_AARCH64_TLSDESC_ADD_LO12, 8),
            (R_AARCH64_TLSDESC_CALL, 12),
        ] {
            let transition = find(KINDS, number).and_then(transition).unwrap();
            assert_eq!((transition.rewrite)(&mut code, place, &offsets), Some(0));
        }
        let words: Vec<u32> =
            code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // movz x0, #0x12, lsl #16; movk x0, #0x3456; nop; nop
        assert_eq!(words, [0xd2a0_0240, 0xf286_8ac0, NOP, NOP]);
    }
}
