//! What an instruction does that loads, calls or compares what a GOT entry holds, however it is written: linkers choose
//! different words for the same.

use archs::Architecture;

/// Operation, register, and the value it works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    operation: u8,
    register: u8,
    value: u64,
}

const LOAD: u8 = 0x8b;

/// Where the instructions of a relocation start, counted back from its place, and how many bytes they are.
pub(crate) fn extent(machine: Architecture, r#type: u32) -> Option<(usize, usize)> {
    match (machine, r#type) {
        (Architecture::X86_64, 41) | (Architecture::I386, 43) => Some((2, 6)),
        (Architecture::X86_64, 9 | 42) => Some((3, 7)),
        (Architecture::Aarch64, 275 | 311) => Some((0, 8)),
        (Architecture::Aarch64, 282 | 283) => Some((0, 4)),
        _ => None,
    }
}

/// The meaning of `code` at `address`; `got` reads GOT entries, whose base is `got_base`.
pub(crate) fn meaning(
    machine: Architecture,
    code: &[u8],
    address: u64,
    got_base: u64,
    got: &dyn Fn(u64) -> Option<u64>,
) -> Option<Meaning> {
    match machine {
        Architecture::Aarch64 => aarch64(code, address, got),
        Architecture::X86_64 => x86(code, address, None, got),
        Architecture::I386 => x86(code, address, Some(got_base), got),
        other => panic!("no disassembler for {other} here"),
    }
}

/// With `got_base`, operands in memory count from there or are addresses, else from the end of the instruction.
fn x86(
    code: &[u8],
    address: u64,
    got_base: Option<u64>,
    got: &dyn Fn(u64) -> Option<u64>,
) -> Option<Meaning> {
    let (rex, rest) = match code {
        [rex, rest @ ..] if code.len() == 7 => (*rex, rest),
        _ => (0, code),
    };
    let [opcode, modrm, displacement @ ..] = rest else { return None };
    let end = address + code.len() as u64;
    let field = i32::from_le_bytes(displacement.try_into().ok()?);
    let relative = end.wrapping_add_signed(field.into());
    let immediate = if rex & 8 == 0 { u64::from(field as u32) } else { field as i64 as u64 };
    let entry = || match got_base {
        None => got(relative),
        Some(base) if modrm & 0o300 != 0 => got(base.wrapping_add_signed(field.into())),
        Some(_) => got(u64::from(field as u32)),
    };
    let (source, target) = (modrm >> 3 & 7 | (rex & 4) << 1, modrm & 7 | (rex & 1) << 3);
    let (operation, register, value) = match *opcode {
        LOAD => (LOAD, source, entry()?),
        0x8d => (LOAD, source, relative),
        0xc7 => (LOAD, target, immediate),
        0x85 => (0x85, source, entry()?),
        0xf7 => (0x85, target, immediate),
        0x81 => (modrm & 0o070 | 3, target, immediate),
        0xff => (modrm >> 3 & 7, 0, entry()?),
        0x67 if *modrm == 0xe8 => (2, 0, relative),
        0xe9 => {
            let field = i32::from_le_bytes(*rest.get(1..)?.first_chunk()?);
            (4, 0, (end - 1).wrapping_add_signed(field.into()))
        }
        operation => (operation, source, entry()?),
    };
    Some(Meaning { operation, register, value })
}

fn aarch64(code: &[u8], address: u64, got: &dyn Fn(u64) -> Option<u64>) -> Option<Meaning> {
    let (first, second) = code.split_first_chunk::<4>()?;
    let word = u32::from_le_bytes;
    if second.is_empty() {
        // a branch to the next instruction, or none
        let goes_on = matches!(word(*first), 0x1400_0001 | 0x9400_0001 | 0xd503_201f);
        return goes_on.then_some(Meaning { operation: 0, register: 0, value: 0 });
    }
    let (first, second) = (word(*first), word(*second.first_chunk()?));
    let immediate =
        |word: u32| i64::from((word >> 5 & 0x7ffff) << 13 | (word >> 29 & 3) << 11) << 32 >> 43;
    let page = (address & !0xfff).wrapping_add_signed(immediate(first) << 12);
    let low = u64::from(second >> 10 & 0xfff);
    let value = match (first & 0x9f00_0000, second & 0xffc0_0000) {
        (0x9000_0000, 0xf940_0000) => got(page + (low << 3))?,
        (0x9000_0000, 0x9100_0000) => page + low,
        _ if first == 0xd503_201f && second & 0x9f00_0000 == 0x1000_0000 => {
            (address + 4).wrapping_add_signed(immediate(second))
        }
        _ => return None,
    };
    let is_one_register = first == 0xd503_201f || second & 0x1f == first & 0x1f;
    is_one_register.then_some(Meaning { operation: LOAD, register: (second & 0x1f) as u8, value })
}
