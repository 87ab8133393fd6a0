//! `hoist link` against GNU ld and lld, which place the same sections at the same addresses: every byte of every section.
//!
//! What may differ, and how it is compared all the same: the order of GOT entries is each linker's own. A field that leads to
//! a GOT entry is compared after it was led to the other linker's entry of the same content. Relaxed instructions that do the same
//! in other words are taken for equal, and counted.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "linkers/apx.rs"]
mod apx;
#[path = "linkers/cases.rs"]
mod cases;
#[path = "linkers/compare.rs"]
mod compare;
#[path = "linkers/descriptors.rs"]
mod descriptors;
mod fixtures;
#[path = "linkers/got.rs"]
mod got;
#[path = "linkers/limits.rs"]
mod limits;
#[path = "linkers/linker.rs"]
mod linker;
#[path = "linkers/listed.rs"]
mod listed;
#[path = "linkers/meaning.rs"]
mod meaning;
#[path = "linkers/renamed.rs"]
mod renamed;
#[path = "linkers/sweep.rs"]
mod sweep;
#[path = "linkers/thumb.rs"]
mod thumb;
#[path = "linkers/unwinding.rs"]
mod unwinding;

use cases::compare_all;
use limits::compare_limits;

#[test]
fn x86_64_as_gnu_ld() {
    compare_all("x86_64_as_gnu_ld", "x86_64", 0x40_0000, &["x86_64-linux-gnu-ld", "ld.bfd"], false);
}

#[test]
fn x86_64_as_gnu_ld_relaxed() {
    compare_all(
        "x86_64_as_gnu_ld_relaxed",
        "x86_64",
        0x40_0000,
        &["x86_64-linux-gnu-ld", "ld.bfd"],
        true,
    );
}

#[test]
fn x86_64_as_lld() {
    compare_all("x86_64_as_lld", "x86_64", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn x86_64_as_lld_relaxed() {
    compare_all("x86_64_as_lld_relaxed", "x86_64", 0x40_0000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn i386_as_gnu_ld() {
    compare_all(
        "i386_as_gnu_ld",
        "i386",
        0x804_8000,
        &["x86_64-linux-gnu-ld", "i686-linux-gnu-ld", "ld.bfd"],
        false,
    );
}

#[test]
fn i386_as_gnu_ld_relaxed() {
    compare_all(
        "i386_as_gnu_ld_relaxed",
        "i386",
        0x804_8000,
        &["x86_64-linux-gnu-ld", "i686-linux-gnu-ld", "ld.bfd"],
        true,
    );
}

#[test]
fn i386_as_lld() {
    compare_all("i386_as_lld", "i386", 0x804_8000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn i386_as_lld_relaxed() {
    compare_all("i386_as_lld_relaxed", "i386", 0x804_8000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn aarch64_as_gnu_ld() {
    compare_all("aarch64_as_gnu_ld", "aarch64", 0x40_0000, &["aarch64-linux-gnu-ld"], false);
}

#[test]
fn aarch64_as_gnu_ld_relaxed() {
    compare_all("aarch64_as_gnu_ld_relaxed", "aarch64", 0x40_0000, &["aarch64-linux-gnu-ld"], true);
}

#[test]
fn aarch64_as_lld() {
    compare_all("aarch64_as_lld", "aarch64", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn aarch64_as_lld_relaxed() {
    compare_all("aarch64_as_lld_relaxed", "aarch64", 0x40_0000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn riscv64_as_gnu_ld() {
    compare_all("riscv64_as_gnu_ld", "riscv64", 0x40_0000, &["riscv64-linux-gnu-ld"], false);
}

#[test]
fn riscv64_as_lld() {
    compare_all("riscv64_as_lld", "riscv64", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn riscv64_as_gnu_ld_relaxed() {
    compare_all("riscv64_as_gnu_ld_relaxed", "riscv64", 0x40_0000, &["riscv64-linux-gnu-ld"], true);
}

#[test]
fn riscv64_as_lld_relaxed() {
    compare_all("riscv64_as_lld_relaxed", "riscv64", 0x40_0000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn riscv32_as_gnu_ld() {
    compare_all("riscv32_as_gnu_ld", "riscv32", 0x8000_0000, &["riscv64-linux-gnu-ld"], false);
}

#[test]
fn riscv32_as_gnu_ld_relaxed() {
    compare_all(
        "riscv32_as_gnu_ld_relaxed",
        "riscv32",
        0x8000_0000,
        &["riscv64-linux-gnu-ld"],
        true,
    );
}

#[test]
fn riscv32_as_lld_relaxed() {
    compare_all("riscv32_as_lld_relaxed", "riscv32", 0x40_0000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn loongarch64_as_lld() {
    compare_all("loongarch64_as_lld", "loongarch64", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn loongarch64_as_newer_lld() {
    const THREADS: &str = "loongarch64/threads-";
    let pair = |name| ["a", "b"].map(|it| format!("{THREADS}{it}-clang19-O2-{name}.o"));
    let pairs = ["desc", "initial", "nopic"].map(pair);
    let [desc, initial, nopic] = &pairs;
    listed::compare_newer(
        "loongarch64_as_newer_lld",
        &["ld.lld-22"],
        &[
            &["loongarch64/relax-tls.o"],
            &["loongarch64/relocations.o"],
            &["loongarch64/relocations.o", "loongarch64/absolute.o"],
            &[&desc[0], &desc[1]],
            &[&initial[0], &initial[1]],
            &[&nopic[0], &nopic[1]],
        ],
    );
}

#[test]
fn loongarch64_as_newer_lld_relaxed() {
    listed::compare_relaxed(
        "loongarch64_as_newer_lld_relaxed",
        &["ld.lld-22"],
        &[
            &["loongarch64/relax.o"],
            &["loongarch64/relax-descriptors.o"],
            &["loongarch64/relax-tls.o"],
            &["loongarch64/padding.o"],
        ],
    );
}

#[test]
fn loongarch64_limits_as_lld() {
    // lld cuts off upper parts, and has no stubs
    let (cut_off, stubs) =
        (["R_LARCH_PCALA_HI20", "R_LARCH_ABS_HI20"], ["R_LARCH_B26", "R_LARCH_CALL36"]);
    let programs = ["ld.lld", "ld.lld-19"];
    compare_limits(
        "loongarch64_limits_as_lld",
        "loongarch64/limits.o",
        &programs,
        &cut_off,
        &stubs,
    );
}

#[test]
fn riscv32_as_lld() {
    compare_all("riscv32_as_lld", "riscv32", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn arm_as_gnu_ld() {
    compare_all("arm_as_gnu_ld", "arm", 0x40_0000, &["arm-linux-gnueabihf-ld"], false);
}

#[test]
fn arm_be8_as_gnu_ld() {
    listed::compare_be8("arm_be8_as_gnu_ld", &["arm-linux-gnueabihf-ld"]);
}

#[test]
fn arm_be8_as_lld() {
    listed::compare_be8("arm_be8_as_lld", &["ld.lld", "ld.lld-19"]);
}

#[test]
fn arm_unwinding_as_gnu_ld() {
    unwinding::compare_all("arm_unwinding_as_gnu_ld", &["arm-linux-gnueabihf-ld"]);
}

#[test]
fn arm_unwinding_as_lld() {
    unwinding::compare_all("arm_unwinding_as_lld", &["ld.lld", "ld.lld-19"]);
}

#[test]
fn arm_as_lld() {
    compare_all("arm_as_lld", "arm", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
#[ignore = "compares every object below the folders in HOIST_SWEEP (colons between): minutes"]
fn sweep() {
    sweep::compare_folders(
        &std::env::var("HOIST_SWEEP").expect("HOIST_SWEEP names folders, with colons between"),
    );
}
