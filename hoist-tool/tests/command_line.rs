//! The program itself: what it prints, what it says about bad input, what it leaves behind.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

mod fixtures;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `hoist` in the folder of the fixtures, so that paths are short.
fn hoist(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(arguments).current_dir(fixtures::folder()).stdin(Stdio::null());
    command
}

fn run(line: &str) -> Output {
    hoist(&line.split(' ').collect::<Vec<_>>()).output().expect("hoist runs")
}

/// What is printed on success.
fn printed(line: &str) -> String {
    let output = run(line);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{line}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

/// The one line on standard error.
fn refused(line: &str) -> String {
    let output = run(line);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{line}: {error}");
    let (message, rest) = error.split_once('\n').expect("a line");
    assert!(rest.is_empty(), "{line}: more than a line: {error}");
    assert!(output.stdout.is_empty(), "{line}: prints something");
    message.strip_prefix("hoist: ").expect("who says it").to_owned()
}

#[test]
fn bad_input_is_explained_in_a_line() {
    for (line, message) in [
        ("show no-such-file", "no-such-file: No such file or directory (os error 2)"),
        ("show source/models.c", "source/models.c: not an ELF file"),
        (
            "link x86_64/missing.o --base 0x400000 -o /dev/null",
            "x86_64/missing.o: section .text: R_X86_64_PLT32 at offset 0x5: symbol hoist_fixture_missing is undefined",
        ),
        (
            "link x86_64/overflow.o --define absolute_16=0x5678 --base 0x400000 -o /dev/null",
            "x86_64/overflow.o: section .text: R_X86_64_8 at offset 0x1 against absolute_16: value 22136 (0x5678) is not in \
             -128..=255",
        ),
        (
            "link x86_64/elftest.o x86_64/elftest.o --base 0x400000 -o /dev/null",
            "x86_64/elftest.o: symbol foo is defined in x86_64/elftest.o already",
        ),
        (
            "link x86_64/elftest.o i386/pair-b.o --base 0x400000 -o /dev/null",
            "i386/pair-b.o: is for EM_386, not for EM_X86_64 as the first object",
        ),
        (
            "link x86_64/exit --base 0x400000 -o /dev/null",
            "x86_64/exit: is no relocatable object but ET_EXEC",
        ),
        (
            "link x86_64/elftest.o --base 0x400010 -o /dev/null",
            "image cannot be at 0x400010, with an alignment of 0x1000",
        ),
        (
            "link x86_64/libpair.a --base 0x400000 -o /dev/null",
            "x86_64/libpair.a: no member is asked for",
        ),
        ("layout x86_64/libempty.a", "x86_64/libempty.a: no member is asked for"),
        (
            "disasm cuda/kernels-13.5-sm_80.cubin",
            "cuda/kernels-13.5-sm_80.cubin: disassembles x86-64, i386, AArch64, Arm and RISC-V, not EM_CUDA",
        ),
        ("disasm x86_64/elftest.o bar", "x86_64/elftest.o: no function bar"),
        ("disasm x86_64/elftest.o fo", "x86_64/elftest.o: no function fo: there is foo"),
    ] {
        assert_eq!(refused(line), message, "{line}");
    }
}

#[test]
fn damage_is_explained_in_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.o");
    let whole = fs::read(fixtures::folder().join("x86_64/elftest.o")).expect("a fixture");
    // where and what: e_shstrndx, type and symbol of the relocation, name of .text, end of the file
    for (change, message) in [
        (Some((62, 99)), "e_shstrndx names section 99 of 8, at offset 0x138"),
        (
            Some((0xc8, 255)),
            "section .text: relocation type 255 at offset 0x10 against .LCPI0_0: unknown type",
        ),
        (Some((0xcc, 99)), "section .rela.text: no symbol 99 in a table of 4, at offset 0xc0"),
        (
            Some((0xc0, 0x18)),
            "section .text: R_X86_64_PC32 at offset 0x18 against .LCPI0_0: outside the section of 0x1a bytes",
        ),
        (None, "8 section headers at offset 0x138 are outside its 0x300 bytes"),
    ] {
        let mut bytes = whole.clone();
        match change {
            Some((at, byte)) => bytes[at] = byte,
            None => bytes.truncate(0x300),
        }
        fs::write(&path, bytes).expect("a file");
        let output = folder.path().join("image");
        let said =
            refused(&format!("link {} --base 0x400000 -o {}", path.display(), output.display()));
        assert_eq!(said, format!("{}: {message}", path.display()));
        assert!(!output.exists(), "nothing is written");
    }
}

#[test]
fn what_show_prints() {
    for (name, line) in [
        ("elftest", "show x86_64/elftest.o"),
        ("libshared", "show x86_64/libshared.so"),
        ("libshared-relr", "show --dynamic --relocations x86_64/libshared-relr.so"),
        ("big-endian", "show --header --sections --symbols aarch64/pair-a-big-endian.o"),
        ("i386", "show --relocations i386/models-O0-pic.o"),
        ("archive", "show --symbols x86_64/libpair.a"),
        ("layout", "layout --no-relax x86_64/shapes-gcc12.o x86_64/shapes-second-gcc12.o"),
        ("layout-relaxed", "layout x86_64/shapes-gcc12.o x86_64/shapes-second-gcc12.o"),
        ("layout-archive", "layout x86_64/uses-pair.o x86_64/libpair.a"),
        ("disasm", "disasm x86_64/models-gcc12-O2-pic-small.o"),
        ("disasm-i386", "disasm i386/models-O2-pic.o"),
        ("disasm-aarch64", "disasm aarch64/models-clang19-O2-pic-small.o"),
        ("disasm-large", "disasm x86_64/models-clang19-O2-pic-large.o"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/snapshots")
            .join(name)
            .with_extension("txt");
        let now = printed(line);
        if std::env::var_os("HOIST_SNAPSHOTS").is_some_and(|value| value == "write") {
            fs::write(&path, &now).expect("a snapshot");
        }
        let before = fs::read_to_string(&path).expect("a snapshot");
        assert_eq!(now, before, "{line}: HOIST_SNAPSHOTS=write accepts what is printed now");
    }
}

#[test]
fn link_writes_image_and_map() {
    let folder = tempfile::tempdir().expect("a folder");
    let (image, map) = (folder.path().join("image"), folder.path().join("map.json"));
    let line = "link x86_64/uses-pair.o x86_64/libpair.a --base 0x400000";
    let line = format!("{line} -o {} --map {}", image.display(), map.display());
    assert_eq!(printed(&line), "");
    let map: serde_json::Value =
        serde_json::from_slice(&fs::read(map).expect("a map")).expect("JSON");
    let size = fs::metadata(&image).expect("an image").len();
    assert_eq!((map["base"].as_u64(), map["size"].as_u64()), (Some(0x40_0000), Some(size)));
    let symbols = map["symbols"].as_array().expect("symbols");
    let member =
        symbols.iter().find(|symbol| symbol["name"] == "is_odd").expect("a symbol of the archive");
    let object = member["object"].as_str().expect("its object");
    assert!(object.starts_with("x86_64/libpair.a("), "{object}");
    assert!(
        (0x40_0000..0x40_0000 + size).contains(&member["address"].as_u64().expect("its address"))
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = hoist(&["show", env!("CARGO_BIN_EXE_hoist")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("hoist runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(unix)]
#[test]
fn special_files_are_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt as _;
    assert_eq!(printed("link x86_64/elftest.o --base 0 -o /dev/null"), "");
    assert!(fs::metadata("/dev/null").expect("a device").file_type().is_char_device());
}
