//! Instructions with the registers of APX, which assemblers and linkers of before 2025 do not know: assembled here, as compilers will.

use std::process::{Command, Stdio};

use crate::compare::{Outcome, compare};
use crate::linker::Linker;

/// Loads and operations through the GOT and on thread-local variables, with a REX2 prefix. What has an EVEX prefix (`CODE_6_GOTTPOFF`) keeps
/// its GOT entry here, and becomes local exec there.
const SOURCE: &str = "
    .text
    .globl _start
_start:
    movq far@GOTPCREL(%rip), %r16
    addq far@GOTPCREL(%rip), %r17
    testq %r18, far@GOTPCREL(%rip)
    cmpq far@GOTPCREL(%rip), %r31
    movq variable@gottpoff(%rip), %r16
    addq variable@gottpoff(%rip), %r31
    ret
    .data
    .globl far
far:
    .quad _start
    .section .tdata, \"awT\", @progbits
    .globl variable
    .quad 0
variable:
    .quad 1
";

/// The number of the instructions above that have such a relocation.
const GOT_FIELDS: usize = 6;

fn linked(test: &str, relax: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, object) = (folder.path().join("apx.s"), folder.path().join("apx.o"));
    std::fs::write(&source, SOURCE).expect("a source");
    let mut assembler = Command::new("llvm-mc-22");
    assembler.args(["-triple=x86_64", "-mattr=+egpr", "-filetype=obj", "-o"]);
    let status = assembler.arg(&object).arg(&source).stderr(Stdio::inherit()).status();
    let (Ok(status), Some(linker)) = (status, Linker::find(&["ld.lld-22"])) else {
        println!("skipped: {test}: needs llvm-mc-22 and ld.lld-22");
        return;
    };
    assert!(status.success());
    match compare(&linker, &[object], 0x40_0000, relax, folder.path()) {
        Outcome::Equal { got, sections, .. } => {
            assert_eq!((got, sections), (GOT_FIELDS, 3));
        }
        Outcome::Different(all) => panic!("{test}: {}", all.join("\n")),
        Outcome::Refused(why) | Outcome::LinkerRefused(why) | Outcome::BothRefused(why) => {
            panic!("{test}: {why}")
        }
    }
}

#[test]
fn apx_as_lld() {
    linked("apx_as_lld", false);
}

#[test]
fn apx_as_lld_relaxed() {
    linked("apx_as_lld_relaxed", true);
}
