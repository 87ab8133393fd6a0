//! Where linkers are known to differ.

use archs::Architecture;
use elf_core::Kind;

/// The linker, the kind, for which values, and why.
type Known = (&'static str, &'static str, fn(i64) -> bool, &'static str);

const KNOWN: &[Known] = {
    const fn any(_: i64) -> bool {
        true
    }
    const fn rounded(value: i64) -> bool {
        value < -0x8000_0000 || value >= 0x7fff_f800
    }
    const fn beyond(value: i64) -> bool {
        value < -0x8000_0000 || value >= 0x8000_0000
    }
    const CUT: &str = "what does not fit is cut off";
    const SUBTRACTED: &str = "the addend is not subtracted";
    const ROUNDED: &str = "the check is not of the rounded value";
    const GNU: &str = "riscv64-linux-gnu-ld";
    const LLD: &str = "lld";
    &[
        (GNU, "R_RISCV_32", any, CUT),
        (LLD, "R_RISCV_32", any, CUT),
        (GNU, "R_RISCV_32_PCREL", any, CUT),
        (GNU, "R_RISCV_SUB6", any, SUBTRACTED),
        (GNU, "R_RISCV_SUB8", any, SUBTRACTED),
        (GNU, "R_RISCV_SUB16", any, SUBTRACTED),
        (GNU, "R_RISCV_SUB32", any, SUBTRACTED),
        (GNU, "R_RISCV_SUB64", any, SUBTRACTED),
        (LLD, "R_RISCV_SET32", beyond, "it must fit as a signed number"),
        (LLD, "R_LARCH_32", any, CUT),
        (LLD, "R_LARCH_ABS_HI20", any, CUT),
        (LLD, "R_LARCH_PCALA_HI20", any, CUT),
        (LLD, "R_LARCH_TLS_LE_HI20", any, CUT),
        (LLD, "R_LARCH_TLS_LE_HI20_R", any, CUT),
        (LLD, "R_LARCH_PCADD_HI20", rounded, ROUNDED),
        (LLD, "R_LARCH_PCADD_LO12", rounded, ROUNDED),
    ]
};

/// The same of addresses of 4 bytes, which linkers have in 8.
const KNOWN_OF_32: &[Known] = {
    const fn negative(value: i64) -> bool {
        value < 0
    }
    const UNSIGNED: &str = "no negative values";
    &[
        ("riscv64-linux-gnu-ld", "R_RISCV_RVC_LUI", negative, UNSIGNED),
        ("lld", "R_RISCV_SET32", negative, UNSIGNED),
        ("lld", "R_RISCV_SET_ULEB128", negative, "differences of 4 GiB"),
    ]
};

/// Of Arm.
const KNOWN_OF_ARM: &[Known] = {
    const fn between(value: i64) -> bool {
        value & 3 == 2
    }
    const fn negative(value: i64) -> bool {
        value < 0
    }
    const fn any(_: i64) -> bool {
        true
    }
    const fn no_literal(value: i64) -> bool {
        value & 3 != 0 || value < 0 || value > 0x3fc
    }
    const CUT: &str = "what does not fit is cut off";
    const EARLY: &str = "a veneer, one instruction before one is needed";
    const UNSIGNED: &str = "no negative values";
    const NO_BASE: &str = "segments begin at 0";
    const GNU: &str = "gnueabihf";
    const LLD: &str = "lld";
    &[
        (GNU, "R_ARM_PC24", between, CUT),
        (LLD, "R_ARM_PC24", between, CUT),
        (GNU, "R_ARM_PLT32", between, CUT),
        (LLD, "R_ARM_PLT32", between, CUT),
        (GNU, "R_ARM_CALL", between, CUT),
        (LLD, "R_ARM_CALL", between, CUT),
        (GNU, "R_ARM_JUMP24", between, CUT),
        (LLD, "R_ARM_JUMP24", between, CUT),
        (GNU, "R_ARM_THM_CALL", |value| value == 0xff_fffe, EARLY),
        (LLD, "R_ARM_THM_CALL", |value| value == 0xff_fffe, EARLY),
        (GNU, "R_ARM_THM_JUMP24", |value| value == 0xff_fffe, EARLY),
        (LLD, "R_ARM_THM_JUMP24", |value| value == 0xff_fffe, EARLY),
        (LLD, "R_ARM_THM_JUMP19", |value| value == 0xf_fffe, EARLY),
        (GNU, "R_ARM_ABS16", negative, UNSIGNED),
        (GNU, "R_ARM_ABS12", negative, UNSIGNED),
        (GNU, "R_ARM_ABS8", negative, UNSIGNED),
        (GNU, "R_ARM_THM_PC12", negative, UNSIGNED),
        (GNU, "R_ARM_THM_ABS5", any, "the value is not divided by 4"),
        (GNU, "R_ARM_THM_PC8", no_literal, CUT),
        (GNU, "R_ARM_THM_JUMP6", any, "the addend in the instruction is not subtracted"),
        (GNU, "R_ARM_THM_ALU_PREL_11_0", negative, "T is or-ed into the size of a negative value"),
        (GNU, "R_ARM_MOVW_BREL_NC", any, NO_BASE),
        (GNU, "R_ARM_MOVT_BREL", any, NO_BASE),
        (GNU, "R_ARM_MOVW_BREL", any, NO_BASE),
        (GNU, "R_ARM_THM_MOVW_BREL_NC", any, NO_BASE),
        (GNU, "R_ARM_THM_MOVT_BREL", any, NO_BASE),
        (GNU, "R_ARM_THM_MOVW_BREL", any, NO_BASE),
        (GNU, "R_ARM_THM_BF16", |value| value != value << 47 >> 47, CUT),
        (GNU, "R_ARM_THM_BF12", |value| value != value << 51 >> 51, CUT),
        (GNU, "R_ARM_THM_BF18", |value| value != value << 45 >> 45, CUT),
    ]
};

/// Whether a difference of this kind and value is known.
pub(crate) fn is_known(machine: Architecture, linker: &str, kind: &Kind, value: i64) -> bool {
    let more = match machine {
        Architecture::Arm => KNOWN_OF_ARM,
        Architecture::Rv32 => KNOWN_OF_32,
        _ => &[],
    };
    let mut known = KNOWN.iter().chain(more);
    known
        .any(|(whose, name, holds, _)| linker.contains(whose) && *name == kind.name && holds(value))
}
