//! Programs whose regions grow, move and go: they run, and print what is there now.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::expect_used, reason = "tests may")]

use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use elf_core::File;
use elf_core::names::{PT_LOAD, SHF_ALLOC, SHF_WRITE, SHT_PROGBITS, STT_TLS};
use elf_core::raw64::{Rela, Shdr};
use elf_rewrite::{Error, ErrorKind, Referrer, Remark, RewritePlan, Rewriter};
use zerocopy::byteorder::LE;
use zerocopy::{FromBytes as _, FromZeros as _, IntoBytes as _};

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
    compiled(test, folder, PROGRAM, options)
}

/// What a source becomes.
fn compiled(test: &str, folder: &Path, text: &str, options: &[&str]) -> Option<Vec<u8>> {
    let (source, out) = (folder.join("program.c"), folder.join("program"));
    fs::write(&source, text).expect("a file");
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
    section_of(bytes, "regions")
}

/// The bytes of a section.
fn section_of(bytes: &[u8], wanted: &str) -> Range<u64> {
    let file = File::parse(bytes).expect("a program");
    let is = |section: &elf_core::SectionHeader| {
        file.section_name(section).is_ok_and(|name| name == wanted)
    };
    let found = file.sections().iter().find(is).expect("a section");
    found.offset..found.offset + found.size
}

/// The number of a section.
fn section_index(bytes: &[u8], wanted: &str) -> usize {
    let file = File::parse(bytes).expect("a program");
    let mut sections = file.sections().iter();
    let is = |section: elf_core::SectionHeader| {
        file.section_name(&section).is_ok_and(|name| name == wanted)
    };
    sections.position(is).expect("a section")
}

/// What the program prints that a plan makes.
fn printed(plan: &RewritePlan<&str>, bytes: &[u8], folder: &Path) -> String {
    let mut changed = Vec::new();
    plan.write(bytes, &mut changed).expect("bytes");
    assert_eq!(changed.len() as u64, plan.size());
    says(&changed, folder)
}

/// What a program prints.
fn says(program: &[u8], folder: &Path) -> String {
    let out = folder.join("changed");
    fs::write(&out, program).expect("a file");
    fs::set_permissions(&out, Permissions::from_mode(0o755)).expect("permissions");
    let output = loop {
        match Command::new(&out).output() {
            // a process that another test is about to start has our file open still
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            output => break output.expect("a program"),
        }
    };
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
fn what_no_header_tells_of_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut bytes) = program("what_no_header_tells_of_is_told", folder.path(), &[]) else {
        return;
    };
    let tail = |bytes: &[u8]| {
        let remarks = growing(bytes, "1\0").plan().expect("a plan").remarks;
        remarks.iter().find_map(|remark| match remark {
            Remark::TailKept(size) => Some(*size),
            _ => None,
        })
    };
    assert_eq!(tail(&bytes), None);
    // a section behind the section headers, as patchelf leaves some
    let index = section_index(&bytes, ".comment");
    let comment = section_of(&bytes, ".comment");
    let at = |offset: u64| usize::try_from(offset).expect("an offset");
    let table = u64::from_le_bytes(bytes[0x28..0x30].try_into().expect("eight bytes"));
    let place = at(table) + 64 * index + 24;
    let end = bytes.len() as u64;
    bytes.extend_from_within(at(comment.start)..at(comment.end));
    assert_eq!(tail(&bytes), Some(comment.end - comment.start));
    bytes[place..place + 8].copy_from_slice(&end.to_le_bytes());
    assert_eq!(tail(&bytes), None);
    bytes.extend(*b"signed");
    assert_eq!(tail(&bytes), Some(6));
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

/// Three large regions, and data behind them in the same segment.
const LARGE: &str = r#"
#include <stdio.h>
#define REGION __attribute__((section("regions"), aligned(16)))
static const char one[20000] REGION = "one";
static const char two[30000] REGION = "two";
static const char three[40000] REGION = "three";
const char *const pointers[] = {one, two, three};
const char *const *volatile all = pointers;
int main(void) { printf("%s %s %s\n", all[0], all[1], all[2]); return 0; }
"#;

#[test]
fn what_is_free_goes_from_the_file() {
    let test = "what_is_free_goes_from_the_file";
    for options in [
        &["-pie", "-fPIE"][..],
        &["-pie", "-fPIE", "-Wl,-z,noseparate-code", "-Wl,--hash-style=sysv"],
        &["-pie", "-fPIE", "-Wl,--build-id=none", "-Wl,-z,max-page-size=0x200000"],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(bytes) = compiled(test, folder.path(), LARGE, options) else { return };
        let regions = section(&bytes);
        let starts: Vec<u64> = [0, 20_000, 50_000].map(|at| regions.start + at).into();
        let ends = [20_000, 50_000, 90_000].map(|at| regions.start + at);
        // in whatever order the compiler has put them
        let is_start = |at: u64| {
            let at = usize::try_from(at).expect("an offset");
            bytes[at..].starts_with(b"one\0") || bytes[at..].starts_with(b"t")
        };
        assert!(starts.iter().all(|start| is_start(*start)), "{options:?}");
        let mut rewriter = Rewriter::open(&bytes).expect("a program");
        for ((start, end), new) in starts.iter().zip(ends).zip(["1\0", "2\0", "3\0"]) {
            rewriter.replace(*start..end.min(regions.end), new).expect("a region");
        }
        let plan = rewriter.plan().expect("a plan");
        assert_eq!((plan.moved, plan.in_place), (0, 3));
        assert!(plan.growth() < -80_000, "{options:?}: {}", plan.growth());
        assert_eq!(printed(&plan, &bytes, folder.path()), "1 2 3\n", "{options:?}");
        // and grows again
        let changed = fs::read(folder.path().join("changed")).expect("a program");
        let regions = section(&changed);
        assert_eq!(regions.end - regions.start, 34);
        let mut rewriter = Rewriter::open(&changed).expect("a program");
        rewriter.replace(regions.start..regions.start + 2, LONGER).expect("a region");
        rewriter.keep(regions.start + 16..regions.start + 18).expect("a region");
        rewriter.keep(regions.start + 32..regions.end).expect("a region");
        let plan = rewriter.plan().expect("a plan");
        assert_eq!(plan.moved, 3);
        let text = "something that takes more than sixteen bytes 2 3\n";
        assert_eq!(printed(&plan, &changed, folder.path()), text, "{options:?}");
    }
}

#[test]
fn a_region_with_a_relocation_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = PROGRAM.replace(
        "static const char one[16]",
        "const char *own REGION = one_;\nstatic const char one[16]",
    );
    let source =
        source.replace("#define REGION", "static const char one_[] = \"!\";\n#define REGION");
    let source = source.replace("const char one[16] REGION", "char one[16] REGION");
    let source = source.replace("const char two[16] REGION", "char two[16] REGION");
    let test = "a_region_with_a_relocation_is_refused";
    let Some(bytes) = compiled(test, folder.path(), &source, &["-pie", "-fPIE"]) else { return };
    let regions = section(&bytes);
    let mut rewriter = Rewriter::open(&bytes).expect("a program");
    rewriter.replace(regions, "nothing").expect("a region");
    let error = rewriter.plan().expect_err("an error");
    assert!(matches!(error.kind, ErrorKind::Relocated(_)), "{error}");
}

#[test]
fn what_follows_in_an_object_keeps_its_alignment() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "what_follows_in_an_object_keeps_its_alignment";
    let source = "__asm__(\".section regions,\\\"a\\\"\\n.balign 64\\n.ascii \\\"0123456789abc\\\"\\n.balign 64\\n\"\n\
                  \"behind: .ascii \\\"behind\\\"\\n.globl behind\\n.text\\n\");\n\
                  extern char behind; char *pointer = &behind;\n";
    let Some(bytes) = compiled(test, folder.path(), source, &["-c"]) else { return };
    let regions = section(&bytes);
    let mut rewriter = Rewriter::open(&bytes).expect("an object");
    rewriter.replace(regions.start..regions.start + 13, LONGER).expect("a region");
    let plan = rewriter.plan().expect("a plan");
    let mut changed = Vec::new();
    plan.write(&bytes, &mut changed).expect("bytes");
    let new = section(&changed);
    assert_eq!(new.end - new.start, 128 + 6);
    assert!(changed[usize::try_from(new.start + 128).expect("an offset")..].starts_with(b"behind"));
    // relocations in a form that is not read are no reason to go on
    let file = File::parse(&bytes).expect("an object");
    let number = file.sections().iter().position(|section| section.r#type == 4).expect("RELA");
    let row = usize::try_from(file.header().section_headers).expect("an offset") + 64 * number;
    let mut bytes = bytes.clone();
    bytes[row + 4..row + 8].copy_from_slice(&0x4000_0014_u32.to_le_bytes());
    let mut rewriter = Rewriter::open(&bytes).expect("an object");
    rewriter.replace(regions.start..regions.start + 13, LONGER).expect("a region");
    let error = rewriter.plan().expect_err("an error");
    assert_eq!(error.kind, ErrorKind::Relocations("compact relocations (CREL)"));
}

/// A table among the code whose first bytes are those of `lea rax, [rip + ...]`, and lead to the first region.
const TABLE: &str = r#"
__asm__(".text\n.globl table\n.hidden table\n.type table, @TYPE\ntable: .byte 0x48, 0x8d, 0x05\n"
        ".long first - . - 4\n.zero 64\n.size table, . - table\n"
        ".section regions,\"a\"\n.balign 16\nfirst: .asciz \"one\"\n.zero 12\nsecond: .asciz \"two\"\n.zero 12\n"
        ".section .data.rel.ro,\"aw\"\n.globl pointers\n.hidden pointers\n.balign 8\npointers: .quad first, SECOND\n.text\n");
#include <stdio.h>
extern const char *const pointers[], table[];
int main(void) { printf("%s %d\n", pointers[0], table[0]); return 0; }
"#;

#[test]
fn a_table_among_code_is_no_instruction() {
    let test = "a_table_among_code_is_no_instruction";
    let folder = tempfile::tempdir().expect("a folder");
    let source = TABLE.replace("SECOND", "second");
    let build = |name: &str| {
        let source = source.replace("@TYPE", name);
        compiled(test, folder.path(), &source, &["-pie", "-fPIE"])
    };
    let Some(bytes) = build("@object") else { return };
    let plan = growing(&bytes, LONGER).plan().expect("a plan");
    let text = printed(&plan, &bytes, folder.path());
    assert_eq!(text, "something that takes more than sixteen bytes 72\n");
    // bytes that nothing says of what they are, behind one that is no instruction
    let unknown = source.replace("\\ntable: .byte", "\\n.byte 0x06, 0x06\\ntable = .\\n.byte");
    let unknown =
        unknown.replace(".type table, @TYPE\\n", "").replace(".globl table\\n.hidden table\\n", "");
    let Some(bytes) = compiled(test, folder.path(), &unknown, &["-pie", "-fPIE", "-s"]) else {
        return;
    };
    growing(&bytes, LONGER).plan().expect("a plan");
    for name in ["@function", "@notype"] {
        let Some(bytes) = build(name) else { return };
        let error = growing(&bytes, LONGER).plan().expect_err("an error");
        let ErrorKind::Instruction { text, .. } = &error.kind else { unreachable!("{error}") };
        assert!(text.starts_with("lea rax"), "{error}");
    }
}

#[test]
fn a_region_that_nothing_points_to_is_left() {
    let test = "a_region_that_nothing_points_to_is_left";
    let folder = tempfile::tempdir().expect("a folder");
    let source = TABLE.replace("SECOND", "0").replace("@TYPE", "@object");
    let Some(bytes) = compiled(test, folder.path(), &source, &["-pie", "-fPIE"]) else { return };
    let regions = section(&bytes);
    let middle = regions.start + 16;
    let mut rewriter = Rewriter::open(&bytes).expect("a program");
    rewriter.replace(regions.start..middle, LONGER).expect("a region");
    rewriter.replace(middle..regions.end, LONGER).expect("a region");
    let error = rewriter.clone().plan().expect_err("an error");
    assert_eq!((error.at, error.kind), (middle, ErrorKind::Unreferenced));
    rewriter.leave_unreferenced();
    let plan = rewriter.plan().expect("a plan");
    assert_eq!(plan.left, [middle]);
    assert!(plan.remarks.contains(&Remark::Left(1)));
    let text = printed(&plan, &bytes, folder.path());
    assert_eq!(text, "something that takes more than sixteen bytes 72\n");
    let changed = fs::read(folder.path().join("changed")).expect("a program");
    let at = usize::try_from(middle).expect("an offset");
    assert_eq!(changed[at..at + 16], bytes[at..at + 16]);
}

#[test]
fn a_region_that_nothing_points_to_goes_along_unchanged() {
    let test = "a_region_that_nothing_points_to_goes_along_unchanged";
    let folder = tempfile::tempdir().expect("a folder");
    let source = TABLE.replace("SECOND", "0").replace("@TYPE", "@object");
    let Some(bytes) = compiled(test, folder.path(), &source, &["-pie", "-fPIE"]) else { return };
    let regions = section(&bytes);
    let middle = regions.start + 16;
    let mut rewriter = Rewriter::open(&bytes).expect("a program");
    rewriter.replace(regions.start..middle, LONGER).expect("a region");
    rewriter.keep(middle..regions.end).expect("a region");
    let plan = rewriter.plan().expect("a plan");
    let text = printed(&plan, &bytes, folder.path());
    assert_eq!(text, "something that takes more than sixteen bytes 72\n");
    let changed = fs::read(folder.path().join("changed")).expect("a program");
    let (old, new) = (&bytes[..], section(&changed));
    let size = usize::try_from(regions.end - middle).expect("a size");
    let at = |bytes: &[u8], end: u64| {
        let end = usize::try_from(end).expect("an offset");
        bytes[end - size..end].to_vec()
    };
    assert!(new.start > regions.end, "both are in the section of their name");
    assert_eq!(at(&changed, new.end), at(old, regions.end));
}

/// A region that becomes larger than it was, and a large one that becomes as large as it was, in sections of their own.
const APART: &str = r#"
#include <stdio.h>
#define IN(name) __attribute__((section(name), aligned(16)))
static const char one[16] IN("regions") = "one";
static const char two[50000] IN("others") = {'t', 'w', 'o', [40000] = 1};
const char *const pointers[] = {one, two};
const char *const *volatile all = pointers;
int zeros[1000];
int main(void) { printf("%.3s %s\n", all[0], all[1]); return zeros[999]; }
"#;

/// What a section has.
fn content<'a>(bytes: &'a [u8], name: &str) -> &'a [u8] {
    let Range { start, end } = section_of(bytes, name);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).expect("a section of the file")
}

/// The program with other regions, which still says what it did.
fn with_regions(bytes: &[u8], one: &[u8], two: &[u8], folder: &Path) -> Vec<u8> {
    let mut rewriter = Rewriter::open(bytes).expect("a program");
    for (name, new) in [("regions", one), ("others", two)] {
        let range = section_of(bytes, name);
        if content(bytes, name) == new {
            rewriter.keep(range).expect("a region");
        } else {
            rewriter.replace(range, new).expect("a region");
        }
    }
    let mut changed = Vec::new();
    rewriter.plan().expect("a plan").write(bytes, &mut changed).expect("bytes");
    assert_eq!(says(&changed, folder), "one two\n");
    changed
}

#[test]
fn what_grows_again_has_the_same_bytes() {
    let test = "what_grows_again_has_the_same_bytes";
    for options in [
        &["-pie", "-fPIE"][..],
        &["-pie", "-fPIE", "-s"],
        &["-pie", "-fPIE", "-Wl,-z,noseparate-code"],
        &["-pie", "-fPIE", "-Wl,--build-id=none", "-Wl,-z,max-page-size=0x200000"],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(bytes) = compiled(test, folder.path(), APART, options) else { return };
        let two = content(&bytes, "others").to_vec();
        for size in [100, 4099, 30_001] {
            let mut one = b"one".to_vec();
            one.resize(size, 7);
            let grown = with_regions(&bytes, &one, &two, folder.path());
            let packed = with_regions(&grown, b"one", &two, folder.path());
            assert!(packed.len() < grown.len() || size < 200, "{options:?} {size}");
            let again = with_regions(&packed, &one, &two, folder.path());
            assert!(again == grown, "{options:?} {size}: {} {}", grown.len(), again.len());
            // tables that make room for program headers may take the other's place, once
            let packed = with_regions(&grown, b"one", &two[..33], folder.path());
            let settled = with_regions(&packed, &one, &two, folder.path());
            for less in [33, 2000, 49_000] {
                let packed = with_regions(&settled, b"one", &two[..less], folder.path());
                let again = with_regions(&packed, &one, &two, folder.path());
                let sizes = (settled.len(), again.len());
                assert!(again == settled, "{options:?} {size} {less}: {sizes:?}");
            }
        }
    }
}

#[test]
fn program_headers_go_where_patchelf_took_something_away() {
    let test = "program_headers_go_where_patchelf_took_something_away";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = program(test, folder.path(), &["-pie", "-fPIE"]) else { return };
    let rpath = "/a/folder/that/is/not/there:".repeat(40);
    let path = folder.path().join("program");
    let status = Command::new("patchelf").args(["--set-rpath", &rpath]).arg(&path).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("skipped: {test}: needs patchelf");
        return;
    }
    let bytes = fs::read(path).expect("a program");
    let plan = growing(&bytes, LONGER).plan().expect("a plan");
    assert!(!plan.remarks.contains(&Remark::HeadersMoved), "{:?}", plan.remarks);
    let text = printed(&plan, &bytes, folder.path());
    assert_eq!(text, "something that takes more than sixteen bytes two\n");
    // what it did not write is not free
    let file = File::parse(&bytes).expect("a program");
    let at = file.header().program_headers + 56 * file.segments().len() as u64;
    let mut bytes = bytes.clone();
    bytes[usize::try_from(at).expect("an offset")] = 1;
    let plan = growing(&bytes, LONGER).plan().expect("a plan");
    assert!(plan.remarks.contains(&Remark::HeadersMoved), "{:?}", plan.remarks);
}

#[test]
fn relocations_that_are_kept_for_tools_follow() {
    let test = "relocations_that_are_kept_for_tools_follow";
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["-pie", "-fPIE", "-Wl,--emit-relocs"];
    let Some(bytes) = program(test, folder.path(), &options) else { return };
    let plan = growing(&bytes, LONGER).plan().expect("a plan");
    let text = printed(&plan, &bytes, folder.path());
    assert_eq!(text, "something that takes more than sixteen bytes two\n");
    let changed = fs::read(folder.path().join("changed")).expect("a program");
    let file = File::parse(&changed).expect("a program");
    let symbols = file.symbol_table().expect("symbols").expect("symbols");
    let values: Vec<_> = symbols.symbols().iter().map(|symbol| symbol.value).collect();
    let rows = |name: &str| {
        let rows = <[Rela<LE>]>::ref_from_bytes(content(&changed, name)).expect("relocations");
        rows.iter().map(|row| {
            let symbol = usize::try_from(row.r_info.get() >> 32).expect("a number");
            (row.r_offset.get(), symbol, row.r_addend.get().cast_unsigned())
        })
    };
    let applied: Vec<_> =
        rows(".rela.dyn").map(|(at, symbol, addend)| (symbol, (at, addend))).collect();
    let mut compared = 0;
    for (at, symbol, addend) in rows(".rela.data.rel.ro") {
        assert!(applied.contains(&(0, (at, values[symbol].wrapping_add(addend)))), "{at:#x}");
        compared += 1;
    }
    assert!(compared >= 2, "{compared} relocations");
}

#[test]
fn an_empty_section_stays_in_its_segment() {
    let test = "an_empty_section_stays_in_its_segment";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut bytes) = program(test, folder.path(), &["-pie", "-fPIE"]) else { return };
    // as mold leaves `.tm_clone_table` of the C runtime: where what the file has of the last segment ends
    let file = File::parse(&bytes).expect("a program");
    let loads = || file.segments().iter().filter(|segment| segment.r#type == PT_LOAD);
    let last = loads().max_by_key(|load| load.address).expect("a segment");
    let at = file.header().section_headers + 64 * section_index(&bytes, ".comment") as u64;
    let row = Shdr::<LE> {
        sh_type: SHT_PROGBITS.into(),
        sh_flags: (SHF_ALLOC | SHF_WRITE).into(),
        sh_addr: (last.address + last.file_size).into(),
        sh_offset: (last.offset + last.file_size).into(),
        ..Shdr::new_zeroed()
    };
    // all but its name
    let at = usize::try_from(at).expect("an offset") + 4;
    let row = &row.as_bytes()[4..];
    bytes[at..at + row.len()].copy_from_slice(row);
    let plan = growing(&bytes, LONGER).plan().expect("a plan");
    printed(&plan, &bytes, folder.path());
    let changed = fs::read(folder.path().join("changed")).expect("a program");
    let file = File::parse(&changed).expect("a program");
    let is = |load: &elf_core::ProgramHeader| {
        load.r#type == PT_LOAD && load.address == last.address && load.file_size == last.file_size
    };
    let same = file.segments().iter().find(is).expect("the segment");
    assert_eq!(section_of(&changed, ".comment").start, same.offset + same.file_size);
}

/// Names and values of thread-local variables.
fn thread_locals(bytes: &[u8]) -> Vec<(String, u64)> {
    let file = File::parse(bytes).expect("a program");
    let table = file.dynamic_symbol_table().expect("symbols").expect("symbols");
    let symbols = table.symbols().iter().filter(|symbol| symbol.r#type() == STT_TLS);
    symbols
        .map(|symbol| (table.name_of(&symbol).expect("a name").to_string(), symbol.value))
        .collect()
}

#[test]
fn thread_local_variables_keep_their_offsets() {
    let test = "thread_local_variables_keep_their_offsets";
    let folder = tempfile::tempdir().expect("a folder");
    // offsets in the block of a thread that would be addresses of tables
    let names: String = (0x200..0x600)
        .step_by(16)
        .map(|at| format!(".globl at_{at:x}\n.type at_{at:x}, @object\n.size at_{at:x}, 16\nat_{at:x}: .skip 16\n"))
        .collect();
    let block = format!(".section .tbss,\"awT\",@nobits\n.skip 0x200\n{names}.previous\n");
    let text = format!("{PROGRAM}\n__asm__({block:?});");
    for options in
        [&["-pie", "-fPIE", "-rdynamic"][..], &["-pie", "-fPIE", "-rdynamic", "-Wl,-z,norelro"]]
    {
        let Some(bytes) = compiled(test, folder.path(), &text, options) else { return };
        let plan = growing(&bytes, LONGER).plan().expect("a plan");
        let said = printed(&plan, &bytes, folder.path());
        assert_eq!(said, "something that takes more than sixteen bytes two\n");
        let changed = fs::read(folder.path().join("changed")).expect("a program");
        let (old, new) = (thread_locals(&bytes), thread_locals(&changed));
        let tables = section_of(&bytes, ".interp");
        assert_ne!(section_of(&changed, ".interp"), tables, "tables made room");
        assert!(old.iter().any(|(_, value)| tables.contains(value)));
        assert_eq!(new, old);
    }
}
