//! Programs run as the executables do that the system's linker makes of the same objects: order of constructors, merged strings, copies
//! of which one is kept, data beyond 2 GiB, more sections than 16 bits count.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A C compiler and its brother for C++.
const COMPILERS: [[&str; 2]; 3] =
    [["gcc", "g++"], ["clang-14", "clang++-14"], ["clang-19", "clang++-19"]];

/// Options that say which relocations there are.
const MODELS: [&[&str]; 4] = [
    &["-O0"],
    &["-O2", "-g"],
    &["-O2", "-fno-pic", "-fno-pie"],
    &["-Os", "-fPIC", "-mcmodel=large"],
];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/executables").join(name)
}

/// What a command gives, if there is such a program.
fn output(command: &mut Command) -> Option<Output> {
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        output => Some(output.unwrap()),
    }
}

/// Runs a tool that has to succeed, if it is there.
fn tool(program: &str, folder: &Path, arguments: &[&[&str]]) -> Option<()> {
    let mut command = Command::new(program);
    let output = output(command.args(arguments.concat()).current_dir(folder))?;
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

fn text(output: &Output) -> String {
    let [said, error] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{said}{error}")
}

/// Compiles a source once, and once more with `-DSECOND`, links and runs both objects, and has hoist run them.
fn same(test: &str, name: &str, models: &[&[&str]]) {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let source = source(name);
    let (source, is_cpp) = (source.to_str().unwrap(), name.ends_with(".cpp"));
    let mut compared = 0;
    for compiler in COMPILERS.map(|[c, cpp]| if is_cpp { cpp } else { c }) {
        for &model in models {
            let standard: &[&str] = if is_cpp { &["-std=c++17"] } else { &[] };
            let compile = |extra: &[&str]| {
                tool(compiler, folder, &[&["-c", "-w", source], standard, model, extra])
            };
            if compile(&["-o", "first.o"]).is_none() {
                println!("skipped: {test}: needs {compiler}");
                break;
            }
            compile(&["-DSECOND", "-o", "second.o"]).unwrap();
            let position: &[&str] = if model.contains(&"-fno-pic") { &["-no-pie"] } else { &[] };
            let linked = tool(
                if is_cpp { "g++" } else { "gcc" },
                folder,
                &[&["first.o", "second.o", "-o", "linked"], position],
            );
            if linked.is_none() {
                println!("skipped: {test}: needs gcc");
                return;
            }
            let theirs = output(&mut Command::new(folder.join("linked"))).unwrap();
            let ours = run(folder, &["first.o", "second.o"]);
            assert_eq!(text(&ours), text(&theirs), "{compiler} {model:?}");
            assert!(ours.status.success() && theirs.status.success() && !theirs.stdout.is_empty());
            compared += 1;
        }
    }
    println!("{compared} programs are the same");
}

/// What `main` of these objects says.
fn run(folder: &Path, objects: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(["run", "--lib", "libstdc++.so.6"]).args(objects).arg("main").current_dir(folder);
    command.output().unwrap()
}

#[test]
fn constructors_and_destructors_in_order() {
    same("constructors_and_destructors_in_order", "order.c", &MODELS);
}

#[test]
fn pointers_into_merged_strings() {
    same("pointers_into_merged_strings", "merge.c", &MODELS);
}

#[test]
fn copies_of_which_one_is_kept() {
    same("copies_of_which_one_is_kept", "comdat.cpp", &MODELS[1..3]);
}

/// Data refer to a section whose copy is dropped: GNU ld refuses that, too.
#[test]
fn data_that_refer_to_a_discarded_section() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let object = |name: &str, symbol: &str| {
        let text = format!(
            ".section .text.f,\"axG\",@progbits,f,comdat\n.weak f\nf: ret\n.Linside: nop\n\
             .text\n.globl {symbol}\n{symbol}: call f\nret\n.data\n.quad .Linside\n"
        );
        fs::write(folder.join("source.s"), text).unwrap();
        tool("as", folder, &[&["--64", "source.s", "-o", name]])
    };
    if object("first.o", "main").is_none() {
        println!("skipped: data_that_refer_to_a_discarded_section: needs as");
        return;
    }
    object("second.o", "second").unwrap();
    let mut ld = Command::new("ld");
    let ld = output(ld.args(["-e", "main", "first.o", "second.o"]).current_dir(folder)).unwrap();
    assert!(!ld.status.success() && text(&ld).contains("discarded section"), "{}", text(&ld));
    let ours = run(folder, &["first.o", "second.o"]);
    assert_eq!(
        text(&ours),
        "hoist: second.o: section .data: R_X86_64_64 at offset 0x0: symbol .text.f is in a discarded section group\n"
    );
}

/// What is large is reached by 64-bit addresses, and the rest of an image without `-fPIC` stays low.
#[test]
fn data_beyond_2_gib() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let source = source("large.c");
    for [compiler, _] in COMPILERS {
        for (model, is_right) in [
            (&["-O2", "-mcmodel=medium"][..], true),
            (&["-O2", "-mcmodel=large", "-fno-pic", "-fno-pie"], true),
            (&["-O2", "-mcmodel=medium", "-fno-pic", "-fno-pie"], true),
            (&["-O2", "-mcmodel=small", "-fno-pic", "-fno-pie"], false),
        ] {
            let name = source.to_str().unwrap();
            if tool(compiler, folder, &[&["-c", name, "-o", "large.o"], model]).is_none() {
                println!("skipped: data_beyond_2_gib: needs {compiler}");
                break;
            }
            let ours = text(&run(folder, &["large.o"]));
            if is_right {
                assert_eq!(ours, "5 6 3 7\n", "{compiler} {model:?}");
            } else {
                let why = "bytes below 0x80000000, which code without -fPIC needs";
                assert!(ours.contains(why), "{compiler} {model:?}: {ours}");
            }
        }
    }
}

/// Section numbers that do not fit 16 bits are elsewhere (`SHN_XINDEX`), and their count is in section 0.
#[test]
fn more_sections_than_16_bits_count() {
    const COUNT: u64 = 66_000;
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let mut text_of = String::new();
    for number in 0..COUNT {
        let _ = if number % 1000 == 0 {
            let code = format!("mov ${number}, %eax\nret");
            writeln!(text_of, ".section .text.f{number},\"ax\"\nf{number}: {code}")
        } else {
            writeln!(text_of, ".section .rodata.r{number},\"a\"\nr{number}: .long {number}")
        };
    }
    text_of += ".text\n.globl main\nmain: call f65000\nadd r65999(%rip), %eax\nmov v(%rip), %rdx\n\
                add (%rdx), %eax\nret\n.section .data.v,\"aw\"\nv: .quad r65998\n";
    fs::write(folder.join("source.s"), text_of).unwrap();
    for (assembler, options) in
        [("as", &["--64"][..]), ("clang-14", &["-c", "-w"]), ("clang-19", &["-c", "-w"])]
    {
        if tool(assembler, folder, &[options, &["source.s", "-o", "many.o"]]).is_none() {
            println!("skipped: more_sections_than_16_bits_count: needs {assembler}");
            continue;
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.args(["run", "many.o", "main", "--ret", "u32"]).current_dir(folder);
        assert_eq!(text(&command.output().unwrap()), format!("{}\n", 65_000 + 65_999 + 65_998));
    }
}
