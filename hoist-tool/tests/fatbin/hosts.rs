//! Host files that are changed, and then run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{fixture, folder, hoist, json, printed, read, refused};

/// Writes what the wrapper `kernels` leads to, as a runtime would read it.
const PROGRAM: &str = r"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
extern const struct { uint32_t magic, version; const char *data, *second; } kernels;
int show(void) {
    uint64_t size;
    memcpy(&size, kernels.data + 8, sizeof size);
    return kernels.magic == 0x466243b1 && fwrite(kernels.data, 1, size + 16, stdout) == size + 16 ? 0 : 1;
}
";

/// A machine that programs are compiled for, and run on.
struct Machine {
    name: &'static str,
    compiler: &'static str,
    emulator: &'static [&'static str],
}

const HERE: Machine = Machine { name: std::env::consts::ARCH, compiler: "cc", emulator: &[] };

const MACHINES: [Machine; 2] = [
    Machine { name: "x86_64", ..HERE },
    Machine {
        name: "aarch64",
        compiler: "aarch64-linux-gnu-gcc",
        emulator: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
    },
];

impl Machine {
    /// Whether programs can be compiled and run; else says that the test is skipped.
    fn is_there(&self, test: &str) -> bool {
        if self.emulator.is_empty() && self.name != HERE.name {
            println!("skipped: {test}: needs a machine of {}", self.name);
            return false;
        }
        let needs = [self.compiler].into_iter().chain(self.emulator.first().copied());
        let missing = |tool: &&str| {
            let output = Command::new(tool).arg("--version").output();
            !output.is_ok_and(|output| output.status.success())
        };
        let missing: Vec<_> = needs.filter(missing).collect();
        if let Some(tool) = missing.first() {
            println!("skipped: {test} on {}: needs {tool}", self.name);
        }
        missing.is_empty()
    }

    /// The compiler, run in a folder.
    fn cc(&self, at: &Path, words: &[&str]) {
        let mut command = Command::new(self.compiler);
        let status = command.args(words).current_dir(at).stdin(Stdio::null()).status();
        assert!(status.expect("a compiler").success(), "{} {words:?}", self.compiler);
    }

    /// What a program prints.
    fn run(&self, at: &Path, name: &str) -> Vec<u8> {
        let path = at.join(name).to_string_lossy().into_owned();
        let words: Vec<_> = self.emulator.iter().copied().chain([&*path]).collect();
        let (program, arguments) = words.split_first().expect("a program");
        let output = Command::new(program).args(arguments).current_dir(at).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{name}: {output:?}");
        output.stdout
    }
}

/// The bytes of region `index` of a file.
fn region(at: &Path, name: &str, index: usize) -> Vec<u8> {
    let row = &json(at, &["list", "--json", name])["files"][0]["regions"][index];
    let number = |key: &str| usize::try_from(row[key].as_u64().expect("a number")).expect("a size");
    read(at, name)[number("offset")..][..number("size")].to_vec()
}

/// What readelf says on standard error.
fn complaints(at: &Path, name: &str) -> String {
    let output = Command::new("readelf").args(["-aW", name]).current_dir(at).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stderr).into_owned())
}

const CHANGES: [&[&str]; 7] = [
    &["prune", "--keep", "sm_80"],
    &["prune", "--keep", "ptx"],
    &["recompress", "--with", "none"],
    &["recompress", "--with", "zstd"],
    &["recompress", "--with", "lz4-frame"],
    &["replace", "--region", "0", "--entry", "0", "--with", "k100f.cubin", "--any"],
    &["replace", "--region", "0", "--entry", "1", "--with", "k80.cubin", "--compress", "none"],
];

/// Entries of a file: arch and compression.
fn archs(at: &Path, name: &str) -> Vec<String> {
    let listed = json(at, &["list", "--json", name]);
    let entries = listed["files"][0]["regions"][0]["entries"].as_array().expect("entries").clone();
    entries
        .iter()
        .map(|entry| format!("{} {}", entry["arch"].as_str().unwrap_or(""), entry["compression"]))
        .collect()
}

/// A folder with `pack.o`, whose wrapper is `kernels`; none without a compiler.
fn packed(machine: &Machine, test: &str) -> Option<tempfile::TempDir> {
    if !machine.is_there(test) {
        return None;
    }
    let folder = folder(&["k75.cubin", "k80.cubin", "k100f.cubin", "k.ptx"]);
    let at = folder.path();
    printed(
        at,
        &[
            "pack",
            "-o",
            "pack.o",
            "--wrapper",
            "kernels",
            "--compress",
            "lz4",
            "--machine",
            machine.name,
            "k75.cubin",
            "k80.cubin",
            "k.ptx",
        ],
    );
    fs::write(at.join("show.c"), PROGRAM).expect("a file");
    fs::write(at.join("main.c"), "int show(void);\nint main(void) { return show(); }\n")
        .expect("a file");
    machine.cc(at, &["-fPIC", "-c", "show.c", "main.c"]);
    Some(folder)
}

/// Takes the section headers away, as some packers do.
fn strip_sections(at: &Path, name: &str) {
    let mut bytes = read(at, name);
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    fs::write(at.join(name), bytes).expect("a file");
}

#[test]
fn programs_and_libraries_stay_loadable() {
    for machine in &MACHINES {
        let Some(folder) = packed(machine, "programs_and_libraries_stay_loadable") else {
            continue;
        };
        stay_loadable(machine, folder.path());
    }
}

fn stay_loadable(machine: &Machine, at: &Path) {
    let cc = |words: &[&str]| machine.cc(at, &[words, &["show.o", "pack.o"]].concat());
    cc(&["-pie", "main.o", "-o", "pie"]);
    cc(&["-no-pie", "main.o", "-o", "fixed"]);
    cc(&["-static", "main.o", "-o", "static"]);
    cc(&["-shared", "-Wl,-z,now", "-o", "libshow.so"]);
    machine.cc(at, &["main.o", "libshow.so", "-Wl,-rpath,.", "-o", "shared"]);
    let mut hosts = vec![
        ("pie", "pie"),
        ("fixed", "fixed"),
        ("static", "static"),
        ("libshow.so", "shared"),
        ("bare", "bare"),
        ("libbare.so", "shared-bare"),
    ];
    if machine.name == "x86_64" {
        cc(&["-pie", "-Wl,-z,pack-relative-relocs", "main.o", "-o", "packed"]);
        hosts.push(("packed", "packed"));
    }
    cc(&["-shared", "-Wl,-soname,libbare.so", "-o", "libbare.so"]);
    machine.cc(at, &["main.o", "libbare.so", "-Wl,-rpath,.", "-o", "shared-bare"]);
    fs::copy(at.join("pie"), at.join("bare")).expect("a copy");
    strip_sections(at, "bare");
    strip_sections(at, "libbare.so");
    for (host, program) in hosts {
        assert!(machine.run(at, program) == region(at, host, 0), "{host}");
        let before = complaints(at, host);
        let copy = format!("{host}.copy");
        fs::copy(at.join(host), at.join(&copy)).expect("a copy");
        let original = read(at, &copy);
        for change in CHANGES {
            let words = [change, &[&*copy, "-o", host]].concat();
            let said = printed(at, &words);
            assert!(machine.run(at, program) == region(at, host, 0), "{host} {change:?}: {said}");
            assert_eq!(complaints(at, host), before, "{host} {change:?}");
            assert!(region(at, host, 0) != region(at, &copy, 0), "{host} {change:?}");
            // once more, on what was changed: back to one entry
            printed(at, &["prune", "--keep", "sm_75,sm_80,sm_100,ptx", host, "-o", host]);
            printed(at, &["recompress", "--with", "none", host, "-o", host]);
            assert!(machine.run(at, program) == region(at, host, 0), "{host} {change:?} twice");
        }
        assert_eq!(archs(at, &copy).len(), 3);
        assert!(read(at, &copy) == original, "nothing else has changed");
    }
}

/// A library whose region is the tail of its segment: what is freed is gone from the file.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_tail_of_a_segment_is_cut() {
    let Some(folder) = packed(&HERE, "the_tail_of_a_segment_is_cut") else { return };
    let at = folder.path();
    let (cc, run) = (|at, words: &[&str]| HERE.cc(at, words), |at, name| HERE.run(at, name));
    printed(
        at,
        &[
            "pack",
            "-o",
            "pack.o",
            "--wrapper",
            "kernels",
            "k75.cubin",
            "k80.cubin",
            "k100f.cubin",
            "k.ptx",
        ],
    );
    cc(at, &["-fPIC", "-fno-asynchronous-unwind-tables", "-c", "show.c"]);
    cc(
        at,
        &[
            "-shared",
            "-nostartfiles",
            "-Wl,--no-eh-frame-hdr",
            "show.o",
            "pack.o",
            "-o",
            "libshow.so",
        ],
    );
    cc(at, &["main.o", "libshow.so", "-Wl,-rpath,.", "-o", "shared"]);
    let (before, complained) = (read(at, "libshow.so"), complaints(at, "libshow.so"));
    let said = printed(at, &["prune", "--keep", "ptx", "libshow.so", "-o", "libshow.so"]);
    assert!(read(at, "libshow.so").len() + 4096 <= before.len(), "{said}");
    assert!(run(at, "shared") == region(at, "libshow.so", 0), "{said}");
    assert_eq!(complaints(at, "libshow.so"), complained);
}

#[test]
fn archives_and_objects_can_still_be_linked() {
    let Some(folder) = packed(&HERE, "archives_and_objects_can_still_be_linked") else { return };
    let at = folder.path();
    let (cc, run) = (|at, words: &[&str]| HERE.cc(at, words), |at, name| HERE.run(at, name));
    let ar = |words: &[&str]| {
        Command::new("ar").args(words).current_dir(at).status().is_ok_and(|status| status.success())
    };
    if !ar(&["rcs", "lib.a", "pack.o", "show.o"]) {
        println!("skipped: archives_and_objects_can_still_be_linked: needs ar");
        return;
    }
    for change in CHANGES {
        for (host, linked) in
            [("lib.a", &["main.o", "out.a"][..]), ("pack.o", &["main.o", "show.o", "out.o"])]
        {
            let out = if host == "lib.a" { "out.a" } else { "out.o" };
            printed(at, &[change, &[host, "-o", out]].concat());
            cc(at, &[linked, &["-o", "linked"]].concat());
            assert!(run(at, "linked") == region(at, out, 0), "{host} {change:?}");
            assert_eq!(complaints(at, out), "", "{host} {change:?}");
        }
    }
    // freed space is gone
    printed(at, &["prune", "--keep", "sm_80", "lib.a", "-o", "out.a"]);
    assert!(read(at, "out.a").len() < read(at, "lib.a").len());
    assert_eq!(archs(at, "out.a"), ["sm_80 \"lz4\""]);
}

/// Code of a program that takes the address of the region `first`: what the error says of the instruction, and the code.
const REFERRING: [(&str, &str); 2] = [
    ("(lea rax,[", "lea first(%rip), %rax; xor %eax, %eax; ret"),
    ("(add x0, x0, ", "adrp x0, first; add x0, x0, :lo12:first; mov w0, 0; ret"),
];

/// Two regions in one section, one behind the other.
const TWO_REGIONS: &str = r#"
        .section .nv_fatbin,"a"
        .balign 8
first:  .incbin "lz4.fatbin"
        .balign 8
second: .incbin "zstd.fatbin"
        .section .nvFatBinSegment,"aw"
        .balign 8
        .long 0x466243b1, 1
        .quad first, 0
        .long 0x466243b1, 1
        .quad second, 0
        .section .note.GNU-stack,"",%progbits
        .text
        .globl main
main:
"#;

#[test]
fn code_that_refers_to_a_region_is_named() {
    for (machine, (text, code)) in MACHINES.iter().zip(REFERRING) {
        if !machine.is_there("code_that_refers_to_a_region_is_named") {
            continue;
        }
        let folder = folder(&["lz4.fatbin", "zstd.fatbin", "k100f.cubin"]);
        let at = folder.path();
        fs::write(at.join("refers.s"), format!("{TWO_REGIONS}{code}\n")).expect("a file");
        machine.cc(at, &["-pie", "refers.s", "-o", "refers"]);
        let replace = |region| {
            let new = ["--entry", "0", "--with", "k100f.cubin", "--any", "--compress", "none"];
            [&["replace", "--region", region], &new[..], &["refers", "-o", "out"]].concat()
        };
        let said = refused(at, &replace("0"));
        assert!(said.starts_with("refers: the instruction at 0x") && said.contains(text), "{said}");
        assert!(!at.join("out").exists());
        // the other may move, and what fits stays
        let said = printed(at, &replace("1"));
        assert!(said.contains("1 region changed, 1 moved into a new segment"), "{said}");
        assert_eq!(machine.run(at, "out"), b"");
        let said = printed(at, &["recompress", "--with", "zstd", "refers", "-o", "out"]);
        assert!(!said.contains("moved"), "{said}");
        // where nothing refers to the first, it moves along: there is still one section
        let (_, code) =
            code.rsplit_once("first").and_then(|(_, rest)| rest.split_once(';')).expect("code");
        fs::write(at.join("refers.s"), format!("{TWO_REGIONS}{code}\n")).expect("a file");
        machine.cc(at, &["-pie", "refers.s", "-o", "refers"]);
        let said = printed(at, &replace("1"));
        assert!(said.contains("1 region changed, 2 moved into a new segment"), "{said}");
        let before = json(at, &["list", "--json", "refers"])["files"][0]["regions"].clone();
        let before = before.as_array().expect("regions");
        let listed = json(at, &["list", "--json", "out"]);
        for region in listed["files"][0]["regions"].as_array().expect("regions") {
            assert_eq!(region["section"], ".nv_fatbin");
            assert!(region["offset"].as_u64() > before.last().expect("regions")["offset"].as_u64());
        }
        assert_eq!(machine.run(at, "out"), b"");
    }
}

#[test]
fn an_architecture_that_is_kept_keeps_code() {
    let folder = folder(&["k75.cubin", "k80.cubin", "k90a.cubin", "k90a.ptx"]);
    let at = folder.path();
    printed(at, &["pack", "-o", "a.fatbin", "k75.cubin", "k80.cubin", "k90a.cubin", "k90a.ptx"]);
    printed(at, &["pack", "-o", "b.fatbin", "k75.cubin", "k80.cubin"]);
    for (file, keep, sm, now) in [
        // what is for sm_80 runs on sm_86, and that for sm_75 not
        ("a.fatbin", "sm_75,sm_86", "sm_86", "elf for 80"),
        ("b.fatbin", "sm_75,compute_86", "sm_86", "elf for 80"),
        ("b.fatbin", "sm_75,compute_80", "sm_80", "elf for 80"),
    ] {
        let words = ["prune", "--keep", keep, file, "-o", "out.fatbin"];
        let said = refused(at, &words);
        let told = format!("would have no code for {sm}, which runs {now} of it now: ");
        assert!(said.contains(&told) && said.ends_with("--allow-gaps"), "{keep}: {said}");
        assert!(!at.join("out.fatbin").exists());
        printed(at, &[&words[..], &["--allow-gaps"]].concat());
        fs::remove_file(at.join("out.fatbin")).expect("a file");
    }
    // PTX runs on all that is newer
    printed(at, &["prune", "--keep", "sm_75,sm_80,compute_90a", "a.fatbin", "-o", "out.fatbin"]);
}

#[test]
fn fatbins_change_too_and_bad_wishes_are_refused() {
    let names = ["suffixes.fatbin", "concat.fatbin", "lto.fatbin", "k75.cubin"];
    let folder = folder(&[&names[..], &["thin.a"]].concat());
    let at = folder.path();
    printed(at, &["prune", "--keep", "sm_80,sm_90a", "concat.fatbin", "-o", "out.fatbin"]);
    assert_eq!(printed(at, &["extract", "out.fatbin"]), "out.1.sm_80.cubin\nout.2.sm_90a.cubin\n");
    assert_eq!(read(at, "out.1.sm_80.cubin"), fs::read(fixture("k80.cubin")).expect("a fixture"));
    let said = printed(at, &["recompress", "--with", "lz4", "lto.fatbin", "-o", "out.fatbin"]);
    assert!(said.contains("entries that stay as they are: 1 (nvvm for sm_"), "{said}");
    assert!(said.contains("they are obfuscated, with a key that only NVIDIA's"), "{said}");
    assert_eq!(read(at, "out.fatbin"), read(at, "lto.fatbin"));
    let before = read(at, "out.fatbin");
    for (words, message) in [
        (
            &["prune", "--keep", "sm_70", "suffixes.fatbin"][..],
            "suffixes.fatbin: nothing of it would be left: --allow-empty",
        ),
        (
            &["replace", "--region", "7", "--entry", "0", "--with", "k75.cubin", "suffixes.fatbin"],
            "suffixes.fatbin: no region 7",
        ),
        (
            &["replace", "--region", "0", "--entry", "0", "--with", "k75.cubin", "suffixes.fatbin"],
            "k75.cubin: is elf for 75, in place of elf for 90a: --any allows it",
        ),
        (
            &["recompress", "--with", "lz4", "thin.a"],
            "thin.a: a thin archive: its members are files of their own",
        ),
    ] {
        assert_eq!(refused(at, &[words, &["-o", "out.fatbin"]].concat()), message);
        assert_eq!(read(at, "out.fatbin"), before, "a file that cannot be made is left alone");
    }
    let left = fs::read_dir(at).expect("a folder").count();
    assert!(
        hoist(at, &["prune", "--keep", "sm_70", "suffixes.fatbin", "-o", "new"]).status.code()
            == Some(1)
    );
    assert_eq!(fs::read_dir(at).expect("a folder").count(), left, "no temporary file stays");
}
