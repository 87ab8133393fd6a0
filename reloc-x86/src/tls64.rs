//! How x86-64 code becomes local exec (psABI AMD64 1.0, section 4.9 "Thread-Local Storage Optimization"; Drepper, chapter 5).
//!
//! The places of all kinds with a distance from the instruction's end have an addend of -4, which comes with the variable.

use elf_core::tls::{Tls, TpOffsets, Transition, Variant, sequence};

pub(crate) const TLS: Tls = Tls::new(Variant::II).ld_to_le_by_tp();

pub(crate) const GD_TO_LE: Transition = Transition::with_call(general);
pub(crate) const LD_TO_LE: Transition = Transition::with_call(local);
pub(crate) const DTPOFF32: Transition = Transition::new(offset32);
pub(crate) const DTPOFF64: Transition = Transition::new(offset64);
pub(crate) const IE_TO_LE: Transition = Transition::new(initial);
pub(crate) const IE_TO_LE_REX2: Transition = Transition::new(initial_rex2);
pub(crate) const DESC_TO_LE: Transition = Transition::new(descriptor);
pub(crate) const DESC_TO_LE_REX2: Transition = Transition::new(descriptor_rex2);
pub(crate) const DESC_CALL: Transition = Transition::new(call);

/// The TP offset as the immediate operand of an instruction, for a place with an addend of -4.
fn immediate(offsets: &TpOffsets) -> Option<[u8; 4]> {
    Some(i32::try_from(offsets.variable.checked_add(4)?).ok()?.to_le_bytes())
}

/// `lea x@tlsgd(%rip), %rdi` and a call: `mov %fs:0, %rax; lea x@tpoff(%rax), %rax`.
fn general(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    if let Some(code) = sequence::<16>(code, place, 4)
        // data16 lea; data16 data16 rex.W call, or data16 rex.W call through the GOT
        && let [0x66, 0x48, 0x8d, 0x3d, _, _, _, _, 0x66, 0x66, 0x48, 0xe8, ..]
        | [0x66, 0x48, 0x8d, 0x3d, _, _, _, _, 0x66, 0x48, 0xff, 0x15, ..] = code
    {
        *code = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8d, 0x80, a, b, c, d];
        return Some(8);
    }
    let code = sequence::<22>(code, place, 3)?;
    far_call(code)?;
    *code = [
        0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8d, 0x80, a, b, c, d, // and a nop:
        0x66, 0x0f, 0x1f, 0x44, 0, 0,
    ];
    Some(6)
}

/// `lea x@tlsld(%rip), %rdi` and a call: `mov %fs:0, %rax`, with prefixes that do nothing.
fn local(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    if let Some(code) = sequence::<13>(code, place, 3)
        && let [0x48, 0x8d, 0x3d, _, _, _, _, 0xff, 0x15, ..] = code
    {
        *code = [0x66, 0x66, 0x66, 0x66, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
        return Some(6);
    }
    if let Some(code) = sequence::<12>(code, place, 3)
        && let [0x48, 0x8d, 0x3d, _, _, _, _, 0xe8, ..] = code
    {
        *code = [0x66, 0x66, 0x66, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
        return Some(5);
    }
    let code = sequence::<22>(code, place, 3)?;
    far_call(code)?;
    *code = [
        0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, // a nop, then:
        0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0,
    ];
    Some(6)
}

/// `lea ..(%rip), %rdi; movabs $__tls_get_addr@pltoff, %rax; add %rbx or %r15, %rax; call *%rax`: the large code model.
const fn far_call(code: &[u8; 22]) -> Option<()> {
    match code {
        #[rustfmt::skip]
        [0x48, 0x8d, 0x3d, _, _, _, _, 0x48, 0xb8, _, _, _, _, _, _, _, _,
            0x48, 0x01, 0xd8, 0xff, 0xd0]
        | [0x48, 0x8d, 0x3d, _, _, _, _, 0x48, 0xb8, _, _, _, _, _, _, _, _,
            0x4c, 0x01, 0xf8, 0xff, 0xd0] => Some(()),
        _ => None,
    }
}

/// The DTP offset becomes the TP offset.
fn offset32(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let tp_offset = i32::try_from(offsets.variable).ok()?;
    *sequence(code, place, 0)? = tp_offset.to_le_bytes();
    Some(0)
}

/// The same in eight bytes.
fn offset64(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    *sequence(code, place, 0)? = offsets.variable.to_le_bytes();
    Some(0)
}

/// `mov` or `add x@gottpoff(%rip), %reg`: the same with an immediate operand, or `lea`.
fn initial(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    let code: &mut [u8; 7] = sequence(code, place, 3)?;
    let [rex @ (0x48 | 0x4c), opcode, modrm, ..] = *code else { return None };
    if modrm & 0o307 != 0o005 {
        return None;
    }
    let register = modrm >> 3;
    // the register is operand of the field for the base, or of both
    let high = if rex == 0x4c { 0x01 } else { 0 };
    *code = match (opcode, register) {
        (0x8b, _) => [0x48 | high, 0xc7, 0o300 | register, a, b, c, d],
        // with %rsp and %r12 for a base, lea would be longer
        (0x03, 4) => [0x48 | high, 0x81, 0o300 | register, a, b, c, d],
        (0x03, _) => [rex | high, 0x8d, 0o200 | register << 3 | register, a, b, c, d],
        _ => return None,
    };
    Some(0)
}

/// `mov` or `add x@gottpoff(%rip), %reg` of the upper registers of APX: the same with an immediate operand.
fn initial_rex2(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    let code: &mut [u8; 8] = sequence(code, place, 4)?;
    let [0xd5, bits, opcode, modrm, ..] = *code else { return None };
    if modrm & 0o307 != 0o005 {
        return None;
    }
    let opcode = match opcode {
        0x8b => 0xc7,
        0x03 => 0x81,
        _ => return None,
    };
    *code = [0xd5, as_base(bits)?, opcode, 0o300 | modrm >> 3, a, b, c, d];
    Some(0)
}

/// The bits of a REX2 prefix (M0 R4 X4 B4 W R3 X3 B3) for an operand of 8 bytes, moved from the register's field to the base's.
const fn as_base(bits: u8) -> Option<u8> {
    const W: u8 = 0x08;
    const R: u8 = 0x44;
    if bits & !R != W { None } else { Some(W | (bits & R) >> 2) }
}

/// `lea x@tlsdesc(%rip), %rax`: `mov $x@tpoff, %rax`.
fn descriptor(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    let code: &mut [u8; 7] = sequence(code, place, 3)?;
    let [rex @ (0x48 | 0x4c), 0x8d, modrm, ..] = *code else { return None };
    if modrm & 0o307 != 0o005 {
        return None;
    }
    let high = if rex == 0x4c { 0x01 } else { 0 };
    *code = [0x48 | high, 0xc7, 0o300 | modrm >> 3, a, b, c, d];
    Some(0)
}

/// The same of the upper registers of APX.
fn descriptor_rex2(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    let code: &mut [u8; 8] = sequence(code, place, 4)?;
    let [0xd5, bits, 0x8d, modrm, ..] = *code else { return None };
    if modrm & 0o307 != 0o005 {
        return None;
    }
    *code = [0xd5, as_base(bits)?, 0xc7, 0o300 | modrm >> 3, a, b, c, d];
    Some(0)
}

/// `call *x@tlscall(%rax)`: a nop of its length.
fn call(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    let code: &mut [u8; 2] = sequence(code, place, 0)?;
    if *code != [0xff, 0x10] {
        return None;
    }
    *code = [0x66, 0x90];
    Some(0)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::x86_64::*;
    use elf_core::{Special, find};
    use std::vec;
    use std::vec::Vec;

    const DISTANCES: TpOffsets = TpOffsets::new(-0x14, -0x40);

    fn transition(number: u32) -> Option<Transition> {
        match find(KINDS, number)?.special {
            Special::Transition(transition) => Some(transition),
            _ => None,
        }
    }

    fn rewritten(number: u32, code: &[u8], place: usize) -> Option<(Vec<u8>, u64)> {
        let mut code = code.to_vec();
        let call = (transition(number)?.rewrite)(&mut code, place, &DISTANCES)?;
        Some((code, call))
    }

    #[test]
    fn registers_of_initial_exec() {
        // add x@gottpoff(%rip), %r13: lea -0x10(%r13), %r13
        let (code, _) = rewritten(R_X86_64_GOTTPOFF, &[0x4c, 0x03, 0x2d, 0, 0, 0, 0], 3).unwrap();
        assert_eq!(code, [0x4d, 0x8d, 0xad, 0xf0, 0xff, 0xff, 0xff]);
        // add x@gottpoff(%rip), %r12: add $-0x10, %r12
        let (code, _) = rewritten(R_X86_64_GOTTPOFF, &[0x4c, 0x03, 0x25, 0, 0, 0, 0], 3).unwrap();
        assert_eq!(code, [0x49, 0x81, 0xc4, 0xf0, 0xff, 0xff, 0xff]);
        // mov x@gottpoff(%rip), %r24: mov $-0x10, %r24
        let (code, _) =
            rewritten(R_X86_64_CODE_4_GOTTPOFF, &[0xd5, 0x4c, 0x8b, 0x05, 0, 0, 0, 0], 4).unwrap();
        assert_eq!(code, [0xd5, 0x19, 0xc7, 0xc0, 0xf0, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn other_code_is_left_alone() {
        for kind in KINDS {
            let Some(transition) = transition(kind.number) else { continue };
            for length in 0..24 {
                for place in 0..24 {
                    let mut code = vec![0xcc; length];
                    let done = (transition.rewrite)(&mut code, place, &DISTANCES);
                    let is_data = matches!(kind.number, R_X86_64_DTPOFF64 | R_X86_64_DTPOFF32);
                    assert!(is_data || (done.is_none() && code == vec![0xcc; length]));
                }
            }
        }
    }

    #[test]
    fn calls_are_where_the_sequence_has_them() {
        let mut code = vec![0x66, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0x66, 0x66, 0x48, 0xe8];
        code.extend([0; 4]);
        assert_eq!(rewritten(R_X86_64_TLSGD, &code, 4).map(|(_, call)| call), Some(8));
        assert!(rewritten(R_X86_64_TLSGD, &code[..15], 4).is_none());
    }
}
