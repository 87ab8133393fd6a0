//! Differences against lld and GNU ld, counted. `reloc-x86/tests/links/make.py` asked them.

#[cfg(test)]
#[path = "../../reloc-x86/tests/links/mod.rs"]
mod links;

use reloc_aarch64::Aarch64;

const LEAST: &str = "refuses the least value that the ABI allows";
const ODD: &str =
    "cuts off the low bits of a target that is no multiple of 4, which the ABI forbids";
const UNSIGNED: &str = "takes the upper half of unsigned values, as the ABI did until 2026";
const VENEER: &str = "makes a veneer, or cuts off the low bits of a target";

#[test]
fn aarch64_is_as_linkers_do() {
    let counts = links::compare::<Aarch64>(
        include_str!("links/aarch64.txt"),
        &[
            ("R_AARCH64_ABS32", "ld", 1, LEAST),
            ("R_AARCH64_ABS16", "ld", 1, LEAST),
            ("R_AARCH64_PREL32", "lld", 1, UNSIGNED),
            ("R_AARCH64_PREL16", "lld", 1, UNSIGNED),
            ("R_AARCH64_TSTBR14", "lld", 1, ODD),
            ("R_AARCH64_TSTBR14", "ld", 1, ODD),
            ("R_AARCH64_CONDBR19", "ld", 1, ODD),
            ("R_AARCH64_JUMP26", "lld", 4, VENEER),
            ("R_AARCH64_JUMP26", "ld", 3, VENEER),
            ("R_AARCH64_CALL26", "lld", 4, VENEER),
            ("R_AARCH64_CALL26", "ld", 3, VENEER),
            ("R_AARCH64_PLT32", "lld", 4, VENEER),
            ("R_AARCH64_MOVW_PREL_G3", "lld", 1, "writes MOVZ also for negative values"),
            ("R_AARCH64_LD64_GOTPAGE_LO15", "lld", 2, "does not check"),
            ("R_AARCH64_TLSLD_MOVW_DTPREL_G2", "ld", 1, LEAST),
            ("R_AARCH64_TLSLD_MOVW_DTPREL_G1", "ld", 1, LEAST),
            ("R_AARCH64_TLSLD_MOVW_DTPREL_G0", "ld", 1, LEAST),
            ("R_AARCH64_TLSLE_MOVW_TPREL_G2", "ld", 1, LEAST),
            ("R_AARCH64_TLSLE_MOVW_TPREL_G1", "ld", 3, "neither checks nor writes MOVN"),
            ("R_AARCH64_TLSLE_MOVW_TPREL_G0", "ld", 3, "neither checks nor writes MOVN"),
        ],
    );
    assert_eq!(counts, (99, 562), "kinds, answers that agree");
    let by_hand = links::compare::<Aarch64>(include_str!("links/by-hand.txt"), &[]);
    assert_eq!(by_hand, (13, 47), "kinds that no linker knows");
    // the counts of README.md
    assert_eq!(links::count::<Aarch64>(), 99 + 13);
}
