//! Arm code that is larger than its branches span, linked by hoist, GNU ld and lld, under qemu: every branch arrives.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use archs::{Architecture, with_arch};
use elf_core::names::{EF_ARM_EABI_VER5, EM_ARM, ET_EXEC, PT_LOAD};
use elf_core::{Arch, File};
use elf_layout::{ErrorKind, HeapStorage, Options};

const BASE: u64 = 0x0010_0000;
const KIB: usize = 1024;
const ASSEMBLER: &str = "arm-linux-gnueabihf-as";
const LINKERS: [&str; 2] = ["arm-linux-gnueabihf-ld", "ld.lld-19"];

/// A processor, what qemu calls it, and its branches: of Thumb code, then of Arm code.
struct Processor {
    arch: &'static str,
    emulated: &'static str,
    thumb: &'static [&'static str],
    arm: &'static [&'static str],
}

const V7: Processor = Processor {
    arch: "armv7-a",
    emulated: "cortex-a15",
    thumb: &["beq.w", "b.w", "bl"],
    arm: &["beq", "b", "bl"],
};
/// BL of Thumb code spans 4 MiB there.
const V5: Processor =
    Processor { arch: "armv5te", emulated: "arm926", thumb: &["bl"], arm: &["beq", "b", "bl"] };

/// A program of sections of so many KiB. Its steps are the first and last functions of the sections, in either state; each branches to
/// the next, so that all sections come after one another in all orders. The last leaves with status 0 if all were counted.
fn source(processor: &Processor, sizes: &[usize]) -> String {
    let count = sizes.len();
    // from each section to those 1, 2, ... places behind it
    let walk: Vec<usize> = (1..count)
        .flat_map(|by| (0..count).map(move |times| times * by % count))
        .chain([0])
        .collect();
    let mut ends = vec![[String::new(), String::new()]; count];
    for (step, section) in walk.iter().enumerate() {
        let is_thumb = step == 0 || (step * 7 / 3) % 3 != 0;
        let branches = if is_thumb { processor.thumb } else { processor.arm };
        let branch = branches[step % branches.len()];
        let state = if is_thumb { ".thumb\n.thumb_func" } else { ".arm" };
        let part = &mut ends[*section][step % 2];
        let next = match step + 1 == walk.len() {
            true => format!("movs r0, r4\nsubs r0, #{}\nmovs r7, #1\nsvc 0\n", step + 1),
            false => format!(
                "{branch} step{}\n.inst{} {}\n",
                step + 1,
                if is_thumb { ".n" } else { "" },
                if is_thumb { "0xde00" } else { "0xe7f000f0" }
            ),
        };
        write!(
            part,
            ".balign 4\n.globl step{step}\n.type step{step}, %function\n{state}\nstep{step}:\nadds r4, r4, #1\ncmp r0, r0\n{next}"
        )
        .expect("text");
    }
    let mut text = format!(
        ".syntax unified\n.arch {}\n.set _start, step0\n.globl _start\n.thumb_set _start, step0\n",
        processor.arch
    );
    for (number, (size, [first, last])) in sizes.iter().zip(&ends).enumerate() {
        let room = size * KIB;
        write!(text, ".section .text.{number}, \"ax\"\n{first}.space {room}\n{last}")
            .expect("text");
    }
    text
}

/// The program as hoist links it: an executable of one segment.
fn linked<A: Arch>(object: &[u8]) -> Result<Vec<u8>, ErrorKind> {
    let files = [File::parse(object).expect("an object")];
    let mut room = HeapStorage::new();
    let options = Options { base: Some(BASE), ..Options::default() };
    let layout = room.plan::<A>(&files, options, &mut |_| None).map_err(|error| error.kind)?;
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).map_err(|error| error.kind)?;
    let (owner, symbol) = layout.find("step0".into()).expect("a start");
    let start = layout.symbol(owner, symbol).expect("an address").at(BASE) as u32 | 1;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([ET_EXEC, EM_ARM].map(u16::to_le_bytes).concat());
    file.extend([1, start, 52, 0, EF_ARM_EABI_VER5].map(u32::to_le_bytes).concat());
    file.extend([52u16, 32, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
    let size = image.len() as u32;
    let segment = [PT_LOAD, 0x1000, BASE as u32, BASE as u32, size, size, 7, 0x1000];
    file.extend(segment.map(u32::to_le_bytes).concat());
    file.resize(0x1000, 0);
    file.extend(&image);
    Ok(file)
}

/// What becomes of the program under the emulator.
fn run(processor: &Processor, program: &Path) -> Option<i32> {
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("a program");
    let mut command = Command::new("qemu-arm");
    command.args(["-cpu", processor.emulated]).arg(program).status().expect("an emulator").code()
}

fn check(processor: &Processor, sizes: &[usize], folder: &Path) {
    fs::write(folder.join("source.s"), source(processor, sizes)).expect("a source");
    let is_done = |command: &mut Command| {
        let output = command.current_dir(folder).output().expect("a tool");
        assert!(output.status.success(), "{sizes:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    is_done(Command::new(ASSEMBLER).args(["-o", "object.o", "source.s"]));
    let object = fs::read(folder.join("object.o")).expect("an object");
    let program = with_arch!(Architecture::Arm, A => linked::<A>(&object));
    let program = program.unwrap_or_else(|kind| panic!("{} {sizes:?}: {kind:?}", processor.arch));
    fs::write(folder.join("hoist"), program).expect("a program");
    assert_eq!(run(processor, &folder.join("hoist")), Some(0), "{} {sizes:?}", processor.arch);
    for linker in LINKERS {
        let mut command = Command::new(linker);
        if linker.contains("gnu") {
            // it has veneers behind sections alone, where unconditional branches reach them unless told otherwise
            if processor.thumb.contains(&"beq.w") && sizes.iter().any(|size| *size > KIB) {
                continue;
            }
            command.arg("--stub-group-size=700000");
        }
        is_done(command.args(["-e", "step0", "-o", linker, "object.o"]));
        let path = folder.join(linker);
        assert_eq!(run(processor, &path), Some(0), "{linker} {} {sizes:?}", processor.arch);
    }
}

#[test]
fn every_branch_arrives() {
    let needed = ["qemu-arm", ASSEMBLER].iter().chain(&LINKERS);
    for tool in needed {
        if Command::new(tool).arg("--version").output().is_err() {
            println!("skipped: every_branch_arrives: needs {tool}");
            return;
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let check = |processor: &Processor, sizes: &[usize]| check(processor, sizes, folder.path());
    check(&V7, &[1, 100, 200]);
    // conditional branches of Thumb code span 1 MiB, others 16, those of Arm code 32
    check(&V7, &[600, 1, 600, 1, 600]);
    check(&V7, &[1, 700, 700, 700, 700, 700, 700]);
    check(&V7, &[1000, 3000, 1, 1900, 900]);
    check(&V7, &[900, 900, 17_000, 900, 16_500, 900]);
    check(&V5, &[3000, 1, 3000, 1, 2500]);
    check(&V5, &[1, 7000, 4000, 7900]);
}
