//! What instructions of RV64C do (the RISC-V Instruction Set Manual, volume I), as far as the fixtures have them.

/// What an instruction does to a processor with these registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// A register gets a value.
    Sets(u32, u64),
    /// A register gets what is at an address.
    Loads(u32, u64),
    /// A value is put at an address.
    Stores(u64, u64),
    /// Goes on there, if this is so.
    Branches(bool, u64),
    /// Goes back by `ra`.
    Returns,
    /// Nothing: it is none.
    Traps,
    /// Goes on there, and a register gets the address behind the instruction.
    Jumps(u32, u64),
}

/// Size of the instruction in bytes that starts with `code`.
pub(crate) const fn size(code: u32) -> u64 {
    if code & 3 == 3 { 4 } else { 2 }
}

/// The instruction `code` at `pc`.
pub(crate) fn of(code: u32, pc: u64, x: &[u64; 32]) -> Does {
    if size(code) == 4 { long(code, pc, x) } else { short(code & 0xffff, pc, x) }
}

/// Whether it is LUI, AUIPC or C.LUI.
pub(crate) const fn is_upper(code: u32) -> bool {
    matches!(code & 0x7f, 0x37 | 0x17) || (size(code) == 2 && code & 0xe003 == 0x6001)
}

const fn bits(code: u32, low: u32, width: u32) -> u32 {
    code >> low & ((1 << width) - 1)
}

/// Parts of a number: where each is in the instruction, how wide, and where in the number.
fn parts(code: u32, parts: &[(u32, u32, u32)]) -> u32 {
    parts.iter().fold(0, |all, &(low, width, at)| all | bits(code, low, width) << at)
}

fn signed(value: u32, width: u32) -> u64 {
    i64::from((value << (32 - width)).cast_signed() >> (32 - width)).cast_unsigned()
}

/// The lower 32 bits with their sign.
fn word(value: u64) -> u64 {
    signed(value as u32, 32)
}

fn long(code: u32, pc: u64, x: &[u64; 32]) -> Does {
    let rd = bits(code, 7, 5);
    let [rs1, rs2] = [15, 20].map(|low| x[bits(code, low, 5) as usize]);
    let sum = rs1.wrapping_add(signed(code >> 20, 12));
    let upper = signed(code & !0xfff, 32);
    match (code & 0x7f, code >> 12 & 7) {
        (0x37, _) => Does::Sets(rd, upper),
        (0x17, _) => Does::Sets(rd, pc.wrapping_add(upper)),
        (0x13, 0) => Does::Sets(rd, sum),
        (0x1b, 0) => Does::Sets(rd, word(sum)),
        (0x33, 0) if code >> 25 == 0 => Does::Sets(rd, rs1.wrapping_add(rs2)),
        (0x03, _) => Does::Loads(rd, sum),
        (0x23, _) => Does::Stores(rs1.wrapping_add(signed(code >> 25 << 5 | rd, 12)), rs2),
        (0x63, kind @ (0 | 1)) => {
            let to = parts(code, &[(31, 1, 12), (7, 1, 11), (25, 6, 5), (8, 4, 1)]);
            Does::Branches((rs1 == rs2) == (kind == 0), pc.wrapping_add(signed(to, 13)))
        }
        (0x6f, _) => {
            let to = parts(code, &[(31, 1, 20), (12, 8, 12), (20, 1, 11), (21, 10, 1)]);
            Does::Jumps(rd, pc.wrapping_add(signed(to, 21)))
        }
        (0x67, 0) if code == 0x0000_8067 => Does::Returns,
        (0x67, 0) => Does::Jumps(rd, sum & !1),
        _ => panic!("{code:08x} at {pc:x} is no instruction of the fixtures"),
    }
}

fn short(code: u32, pc: u64, x: &[u64; 32]) -> Does {
    let (rd, rs2) = (bits(code, 7, 5), bits(code, 2, 5));
    let [first, second] = [7, 2].map(|low| bits(code, low, 3) + 8);
    let (own, other) = (x[rd as usize], x[rs2 as usize]);
    let number = signed(parts(code, &[(12, 1, 5), (2, 5, 0)]), 6);
    match (code & 3, code >> 13) {
        (1, 0) => Does::Sets(rd, own.wrapping_add(number)),
        (1, 1) => Does::Sets(rd, word(own.wrapping_add(number))),
        (1, 2) => Does::Sets(rd, number),
        (1, 3) if rd != 2 => Does::Sets(rd, number << 12),
        (1, 5) => {
            let low = [(12, 1, 11), (8, 1, 10), (9, 2, 8), (6, 1, 7)];
            let high = [(7, 1, 6), (2, 1, 5), (11, 1, 4), (3, 3, 1)];
            let to = parts(code, &low) | parts(code, &high);
            Does::Jumps(0, pc.wrapping_add(signed(to, 12)))
        }
        (1, kind @ (6 | 7)) => {
            let to = parts(code, &[(12, 1, 8), (5, 2, 6), (2, 1, 5), (10, 2, 3), (3, 2, 1)]);
            let is_zero = x[first as usize] == 0;
            Does::Branches(is_zero == (kind == 6), pc.wrapping_add(signed(to, 9)))
        }
        (0, kind @ (2 | 3 | 6 | 7)) => {
            let offset = match kind & 1 {
                0 => parts(code, &[(10, 3, 3), (6, 1, 2), (5, 1, 6)]),
                _ => parts(code, &[(10, 3, 3), (5, 2, 6)]),
            };
            let address = x[first as usize].wrapping_add(offset.into());
            match kind < 4 {
                true => Does::Loads(second, address),
                false => Does::Stores(address, x[second as usize]),
            }
        }
        (2, 4) if code == 0x8082 => Does::Returns,
        (2, 4) => match (code >> 12 & 1, rs2) {
            (link, 0) => Does::Jumps(link, own),
            (0, _) => Does::Sets(rd, other),
            _ => Does::Sets(rd, own.wrapping_add(other)),
        },
        (0, 0) if code == 0 => Does::Traps,
        _ => panic!("{code:04x} at {pc:x} is no instruction of the fixtures"),
    }
}
