//! How i386 code becomes local exec (Drepper, "ELF Handling For Thread-Local Storage", chapter 5; for descriptors: Oliva,
//! "Thread-Local Storage Descriptors for IA32 and AMD64/EM64T").

use elf_core::tls::{Tls, TpOffsets, Transition, Variant, sequence};

pub(crate) const TLS: Tls = Tls::new(Variant::II).ld_to_le_by_tp();

pub(crate) const GD_TO_LE: Transition = Transition::with_call(general);
pub(crate) const LD_TO_LE: Transition = Transition::with_call(local);
pub(crate) const LDO: Transition = Transition::new(offset);
pub(crate) const IE_TO_LE: Transition = Transition::new(initial);
pub(crate) const GOTIE_TO_LE: Transition = Transition::new(through_got);
pub(crate) const DESC_TO_LE: Transition = Transition::new(descriptor);
pub(crate) const DESC_CALL: Transition = Transition::new(call);

fn immediate(offsets: &TpOffsets) -> Option<[u8; 4]> {
    Some(i32::try_from(offsets.variable).ok()?.to_le_bytes())
}

/// `lea x@tlsgd(..), %eax` and a call: `mov %gs:0, %eax; sub $x@tpoff, %eax`, as GNU ld and lld have it.
fn general(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let negated = i32::try_from(offsets.variable.checked_neg()?).ok()?;
    let [a, b, c, d] = negated.to_le_bytes();
    let local_exec = [0x65, 0xa1, 0, 0, 0, 0, 0x81, 0xe8, a, b, c, d];
    // lea x@tlsgd(,%ebx,1), %eax; call ___tls_get_addr@plt
    if let Some(code) = sequence::<12>(code, place, 3)
        && let [0x8d, 0x04, 0x1d, _, _, _, _, 0xe8, ..] = code
    {
        *code = local_exec;
        return Some(5);
    }
    let code = sequence::<12>(code, place, 2)?;
    let [0x8d, base, _, _, _, _, call @ ..] = code else { return None };
    let distance = after_base(*base, call)?;
    *code = local_exec;
    Some(distance)
}

/// A call behind `lea x@..(%base), %eax`, which ends at the place: how far from the place its relocation must be.
const fn after_base(base: u8, call: &[u8; 6]) -> Option<u64> {
    // %eax is loaded with a distance of 32 bits from a base that is not %esp
    if base & 0o370 != 0o200 || base == 0o204 {
        return None;
    }
    match call {
        // call ___tls_get_addr@plt; nop
        [0xe8, _, _, _, _, 0x90] => Some(5),
        // call *___tls_get_addr@got(%base)
        [0xff, through, ..] if *through & 0o370 == 0o220 => Some(6),
        // addr32 call ___tls_get_addr
        [0x67, 0xe8, ..] => Some(6),
        _ => None,
    }
}

/// `lea x@tlsldm(%base), %eax` and a call: `mov %gs:0, %eax`, and instructions that do nothing.
fn local(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    if let Some(code) = sequence::<11>(code, place, 2)
        && let [0x8d, base, _, _, _, _, 0xe8, ..] = *code
        && base & 0o370 == 0o200
        && base != 0o204
    {
        *code = [0x65, 0xa1, 0, 0, 0, 0, 0x90, 0x8d, 0x74, 0x26, 0];
        return Some(5);
    }
    let code = sequence::<12>(code, place, 2)?;
    let [0x8d, base, _, _, _, _, call @ ..] = code else { return None };
    let distance = after_base(*base, call)?;
    *code = [0x65, 0xa1, 0, 0, 0, 0, 0x8d, 0xb6, 0, 0, 0, 0];
    Some(distance)
}

/// The DTP offset becomes the TP offset.
fn offset(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    *sequence(code, place, 0)? = immediate(offsets)?;
    Some(0)
}

/// `mov` or `add x@indntpoff, %reg`: the same with an immediate operand.
fn initial(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    if let Some(code) = sequence::<6>(code, place, 2)
        && let [opcode @ (0x8b | 0x03), modrm, ..] = *code
        && modrm & 0o307 == 0o005
    {
        let opcode = if opcode == 0x8b { 0xc7 } else { 0x81 };
        *code = [opcode, 0o300 | modrm >> 3, a, b, c, d];
        return Some(0);
    }
    // mov x@indntpoff, %eax, in a form of its own
    let code = sequence::<5>(code, place, 1)?;
    let [0xa1, ..] = *code else { return None };
    *code = [0xb8, a, b, c, d];
    Some(0)
}

/// `mov`, `add` or `sub x@gotntpoff(%base), %reg`: the same with an immediate operand, or `lea`.
fn through_got(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    let code: &mut [u8; 6] = sequence(code, place, 2)?;
    let [opcode, modrm, ..] = *code;
    if modrm & 0o300 != 0o200 || modrm & 0o007 == 4 {
        return None;
    }
    let register = modrm >> 3 & 7;
    *code = match (opcode, register) {
        (0x8b, _) => [0xc7, 0o300 | register, a, b, c, d],
        (0x2b, _) => [0x81, 0o350 | register, a, b, c, d],
        // with %esp for a base, lea would be longer
        (0x03, 4) => [0x81, 0o300 | register, a, b, c, d],
        (0x03, _) => [0x8d, 0o200 | register << 3 | register, a, b, c, d],
        _ => return None,
    };
    Some(0)
}

/// `lea x@tlsdesc(%ebx), %reg`: `lea x@ntpoff, %reg`.
fn descriptor(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64> {
    let [a, b, c, d] = immediate(offsets)?;
    let code: &mut [u8; 6] = sequence(code, place, 2)?;
    let [0x8d, modrm, ..] = *code else { return None };
    if modrm & 0o300 != 0o200 || modrm & 0o007 == 4 {
        return None;
    }
    *code = [0x8d, modrm & 0o070 | 0o005, a, b, c, d];
    Some(0)
}

/// `call *x@tlscall(%eax)`: a nop of its length.
fn call(code: &mut [u8], place: usize, _: &TpOffsets) -> Option<u64> {
    let code: &mut [u8; 2] = sequence(code, place, 0)?;
    if *code != [0xff, 0x10] {
        return None;
    }
    *code = [0x66, 0x90];
    Some(0)
}
