//! Every call of `fixtures/calls.toml` for Arm in a program that hoist has linked, under qemu: code of either state and byte order, of
//! processors from Armv5T to Cortex-M.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]
#![allow(clippy::unwrap_used, reason = "a test")]

mod fixtures;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use archs::{Architecture, with_arch};
use elf_core::names::{EF_ARM_BE8, EF_ARM_EABI_VER5, EM_ARM, ET_EXEC, PT_LOAD};
use elf_core::{Arch, File};
use elf_layout::{CodeMark, ExternalSymbol, HeapStorage, Layout, Options};
use serde::Deserialize;

#[derive(Deserialize)]
struct Calls {
    program: Vec<Program>,
}

#[derive(Deserialize)]
struct Program {
    arch: String,
    builds: Vec<Vec<String>>,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    function: String,
    #[serde(default)]
    args: Vec<String>,
    ret: String,
    expect: String,
    #[serde(default = "yes")]
    linked: bool,
}

fn yes() -> bool {
    true
}

const BASE: u64 = 0x0010_0000;
/// Room behind the image for the block of thread-local variables.
const THREAD: usize = 0x1000;

/// What a function is given and gives: `call_block` of `arm/call.s`.
#[derive(Default)]
struct Block {
    integers: Vec<u32>,
    floats: [u8; 32],
    float_count: usize,
}

impl Block {
    fn of(call: &Call) -> Self {
        let mut block = Self::default();
        for word in &call.args {
            let (kind, text) = word.split_once(':').expect("a type");
            match kind {
                "i32" => block.integers.push(text.parse::<i32>().expect("a number") as u32),
                "u32" => block.integers.push(text.parse().expect("a number")),
                // only the first of single precision: those behind share registers
                "f32" => {
                    block.floats[..4].copy_from_slice(&text.parse::<f32>().unwrap().to_le_bytes());
                }
                "f64" => {
                    let value = text.parse::<f64>().unwrap().to_le_bytes();
                    block.floats[block.float_count * 8..][..8].copy_from_slice(&value);
                    block.float_count += 1;
                }
                other => panic!("no {other} here"),
            }
        }
        block
    }

    /// The words in the order of memory.
    fn bytes(&self, function: u32, thread: u32, distance: u32, is_big: bool) -> Vec<u8> {
        let mut words = self.integers.clone();
        words.resize(4, 0);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| ordered(*word, is_big)).collect();
        bytes.extend(self.floats);
        bytes.extend([function, thread, distance].iter().flat_map(|word| ordered(*word, is_big)));
        bytes
    }
}

fn ordered(word: u32, is_big: bool) -> [u8; 4] {
    if is_big { word.to_be_bytes() } else { word.to_le_bytes() }
}

/// The value that a function has returned.
fn returned(r#type: &str, block: &[u8], is_big: bool) -> String {
    let integer = block.first_chunk::<4>().expect("r0");
    let integer = if is_big { u32::from_be_bytes(*integer) } else { u32::from_le_bytes(*integer) };
    match r#type {
        "i32" => (integer as i32).to_string(),
        "u32" => integer.to_string(),
        "f32" => f32::from_le_bytes(*block[8..].first_chunk().expect("s0")).to_string(),
        "f64" => f64::from_le_bytes(*block[8..].first_chunk().expect("d0")).to_string(),
        other => panic!("no {other} here"),
    }
}

/// Objects, linked, and what has to be known to run them.
struct Linked {
    image: Vec<u8>,
    is_big: bool,
    /// Whether its code is little-endian all the same.
    is_be8: bool,
    start: u64,
    block: u64,
    /// The thread pointer, and how far behind it the block is.
    thread: (u32, u32),
}

fn address<A: Arch>(layout: &Layout<'_, '_, A>, name: &str) -> u64 {
    let (object, symbol) = layout.find(name.into()).unwrap_or_else(|| panic!("no {name}"));
    layout.symbol(object, symbol).expect("an address").at(BASE)
}

/// Links the objects of a build with the program that makes calls, and gives the addresses of the functions.
fn link<A: Arch>(build: &[String], calls: &[Call]) -> (Linked, Vec<u32>) {
    let is_be8 = build[0].starts_with("arm-be8/");
    let is_big = is_be8 || build[0].contains("big-endian");
    let program = if is_big { "arm/call-big-endian.o" } else { "arm/call.o" };
    let names = build.iter().map(String::as_str).chain([program]);
    let bytes: Vec<Vec<u8>> =
        names.map(|name| fs::read(fixtures::folder().join(name)).expect("a fixture")).collect();
    let files: Vec<File<'_>> = bytes.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let mut room = HeapStorage::new();
    let options = Options { base: Some(BASE), ..Options::default() };
    // what is not called: floating point in software, threads
    let is_called = |name: &str| name.starts_with("__aeabi") || name.starts_with("pthread");
    let mut externals = |name: elf_core::Name<'_>| {
        is_called(&name.to_string()).then_some(ExternalSymbol::new(0xffff_f000))
    };
    let mut layout = room
        .plan::<A>(&files, options, &mut externals)
        .unwrap_or_else(|error| panic!("{build:?}: {}", error.explain(&files)));
    let area = layout.executable_tls_block();
    layout.set_static_tls_block(area);
    let size = (layout.size() as usize).next_multiple_of(4096);
    let mut image = vec![0; size + THREAD];
    let written = if is_be8 {
        layout.write_be8(&mut image, BASE, &mut [CodeMark::default(); 64])
    } else {
        layout.write(&mut image, BASE)
    };
    written.unwrap_or_else(|error| panic!("{build:?}: {}", error.explain(&files)));
    let distance = area.tp_offset.unwrap_or(8) as usize;
    if let Some(block) = layout.tls_block() {
        let from = block.offset as usize;
        image.copy_within(from..from + block.file_size as usize, size + distance);
    }
    let functions = calls.iter().map(|call| address(&layout, &call.function) as u32).collect();
    let (start, block) = (address(&layout, "_start"), address(&layout, "call_block"));
    let thread = ((BASE as usize + size) as u32, distance as u32);
    (Linked { image, is_big, is_be8, start, block, thread }, functions)
}

/// An executable of one segment, which may be written and run.
fn executable(linked: &Linked) -> Vec<u8> {
    let half = |value: u16| if linked.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let word = |value: u32| ordered(value, linked.is_big);
    let mut file = b"\x7fELF\x01".to_vec();
    file.extend([if linked.is_big { 2 } else { 1 }, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([ET_EXEC, EM_ARM].map(half).concat());
    let flags = EF_ARM_EABI_VER5 | if linked.is_be8 { EF_ARM_BE8 } else { 0 };
    file.extend([1, linked.start as u32, 52, 0, flags].map(word).concat());
    file.extend([52, 32, 1, 0, 0, 0].map(half).concat());
    let size = linked.image.len() as u32;
    let segment = [PT_LOAD, 0x1000, BASE as u32, BASE as u32, size, size, 7, 0x1000];
    file.extend(segment.map(word).concat());
    file.resize(0x1000, 0);
    file.extend(&linked.image);
    file
}

fn run(linked: &mut Linked, function: u32, call: &Call, folder: &Path) -> Result<(), String> {
    let (thread, distance) = linked.thread;
    let block = Block::of(call).bytes(function, thread, distance, linked.is_big);
    let at = (linked.block - BASE) as usize;
    linked.image[at..at + block.len()].copy_from_slice(&block);
    let path = folder.join("program");
    fs::write(&path, executable(linked)).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    let emulator = if linked.is_big { "qemu-armeb" } else { "qemu-arm" };
    let output = Command::new(emulator).arg(&path).output().expect("an emulator");
    if !output.status.success() || output.stdout.len() != 16 {
        return Err(format!("{} {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let found = returned(&call.ret, &output.stdout, linked.is_big);
    if found == call.expect { Ok(()) } else { Err(format!("returns {found}, not {}", call.expect)) }
}

#[test]
fn every_call_of_arm_is_right() {
    for emulator in ["qemu-arm", "qemu-armeb"] {
        if Command::new(emulator).arg("--version").output().is_err() {
            println!("skipped: every_call_of_arm_is_right: needs {emulator}");
            return;
        }
    }
    #[derive(Deserialize)]
    struct Any {
        program: Vec<toml::Value>,
    }
    let text = fs::read_to_string(fixtures::folder().join("calls.toml")).expect("the table");
    let all: Any = toml::from_str(&text).expect("a table");
    let is_arm =
        |value: &toml::Value| value.get("arch").is_some_and(|it| it.as_str() == Some("arm"));
    let program: Vec<Program> = all
        .program
        .into_iter()
        .filter(is_arm)
        .map(|it| it.try_into().expect("a program"))
        .collect();
    let calls = Calls { program };
    let folder = tempfile::tempdir().expect("a folder");
    let (mut made, mut linked_elsewhere, mut wrong) = (0, 0, Vec::new());
    for program in &calls.program {
        assert_eq!(program.arch, "arm");
        for build in &program.builds {
            let (mut linked, functions) =
                with_arch!(Architecture::Arm, A => link::<A>(build, &program.calls));
            // threads are the C library's
            let calls = program.calls.iter().zip(functions);
            for (call, function) in calls.filter(|(call, _)| call.function != "in_threads") {
                made += 1;
                linked_elsewhere += usize::from(call.linked);
                if let Err(error) = run(&mut linked, function, call, folder.path()) {
                    let arguments = call.args.join(", ");
                    wrong.push(format!("{build:?} {}({arguments}): {error}", call.function));
                }
            }
        }
    }
    println!("{made} calls, of which `cargo xtask calls` makes {linked_elsewhere}");
    assert!(wrong.is_empty(), "{} of {made} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(made > 250, "only {made} calls");
}
