//! Instructions of extensions that rvdasm does not know: of the profiles RVA22 and RVA23, and what shortens code of microcontrollers (RISC-V ISA
//! manual, "B", "Zicond", "CMO", "Zawrs", "Zc"). The text is that of LLVM.

/// Names of registers in the calling convention.
const REGISTERS: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

/// For which registers an instruction is.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    Any,
    Only32,
    Only64,
}
use Width::{Any, Only32, Only64};

/// Operations of two registers: their words without them.
#[rustfmt::skip]
const BINARY: &[(u32, &str, Width)] = &[
    (0x2000_2033, "sh1add", Any), (0x2000_4033, "sh2add", Any), (0x2000_6033, "sh3add", Any),
    (0x0800_003b, "add.uw", Only64), (0x2000_203b, "sh1add.uw", Only64),
    (0x2000_403b, "sh2add.uw", Only64), (0x2000_603b, "sh3add.uw", Only64),
    (0x4000_7033, "andn", Any), (0x4000_6033, "orn", Any), (0x4000_4033, "xnor", Any),
    (0x0a00_6033, "max", Any), (0x0a00_7033, "maxu", Any),
    (0x0a00_4033, "min", Any), (0x0a00_5033, "minu", Any),
    (0x6000_1033, "rol", Any), (0x6000_5033, "ror", Any),
    (0x6000_103b, "rolw", Only64), (0x6000_503b, "rorw", Only64),
    (0x0a00_1033, "clmul", Any), (0x0a00_2033, "clmulr", Any), (0x0a00_3033, "clmulh", Any),
    (0x4800_1033, "bclr", Any), (0x4800_5033, "bext", Any),
    (0x6800_1033, "binv", Any), (0x2800_1033, "bset", Any),
    (0x0800_4033, "pack", Any), (0x0800_7033, "packh", Any), (0x0800_403b, "packw", Only64),
    (0x2800_2033, "xperm4", Any), (0x2800_4033, "xperm8", Any),
    (0x0e00_5033, "czero.eqz", Any), (0x0e00_7033, "czero.nez", Any),
];

/// Operations of one register.
#[rustfmt::skip]
const UNARY: &[(u32, &str, Width)] = &[
    (0x6000_1013, "clz", Any), (0x6010_1013, "ctz", Any), (0x6020_1013, "cpop", Any),
    (0x6040_1013, "sext.b", Any), (0x6050_1013, "sext.h", Any),
    (0x6000_101b, "clzw", Only64), (0x6010_101b, "ctzw", Only64), (0x6020_101b, "cpopw", Only64),
    (0x2870_5013, "orc.b", Any), (0x6870_5013, "brev8", Any),
    (0x6980_5013, "rev8", Only32), (0x6b80_5013, "rev8", Only64),
    (0x08f0_1013, "zip", Only32), (0x08f0_5013, "unzip", Only32),
    // `pack` and `packw` of no upper part
    (0x0800_4033, "zext.h", Only32), (0x0800_403b, "zext.h", Only64),
];

/// Operations of a register and the number of a bit.
const OF_BITS: &[(u32, &str)] = &[
    (0x6000_5013, "rori"),
    (0x4800_1013, "bclri"),
    (0x4800_5013, "bexti"),
    (0x6800_1013, "binvi"),
    (0x2800_1013, "bseti"),
];

const BLOCKS: &[(u32, &str)] = &[
    (0x0000_200f, "cbo.inval"),
    (0x0010_200f, "cbo.clean"),
    (0x0020_200f, "cbo.flush"),
    (0x0040_200f, "cbo.zero"),
];

/// The instruction of 32 bits that a word is, if it is one of these.
pub(super) fn long(word: u32, is_64: bool) -> Option<String> {
    let register = |at: u32| REGISTERS.get((word >> at & 31) as usize).copied().unwrap_or("");
    let (rd, rs1, rs2) = (register(7), register(15), register(20));
    let fits = |width: Width| width != if is_64 { Only32 } else { Only64 };
    let find = |table: &[(u32, &'static str, Width)], mask: u32| {
        let found = table.iter().find(|(code, _, width)| word & mask == *code && fits(*width));
        found.map(|(_, name, _)| *name)
    };
    if let Some(name) = find(UNARY, 0xfff0_707f) {
        return Some(format!("{name} {rd}, {rs1}"));
    }
    if let Some(name) = find(BINARY, 0xfe00_707f) {
        return Some(format!("{name} {rd}, {rs1}, {rs2}"));
    }
    let (mask, bits) = if is_64 { (0xfc00_707f, 63) } else { (0xfe00_707f, 31) };
    let of_bits = OF_BITS.iter().find(|(code, _)| word & mask == *code).map(|(_, name)| *name);
    let of_words = match word {
        _ if !is_64 => None,
        _ if word & 0xfe00_707f == 0x6000_501b => Some(("roriw", word >> 20 & 31)),
        _ if word & 0xfc00_707f == 0x0800_101b => Some(("slli.uw", word >> 20 & 63)),
        _ => None,
    };
    if let Some((name, bit)) = of_bits.map(|name| (name, word >> 20 & bits)).or(of_words) {
        return Some(format!("{name} {rd}, {rs1}, {bit}"));
    }
    if let Some((_, name)) = BLOCKS.iter().find(|(code, _)| word & 0xfff0_7fff == *code) {
        return Some(format!("{name} ({rs1})"));
    }
    match word {
        0x00d0_0073 => Some(String::from("wrs.nto")),
        0x01d0_0073 => Some(String::from("wrs.sto")),
        _ => None,
    }
}

/// The instruction of 16 bits that a word is, if it is one of these. `has_tables`: whether those of Zcmp and Zcmt stand where others have stores of
/// double precision.
pub(super) fn short(word: u32, is_64: bool, has_tables: bool) -> Option<String> {
    let short = |at: u32| REGISTERS.get((word >> at & 7) as usize + 8).copied().unwrap_or("");
    let (first, second) = (short(7), short(2));
    // bits 0 and 1 of an offset
    let offset = word >> 6 & 1 | word >> 4 & 2;
    let of_half = |name: &str| format!("{name} {second}, {}({first})", word >> 4 & 2);
    let text = match word & 0xfc03 {
        0x8000 => format!("lbu {second}, {offset}({first})"),
        0x8400 if word & 0x40 == 0 => of_half("lhu"),
        0x8400 => of_half("lh"),
        0x8800 => format!("sb {second}, {offset}({first})"),
        0x8c00 if word & 0x40 == 0 => of_half("sh"),
        0x9c01 => match word >> 5 & 3 {
            2 => format!("mul {first}, {first}, {second}"),
            3 => {
                let name = match word >> 2 & 7 {
                    0 => "zext.b",
                    1 => "sext.b",
                    2 => "zext.h",
                    3 => "sext.h",
                    4 if is_64 => "zext.w",
                    5 => "not",
                    _ => return None,
                };
                format!("{name} {first}, {first}")
            }
            _ => return None,
        },
        _ if has_tables => return table(word, is_64),
        _ => return None,
    };
    Some(text)
}

/// One of Zcmp or Zcmt.
fn table(word: u32, is_64: bool) -> Option<String> {
    let saved = |number: u32| if number < 2 { number + 8 } else { number + 16 };
    let saved = |at: u32| REGISTERS.get(saved(word >> at & 7) as usize).copied().unwrap_or("");
    match word & 0xfc03 {
        0xa002 => {
            let index = word >> 2 & 0xff;
            let name = if index < 32 { "cm.jt" } else { "cm.jalt" };
            return Some(format!("{name} {index}"));
        }
        0xac02 => {
            let name = match word >> 5 & 3 {
                1 => "cm.mvsa01",
                3 => "cm.mva01s",
                _ => return None,
            };
            return Some(format!("{name} {}, {}", saved(7), saved(2)));
        }
        _ => {}
    }
    let (name, is_push) = match word & 0xff03 {
        0xb802 => ("cm.push", true),
        0xba02 => ("cm.pop", false),
        0xbc02 => ("cm.popretz", false),
        0xbe02 => ("cm.popret", false),
        _ => return None,
    };
    let list = word >> 4 & 15;
    let last = match list {
        0..4 => return None,
        15 => 11,
        _ => list.saturating_sub(5),
    };
    let registers = match list {
        4 => String::from("{ra}"),
        5 => String::from("{ra, s0}"),
        _ => format!("{{ra, s0-s{last}}}"),
    };
    // the return address and the saved registers, in units of 16 bytes
    let count = if list == 4 { 1 } else { last + 2 };
    let size = (count * if is_64 { 8u32 } else { 4 }).next_multiple_of(16) + (word >> 2 & 3) * 16;
    let sign = if is_push { "-" } else { "" };
    Some(format!("{name} {registers}, {sign}{size}"))
}
