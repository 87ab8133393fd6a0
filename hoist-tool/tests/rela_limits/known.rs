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

/// Whether a difference of this kind and value is known.
pub(crate) fn is_known(machine: Architecture, linker: &str, kind: &Kind, value: i64) -> bool {
    let more = if machine == Architecture::Rv32 { KNOWN_OF_32 } else { &[] };
    let mut known = KNOWN.iter().chain(more);
    known
        .any(|(whose, name, holds, _)| linker.contains(whose) && *name == kind.name && holds(value))
}
