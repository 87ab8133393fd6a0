//! How AArch64 code becomes local exec (AAELF64, section 5.7.11 "Thread-local storage descriptors" and its neighbours; GNU ld and
//! lld for what the ABI leaves to them). Sequences of the large code model, with 16 bits an instruction, stay as they are.

use elf_core::tls::{Distances, Tls, Transition, Variant, sequence};

pub(crate) const TLS: Tls = Tls {
    variant: Variant::Behind { reserved: 16 },
    offsets_become_distances: false,
    transitions: TRANSITIONS,
};

#[rustfmt::skip]
const TRANSITIONS: &[Transition] = &[
    Transition { number: 512, takes_call: true,  rewrite: general_tiny },      // TLSGD_ADR_PREL21
    Transition { number: 513, takes_call: false, rewrite: general_page },      // TLSGD_ADR_PAGE21
    Transition { number: 514, takes_call: true,  rewrite: general_call },      // TLSGD_ADD_LO12_NC
    Transition { number: 518, takes_call: false, rewrite: local_page },        // TLSLD_ADR_PAGE21
    Transition { number: 519, takes_call: true,  rewrite: local_call },        // TLSLD_ADD_LO12_NC
    Transition { number: 541, takes_call: false, rewrite: initial_page },      // TLSIE_ADR_GOTTPREL_PAGE21
    Transition { number: 542, takes_call: false, rewrite: initial_load },      // TLSIE_LD64_GOTTPREL_LO12_NC
    Transition { number: 560, takes_call: false, rewrite: descriptor_tiny },   // TLSDESC_LD_PREL19
    Transition { number: 561, takes_call: false, rewrite: descriptor_tiny_add }, // TLSDESC_ADR_PREL21
    Transition { number: 562, takes_call: false, rewrite: descriptor_page },   // TLSDESC_ADR_PAGE21
    Transition { number: 563, takes_call: false, rewrite: descriptor_load },   // TLSDESC_LD64_LO12
    Transition { number: 564, takes_call: false, rewrite: descriptor_add },    // TLSDESC_ADD_LO12
    Transition { number: 569, takes_call: false, rewrite: descriptor_call },   // TLSDESC_CALL
];

const MOVZ_HIGH: u32 = 0xd2a0_0000; // movz xN, #.., lsl #16
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

/// The upper and the lower half of a distance of 32 bits, as immediate operands. Distances are not negative here.
fn halves(distances: &Distances) -> Option<(u32, u32)> {
    let distance = u32::try_from(distances.variable).ok()?;
    Some((distance >> 16 << 5, (distance & 0xffff) << 5))
}

/// The upper and the lower part of a distance of 24 bits, as immediate operands of additions.
fn parts(distance: i64) -> Option<(u32, u32)> {
    let distance = u32::try_from(distance).ok().filter(|distance| distance >> 24 == 0)?;
    Some((BY_12 | distance >> 12 << 10, (distance & 0xfff) << 10))
}

/// `adr x0, :tlsgd:x; bl __tls_get_addr; nop`
fn general_tiny(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    let (high, low) = parts(distances.variable)?;
    let new = [MRS_X1, ADD_X0_X1 | high, ADD_X0_X0 | low];
    replace(code, place, [Form::ADR.to(0), Form::BL, Form::NOP], new).map(|()| 4)
}

/// `adrp x0, :tlsgd:x`
fn general_page(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    replace(code, place, [Form::ADRP.to(0)], [MOVZ_HIGH | halves(distances)?.0]).map(|()| 0)
}

/// `add x0, x0, :tlsgd_lo12:x; bl __tls_get_addr; nop`
fn general_call(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    let new = [MOVK | halves(distances)?.1, MRS_X1, ADD_X0_X1_X0];
    replace(code, place, [Form::ADD.to(0), Form::BL, Form::NOP], new).map(|()| 4)
}

/// `adrp x0, :tlsldm:x`
fn local_page(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    parts(distances.block)?;
    replace(code, place, [Form::ADRP.to(0)], [MRS_X0]).map(|()| 0)
}

/// `add x0, x0, :tlsldm_lo12_nc:x; bl __tls_get_addr`
fn local_call(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    let (high, low) = parts(distances.block)?;
    let high = if high == BY_12 { NOP } else { ADD_X0_X0 | high };
    replace(code, place, [Form::ADD.to(0), Form::BL], [ADD_X0_X0 | low, high]).map(|()| 4)
}

/// `adrp xN, :gottprel:x`
fn initial_page(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    let register = destination(code, place)?;
    let new = MOVZ_HIGH | halves(distances)?.0 | register;
    replace(code, place, [Form::ADRP], [new]).map(|()| 0)
}

/// `ldr xN, [xN, :gottprel_lo12:x]`
fn initial_load(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    let register = destination(code, place)?;
    let new = MOVK | halves(distances)?.1 | register;
    replace(code, place, [Form::LDR], [new]).map(|()| 0)
}

/// `ldr x1, :tlsdesc:x`
fn descriptor_tiny(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    let new = MOVZ_HIGH | halves(distances)?.0;
    replace(code, place, [Form::LDR_LITERAL], [new]).map(|()| 0)
}

/// `adr x0, :tlsdesc:x`
fn descriptor_tiny_add(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    replace(code, place, [Form::ADR.to(0)], [MOVK | halves(distances)?.1]).map(|()| 0)
}

/// `adrp x0, :tlsdesc:x`
fn descriptor_page(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    replace(code, place, [Form::ADRP.to(0)], [MOVZ_HIGH | halves(distances)?.0]).map(|()| 0)
}

/// `ldr xN, [x0, :tlsdesc_lo12:x]`
fn descriptor_load(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64> {
    replace(code, place, [Form::LDR], [MOVK | halves(distances)?.1]).map(|()| 0)
}

/// `add x0, x0, :tlsdesc_lo12:x`
fn descriptor_add(code: &mut [u8], place: usize, _: &Distances) -> Option<u64> {
    replace(code, place, [Form::ADD.to(0)], [NOP]).map(|()| 0)
}

/// `blr xN`
fn descriptor_call(code: &mut [u8], place: usize, _: &Distances) -> Option<u64> {
    replace(code, place, [Form::BLR], [NOP]).map(|()| 0)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn other_code_is_left_alone() {
        let distances = Distances { variable: 0x1234, block: 0x1000 };
        for transition in TRANSITIONS {
            for length in 0..16 {
                for place in 0..16 {
                    let mut code = vec![0; length];
                    assert!((transition.rewrite)(&mut code, place, &distances).is_none());
                    assert_eq!(code, vec![0; length]);
                }
            }
        }
    }

    #[test]
    fn sequence_of_a_descriptor() {
        let distances = Distances { variable: 0x12_3456, block: 0x10 };
        let words: [u32; 4] = [0x9000_0000, 0xf940_0001, 0x9100_0000, 0xd63f_0020];
        let mut code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (number, place) in [(562, 0), (563, 4), (564, 8), (569, 12)] {
            let transition = TLS.transition(number).unwrap();
            assert_eq!((transition.rewrite)(&mut code, place, &distances), Some(0));
        }
        let words: Vec<u32> =
            code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // movz x0, #0x12, lsl #16; movk x0, #0x3456; nop; nop
        assert_eq!(words, [0xd2a0_0240, 0xf286_8ac0, NOP, NOP]);
    }
}
