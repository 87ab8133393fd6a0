//! Programs whose regions grow, move and go: they run, and print what is there now.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::expect_used, reason = "tests may")]

use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use elf_core::File;
use elf_rewrite::{Error, ErrorKind, Plan, Referrer, Rewriter};

const PROGRAM: &str = r#"
#include <stdio.h>
#define REGION __attribute__((section("regions"), aligned(16)))
static const char one[16] REGION = "one";
static const char two[16] REGION = "two";
const char *const pointers[] = {one, two};
const char *const *volatile all = pointers;
int main(void) { printf("%s %s\n", all[0], all[1]); return 0; }
"#;

/// The program, or nothing if there is no compiler.
fn program(test: &str, folder: &Path, options: &[&str]) -> Option<Vec<u8>> {
    let (source, out) = (folder.join("program.c"), folder.join("program"));
    fs::write(&source, PROGRAM).expect("a file");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler).args(options).arg(&source).arg("-o").arg(&out).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("skipped: {test}: needs a C compiler");
        return None;
    }
    Some(fs::read(out).expect("a program"))
}

/// The bytes of the section of regions.
fn section(bytes: &[u8]) -> Range<u64> {
    let file = File::parse(bytes).expect("a program");
    let is = |section: &elf_core::SectionHeader| {
        file.section_name(section).is_ok_and(|name| name == "regions")
    };
    let found = file.sections().iter().find(is).expect("a section");
    found.offset..found.offset + found.size
}

/// What the program prints that a plan makes.
fn printed(plan: &Plan<&str>, bytes: &[u8], folder: &Path) -> String {
    let mut changed = Vec::new();
    plan.write(bytes, &mut changed).expect("bytes");
    assert_eq!(changed.len() as u64, plan.size());
    let out = folder.join("changed");
    fs::write(&out, changed).expect("a file");
    fs::set_permissions(&out, Permissions::from_mode(0o755)).expect("permissions");
    let output = Command::new(&out).output().expect("a program");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

const LONGER: &str = "something that takes more than sixteen bytes\0";

/// A rewriter for which the second region stays, and the first becomes another.
fn growing<'a>(bytes: &'a [u8], new: &'static str) -> Rewriter<'a, &'static str> {
    let regions = section(bytes);
    let middle = regions.start + 16;
    let mut rewriter = Rewriter::open(bytes).expect("a program");
    rewriter.replace(regions.start..middle, new).expect("a region");
    rewriter.keep(middle..regions.end).expect("a region");
    rewriter
}

#[test]
fn a_region_grows_and_its_section_goes_along() {
    let test = "a_region_grows_and_its_section_goes_along";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(bytes) = program(test, folder.path(), &["-pie", "-fPIE"]) else { return };
    let plan = growing(&bytes, LONGER).plan().expect("a plan");
    assert_eq!((plan.moved, plan.in_place), (2, 0));
    let text = printed(&plan, &bytes, folder.path());
    assert_eq!(text, "something that takes more than sixteen bytes two\n");
    // the section is the same, and the file can be changed again
    let changed = fs::read(folder.path().join("changed")).expect("a program");
    let regions = section(&changed);
    assert_eq!(regions.end - regions.start, 48 + 16);
    let mut rewriter = Rewriter::open(&changed).expect("a program");
    rewriter.replace(regions.start..regions.start + 48, "short\0").expect("a region");
    let plan = rewriter.plan().expect("a plan");
    assert_eq!((plan.moved, plan.in_place), (0, 1));
    assert_eq!(printed(&plan, &changed, folder.path()), "short two\n");
}

#[test]
fn what_shrinks_or_goes_leaves_zeros() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "what_shrinks_or_goes_leaves_zeros";
    let Some(bytes) = program(test, folder.path(), &["-pie", "-fPIE"]) else { return };
    let regions = section(&bytes);
    let mut rewriter = growing(&bytes, "1\0");
    rewriter.remove(regions.start + 16..regions.end).expect("a region");
    let plan = rewriter.plan().expect("a plan");
    assert_eq!((plan.in_place, plan.moved, plan.holes), (2, 0, 14 + 16));
    assert_eq!(printed(&plan, &bytes, folder.path()), "1 \n");
}

#[test]
fn at_fixed_addresses_pointers_have_to_be_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "at_fixed_addresses_pointers_have_to_be_known";
    let Some(bytes) = program(test, folder.path(), &["-no-pie", "-fno-pie"]) else { return };
    let refused = growing(&bytes, LONGER).plan().expect_err("an error");
    let Error { kind: ErrorKind::PointsInside { referrer: Referrer::Word(_), place, .. }, .. } =
        refused
    else {
        unreachable!("{refused}")
    };
    let mut rewriter = growing(&bytes, LONGER);
    rewriter.pointer(place);
    rewriter.pointer(place + 8);
    let plan = rewriter.plan().expect("a plan");
    let text = printed(&plan, &bytes, folder.path());
    assert_eq!(text, "something that takes more than sixteen bytes two\n");
}

#[test]
fn two_changes_to_the_same_bytes_are_refused() {
    let file = b"regions and nothing else";
    let mut rewriter = Rewriter::open(file).expect("a file");
    rewriter.replace(0..8, "a").expect("a region");
    rewriter.replace(4..12, "b").expect("a region");
    let error = rewriter.clone().plan().expect_err("an error");
    assert_eq!((error.at, error.kind), (4, ErrorKind::Overlap));
    assert_eq!(
        rewriter.replace(8..99, "c").expect_err("an error").kind,
        ErrorKind::Outside("a region")
    );
    let rewriter: Rewriter<'_, &str> = Rewriter::open(file).expect("a file");
    assert_eq!(rewriter.plan().expect_err("an error").kind, ErrorKind::Unknown);
}
