//! Files by which somebody means harm: small ones that ask for much, names that move the cursor, links that lead away.
//!
//! The program runs with little address space, so that what is not refused fails, and with a clock.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test"
)]
#![cfg(target_os = "linux")]

#[path = "hostile/elf.rs"]
mod elf;
mod fixtures;
#[path = "hostile/names.rs"]
mod names;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use elf::{Section, object};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use tempfile::TempDir;

/// KiB of address space: the program itself, its threads' stacks and 400 MiB or so.
const SPACE: u64 = 1 << 20;

/// Runs `hoist` in a folder with so many KiB of address space.
fn hoist_within(folder: &Path, space: u64, words: &[&str]) -> Output {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -v $0; exec \"$@\"", &space.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_hoist")).args(words);
    command.env("RAYON_NUM_THREADS", "2").current_dir(folder).stdin(Stdio::null());
    let start = Instant::now();
    let output = command.output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(60), "{words:?}: {:?}", start.elapsed());
    output
}

fn hoist(folder: &Path, words: &[&str]) -> Output {
    hoist_within(folder, SPACE, words)
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The line with which the program refuses.
#[track_caller]
fn refused(folder: &Path, words: &[&str]) -> String {
    let output = hoist(folder, words);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{words:?}: {error}");
    error
}

/// Bytes of all files in a folder.
fn total(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// A thin archive that names these files.
fn thin(names: &[&str]) -> Vec<u8> {
    let table: String = names.iter().map(|name| format!("{name}/\n")).collect();
    let header = |name: &str, size: usize| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
    };
    let pad = if table.len() % 2 == 1 { "\n" } else { "" };
    let mut archive = format!("!<thin>\n{}{table}{pad}", header("//", table.len()));
    let mut offset = 0;
    for name in names {
        archive += &header(&format!("/{offset}"), 1);
        offset += name.len() + 2;
    }
    archive.into_bytes()
}

#[test]
fn thin_archives() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let sub = root.join("sub");
    fs::create_dir(&sub).unwrap();
    fs::copy(fixtures::folder().join("x86_64/elftest.o"), root.join("outside.o")).unwrap();
    symlink("/dev/zero", sub.join("zero")).unwrap();
    let made = Command::new("mkfifo").arg(sub.join("pipe")).status().unwrap();
    assert!(made.success());
    let commands: [&[&str]; 6] = [
        &["show", "sub/lib.a"],
        &["layout", "sub/lib.a", "-u", "foo"],
        &["link", "sub/lib.a", "-u", "foo", "--base", "0x400000", "-o", "out"],
        &["disasm", "sub/lib.a"],
        &["cubin", "show", "sub/lib.a"],
        &["run", "sub/lib.a", "foo", "i32:1", "--ret", "f32"],
    ];
    for (name, message) in [
        ("/dev/zero", "not in the folder sub"),
        ("zero", "not in the folder sub"),
        ("pipe", "no regular file"),
        ("../outside.o", "not in the folder sub"),
    ] {
        fs::write(sub.join("lib.a"), thin(&[name])).unwrap();
        for words in commands {
            let error = refused(root, words);
            assert!(error.starts_with("hoist: sub/lib.a(") && error.contains(message), "{error}");
        }
    }
    for words in &commands[..4] {
        let output = hoist(root, &[words, &["--thin-anywhere"][..]].concat());
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    }
    fs::write(sub.join("lib.a"), thin(&["/dev/zero"])).unwrap();
    let error = refused(root, &["show", "sub/lib.a", "--thin-anywhere"]);
    assert!(error.contains("no regular file"), "{error}");
    // one file, named often
    fs::write(sub.join("large"), vec![0; 9 << 20]).unwrap();
    fs::write(sub.join("lib.a"), thin(&["large"; 400])).unwrap();
    let output = hoist(root, &["show", "sub/lib.a"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let error = refused(root, &["show", "sub/lib.a", "--limit", "0x10000000"]);
    assert!(error.contains("than the limit of 268435456"), "{error}");
}

#[test]
fn what_has_no_end_is_not_read() {
    let root = TempDir::new().unwrap();
    for words in [
        &["show", "/dev/zero"][..],
        &["link", "/dev/zero", "--base", "0", "-o", "out"],
        &["disasm", "/dev/zero"],
    ] {
        let words = [words, &["--limit", "0x4000000"][..]].concat();
        let error = refused(root.path(), &words);
        assert!(error.contains("/dev/zero: has more than 67108864 bytes (--limit)"), "{error}");
    }
}

#[test]
fn many_sections_over_one_compressed_image() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let mut ptx = b".version 8.0\n.target sm_80\n.address_size 64\n".to_vec();
    ptx.resize(100 << 20, b' ');
    fs::write(root.join("large.ptx"), ptx).unwrap();
    let pack = ["fatbin", "pack", "large.ptx", "--compress", "zstd", "-o", "one.fatbin"];
    let output = hoist_within(root, 8 << 20, &pack);
    assert!(output.status.success(), "{}", stderr(&output));
    let region = fs::read(root.join("one.fatbin")).unwrap();
    let sections = [Section::bytes(".nv_fatbin", &region); 20];
    let mut bytes = object(&sections, &[]);
    let first = elf::offset_of(&bytes, 1);
    (2..=20).for_each(|index| elf::set_offset(&mut bytes, index, first));
    // without the other copies
    fs::write(root.join("twenty.o"), &bytes).unwrap();
    for (limit, most) in [(None, 300 << 20), (Some("150000000"), 150_000_000)] {
        let folder = TempDir::new_in(root).unwrap();
        let out = folder.path().to_str().unwrap();
        let mut words = vec!["fatbin", "extract", "twenty.o", "-o", out];
        words.extend(limit.iter().flat_map(|limit| ["--limit", limit]));
        let output = hoist(root, &words);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.contains("entry 0 asks for 1048576") && error.contains("(--limit)"),
            "{error}"
        );
        assert!(total(folder.path()) <= most, "{}", total(folder.path()));
    }
    let words = ["fatbin", "recompress", "twenty.o", "--with", "none", "-o", "out"];
    let output = hoist_within(root, 8 << 20, &words);
    assert_eq!(output.status.code(), Some(1));
    assert!(!root.join("out").exists());
}

/// A zip file with a member of these deflated bytes, named `count` times.
fn wheel(deflated: &[u8], size: u32, count: usize) -> Vec<u8> {
    let crc = 0u32;
    let fields = |out: &mut Vec<u8>| {
        out.extend(20u16.to_le_bytes()); // version
        out.extend([0, 0, 8, 0, 0, 0, 0, 0]); // flags, method, time, date
        out.extend(crc.to_le_bytes());
        out.extend((deflated.len() as u32).to_le_bytes());
        out.extend(size.to_le_bytes());
    };
    let mut out = b"PK\x03\x04".to_vec();
    fields(&mut out);
    out.extend([4, 0, 0, 0]); // size of the name, of extra fields
    out.extend(b"0.so");
    out.extend(deflated);
    let central = out.len() as u32;
    for _ in 0..count {
        out.extend(b"PK\x01\x02\x14\0");
        fields(&mut out);
        out.extend([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend(0u32.to_le_bytes()); // where the member is
        out.extend(b"0.so");
    }
    let size = out.len() as u32 - central;
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([(count as u16).to_le_bytes(), (count as u16).to_le_bytes()].concat());
    out.extend([size.to_le_bytes(), central.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}

#[test]
fn wheels_with_overlapping_members() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let size = 100u32 << 20;
    let mut deflater = DeflateEncoder::new(Vec::new(), Compression::new(1));
    let head = object(&[Section::bytes(".data", &[1; 64])], &[]);
    deflater.write_all(&head).unwrap();
    deflater.write_all(&vec![0; size as usize - head.len()]).unwrap();
    let deflated = deflater.finish().unwrap();
    fs::write(root.join("one.whl"), wheel(&deflated, size, 1)).unwrap();
    // it is read to its end
    let error = refused(root, &["fatbin", "scan", "one.whl"]);
    assert!(error.contains("one.whl: holds no device code"), "{error}");
    let many = wheel(&deflated, size, 400);
    assert!(many.len() < 1 << 20);
    fs::write(root.join("many.whl"), many).unwrap();
    let start = Instant::now();
    let error = refused(root, &["fatbin", "scan", "many.whl"]);
    assert!(error.contains("members 0.so and 0.so share the bytes at 0x22"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let error = refused(root, &["fatbin", "scan", "one.whl", "--unpack-at-most", "1000000"]);
    assert!(error.contains("unpack to more than 1000000 bytes"), "{error}");
}

#[test]
fn an_image_of_zeros() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let bytes = object(&[Section::bytes(".data", &[1, 2, 3, 4]), Section::zeros(12 << 30)], &[]);
    assert!(bytes.len() < 700);
    fs::write(root.join("zeros.o"), bytes).unwrap();
    let link = ["link", "zeros.o", "--base", "0x400000", "-o", "out"];
    let error = refused(root, &link);
    assert!(error.contains("zeros.o: section .bss: the image asks for 1288"), "{error}");
    assert!(!root.join("out").exists());
    let error = refused(root, &["run", "zeros.o", "f", "--limit", "0x40000000"]);
    assert!(error.contains("section .bss: asks for 12884901888 bytes"), "{error}");
    // who wants it gets it, with holes
    let link = [&link[..], &["--limit", "0x400000000"]].concat();
    let output = hoist_within(root, 32 << 20, &link);
    assert!(output.status.success(), "{}", stderr(&output));
    let written = fs::metadata(root.join("out")).unwrap();
    assert!(written.len() > 12 << 30 && written.blocks() < 2048, "{} blocks", written.blocks());
}

#[test]
fn names_that_overlap() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let symbols: Vec<(u32, u16)> = (0..16_500).map(|name| (name + 1, 1)).collect();
    let bytes = object(&[Section::bytes(".data", &[0; 8])], &symbols);
    assert!((400_000..700_000).contains(&bytes.len()), "{}", bytes.len());
    fs::write(root.join("names.o"), bytes).unwrap();
    for words in [
        &["layout", "names.o"][..],
        &["link", "names.o", "--base", "0", "-o", "out"],
        &["run", "names.o", "x"],
    ] {
        let error = refused(root, words);
        assert!(error.contains("names of the symbols at offset"), "{error}");
    }
    let output = hoist(root, &["show", "names.o", "--symbols", "--limit", "20000000"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("more than 20000000 bytes are to be printed of it"), "{error}");
    assert!(output.stdout.len() <= 20_000_000);
}

#[test]
fn packed_relocations_are_shown_as_they_are_read() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let words: Vec<u8> = (0..40_000u64)
        .flat_map(|word| if word == 0 { 0x1000 } else { u64::MAX }.to_le_bytes())
        .collect();
    let bytes = object(&[Section { kind: 19, ..Section::bytes(".relr.dyn", &words) }], &[]);
    fs::write(root.join("packed.o"), bytes).unwrap();
    let output = hoist_within(root, 150_000, &["show", "packed.o", "--relocations"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = output.stdout.iter().filter(|&&byte| byte == b'\n').count();
    assert!(lines > 63 * 39_000, "{lines}");
}

#[test]
fn a_file_that_is_cut_is_an_error() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let file = fs::File::create(root.join("large")).unwrap();
    file.set_len(64 << 20).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(["fatbin", "offload", "pack", "-o", "out"]);
    command.args(["--image=file=large,triple=x,arch=y", "--image=file=pipe,triple=x,arch=y"]);
    command.current_dir(root).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // it has mapped the one when it opens the other
    let mut pipe = fs::File::options().write(true).open(root.join("pipe")).unwrap();
    file.set_len(100).unwrap();
    pipe.write_all(b"x").unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", output.status);
    assert_eq!(stderr(&output), "hoist: large: has become shorter while it was read\n");
    assert!(!root.join("out").exists());
}

#[test]
fn bytes_on_standard_output_are_alone() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let fixtures = fixtures::folder();
    let cubin = fixtures.join("cuda/kernels-13.5-sm_80.cubin");
    let cubin = cubin.to_str().unwrap();
    let object = fixtures.join("x86_64/elftest.o");
    let object = object.to_str().unwrap();
    fs::copy(cubin, root.join("kernels.cubin")).unwrap();
    let pack = ["fatbin", "pack", "kernels.cubin", "-o", "two.fatbin"];
    assert!(hoist(root, &pack).status.success());
    let ways: [&[&str]; 5] = [
        &["link", object, "--base", "0x400000"],
        &["fatbin", "pack", cubin, "--json"],
        &["fatbin", "recompress", "two.fatbin", "--with", "lz4"],
        &["fatbin", "recompress", "two.fatbin", "--with", "lz4", "--json"],
        &["cubin", "link", "two.fatbin"],
    ];
    for words in ways {
        let with = |path: &str| hoist(root, &[words, &["-o", path]].concat());
        let to_file = with("out");
        if !to_file.status.success() {
            assert!(stderr(&to_file).contains("no relocatable code"), "{words:?}");
            continue;
        }
        let expected = fs::read(root.join("out")).unwrap();
        for path in ["-", "/dev/stdout"] {
            let output = with(path);
            assert!(output.status.success(), "{words:?}: {}", stderr(&output));
            assert_eq!(output.stdout, expected, "{words:?} {path}");
        }
        // to a file that is standard output already
        let redirected = fs::File::create(root.join("redirected")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.args(words).args(["-o", "/dev/stdout"]).current_dir(root).stdout(redirected);
        assert!(command.stderr(Stdio::null()).status().unwrap().success());
        assert_eq!(fs::read(root.join("redirected")).unwrap(), expected, "{words:?}");
        fs::remove_file(root.join("out")).unwrap();
    }
    let extract = ["fatbin", "extract", "two.fatbin", "-o", "-"];
    assert_eq!(hoist(root, &extract).stdout, fs::read(cubin).unwrap());
    assert!(!root.join("-").exists());
}

#[test]
fn extraction_stays_in_its_folder() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let cubin = fixtures::folder().join("cuda/kernels-13.5-sm_80.cubin");
    for (identifier, name) in [
        ("../../../evil.cu", "evil.sm_80.cubin"),
        ("--all\u{202e}\n;x.cu", "_-all---x.sm_80.cubin"),
        ("..\\up.cu", "..-up.sm_80.cubin"),
    ] {
        let named = format!("--identifier={identifier}");
        let pack = ["fatbin", "pack", cubin.to_str().unwrap(), &named, "-o", "x"];
        assert!(hoist(root, &pack).status.success());
        let out = root.join("out");
        fs::create_dir(&out).unwrap();
        fs::write(root.join("victim"), "as it was").unwrap();
        symlink("../victim", out.join(name)).unwrap();
        let output = hoist(root, &["fatbin", "extract", "x", "-o", "out"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(output.stdout, format!("{name}\n").as_bytes());
        assert_eq!(fs::read_to_string(root.join("victim")).unwrap(), "as it was");
        assert_eq!(fs::read(out.join(name)).unwrap(), fs::read(&cubin).unwrap());
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn other_names_of_a_file_are_told() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let cubin = fixtures::folder().join("cuda/kernels-13.5-sm_80.cubin");
    let pack = ["fatbin", "pack", cubin.to_str().unwrap(), "-o", "one.fatbin"];
    assert!(hoist(root, &pack).status.success());
    fs::hard_link(root.join("one.fatbin"), root.join("two.fatbin")).unwrap();
    let before = fs::read(root.join("two.fatbin")).unwrap();
    let words = ["fatbin", "recompress", "one.fatbin", "--with", "zstd", "-o", "one.fatbin"];
    let output = hoist(root, &words);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = "one.fatbin: is a new file: 1 more names (hard links) keep the old one\n";
    assert!(stderr(&output).ends_with(told), "{}", stderr(&output));
    assert_eq!(fs::read(root.join("two.fatbin")).unwrap(), before);
}

#[test]
fn undefined_symbols_are_told_together() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let source = "int f(int); int g(void); extern int v; __attribute__((weak)) int w(void);\n\
        namespace n { template<class T> int t(T); }\n\
        int one() { return f(1) + g() + v; }\n\
        int two() { return f(2) + (w ? w() : 0) + n::t(3) + n::t(4); }\n";
    fs::write(root.join("all.cc"), source).unwrap();
    let compiled =
        Command::new("c++").args(["-c", "-O1", "-fPIC", "all.cc"]).current_dir(root).status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: undefined_symbols_are_told_together: needs c++");
        return;
    }
    for words in [
        &["link", "all.o", "--base", "0x400000", "-o", "out", "--define", "_Z1gv=1"][..],
        &["run", "all.o", "_Z3onev"],
    ] {
        let output = hoist(root, words);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{error}");
        let names = ["f(int)", "g()", "v", "int n::t<int>(int)"];
        let expected = names.iter().filter(|name| words[0] == "run" || **name != "g()");
        assert!(error.lines().all(|line| line.starts_with("hoist: all.o: section .text")));
        let told = error.lines().map(|line| {
            let (_, name) = line.split_once("symbol ").expect("a symbol");
            name.strip_suffix(" is undefined").expect("what is wrong")
        });
        assert!(told.eq(expected.copied()), "{error}");
    }
}

#[test]
fn other_formats_are_named() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    fs::write(root.join("x.c"), "int f(void) { return 1; }").unwrap();
    let make = |program: &str, words: &[&str]| {
        let status = Command::new(program).args(words).current_dir(root).status();
        let done = status.is_ok_and(|status| status.success());
        if !done {
            println!("skipped: other_formats_are_named: needs {program} {words:?}");
        }
        done
    };
    let clang = |target: &str, out: &str| {
        make("clang-19", &["-c", "-O1", &format!("--target={target}"), "x.c", "-o", out])
    };
    let wrapper = [&b"\xde\xc0\x17\x0b"[..], &[0; 16], b"BC\xc0\xde"].concat();
    fs::write(root.join("wrapped.o"), wrapper).unwrap();
    fs::write(root.join("libc.so"), "/* GNU ld script */\nGROUP ( /lib/libc.so.6 )\n").unwrap();
    let lto = make("clang-19", &["-c", "-flto", "x.c", "-o", "bitcode.o"]);
    let slim = make("gcc", &["-c", "-flto", "-fno-fat-lto-objects", "x.c", "-o", "slim.o"]);
    let cases = [
        (true, "wrapped.o", "LLVM bitcode"),
        (true, "libc.so", "a linker script"),
        (lto, "bitcode.o", "LLVM bitcode, not an ELF file: compiled with -flto"),
        (slim, "slim.o", "intermediate code of GCC, no machine code"),
        (clang("x86_64-apple-macos", "macho.o"), "macho.o", "a Mach-O file"),
        (clang("x86_64-windows", "coff.o"), "coff.o", "a COFF object"),
        (clang("aarch64-windows", "coff64.o"), "coff64.o", "a COFF object"),
        (clang("wasm32", "x.wasm"), "x.wasm", "a WebAssembly module"),
    ];
    for (made, file, what) in cases {
        for words in [
            &["link", file, "--base", "0", "-o", "out"][..],
            &["layout", file],
            &["run", file, "f"],
        ] {
            if made {
                let error = refused(root, words);
                assert!(error.starts_with(&format!("hoist: {file}: {what}")), "{error}");
            }
        }
    }
}
