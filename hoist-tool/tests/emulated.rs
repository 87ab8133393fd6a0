//! Programs that `hoist link` makes for machines without a C library here, run by an emulator: they check themselves.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

mod fixtures;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use archs::with_arch;
use elf_core::{Arch as _, Name};
use elf_layout::{ExternalSymbol, HeapStorage, Options};
use hoist_tool::budget::Limits;
use hoist_tool::cmd::link;
use hoist_tool::input;
use hoist_tool::objects::Objects;

/// Where programs run.
const BASE: u64 = 0x1_2000_0000;

/// A program of one segment in memory that may be written and executed, started at `entry`.
fn executable(machine: u16, image: &[u8], entry: u64) -> Vec<u8> {
    const HEADERS: u64 = 0x1_0000; // a page of any machine
    let size = image.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2u16, machine].map(u16::to_le_bytes).as_flattened()); // ET_EXEC
    file.extend(1u32.to_le_bytes());
    file.extend([entry, 64, 0].map(u64::to_le_bytes).as_flattened());
    file.extend(0x43u32.to_le_bytes());
    file.extend([64u16, 56, 1, 64, 0, 0].map(u16::to_le_bytes).as_flattened());
    file.extend([1u32, 7].map(u32::to_le_bytes).as_flattened()); // PT_LOAD
    file.extend([HEADERS, BASE, BASE, size, size, HEADERS].map(u64::to_le_bytes).as_flattened());
    file.resize(HEADERS as usize, 0);
    file.extend(image);
    file
}

/// Links the files at `base`, and runs them.
fn run(emulator: &str, files: &[&str]) {
    let paths: Vec<_> = files.iter().map(|file| fixtures::folder().join(file)).collect();
    let inputs = input::read_all(&paths, Limits::default()).expect("fixtures");
    let objects = Objects::gather(&inputs, &[]).expect("objects");
    let options = Options { base: Some(BASE), ..Options::default() };
    let defined = HashMap::new();
    let image = link::link(&objects, options, BASE, &defined, None).expect("a program");
    let mut bytes = image.bytes;
    let (machine, entry) = with_arch!(objects.machine(), A => {
        let mut room = HeapStorage::new();
        let mut externals = |_: Name<'_>| None::<ExternalSymbol>;
        let layout = room.plan::<A>(objects.files(), options, &mut externals).expect("a layout");
        let address = |name: &str| {
            let (object, symbol) = layout.find(name.into())?;
            Some(layout.symbol(object, symbol)?.at(BASE))
        };
        if let Some(place) = address("tls_block") {
            let block = layout.tls_block().expect("thread-local variables");
            let words = [BASE + block.offset, block.file_size, block.size];
            let place = (place - BASE) as usize;
            bytes[place..place + 24].copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
        }
        (A::MACHINE, address("start").expect("a start"))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    fs::write(&path, executable(machine, &bytes, entry)).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    let status = Command::new(emulator).arg(&path).status().expect("an emulator");
    assert_eq!(status.code(), Some(0), "{files:?}: {status}");
}

/// Runs every program whose emulator is there.
fn run_all(test: &str, emulator: &str, programs: &[&[&str]]) {
    if Command::new(emulator).arg("--version").output().is_err() {
        println!("skipped: {test}: needs {emulator}");
        return;
    }
    for program in programs {
        run(emulator, program);
    }
    println!("{test}: {} programs", programs.len());
}

#[test]
fn loongarch64_in_the_emulator() {
    run_all(
        "loongarch64_in_the_emulator",
        "qemu-loongarch64",
        &[
            &["loongarch64/run-models.o", "loongarch64/models-clang19-O0-normal.o"],
            &["loongarch64/run-models.o", "loongarch64/models-clang19-O2-medium.o"],
            &["loongarch64/run-models.o", "loongarch64/models-clang19-O2-extreme.o"],
            &["loongarch64/run-models.o", "loongarch64/models-clang19-O2-pic.o"],
            &["loongarch64/run-pair.o", "loongarch64/pair-a.o", "loongarch64/pair-b.o"],
            &[
                "loongarch64/run-threads.o",
                "loongarch64/threads-a-clang19-O2-pic.o",
                "loongarch64/threads-b-clang19-O2-pic.o",
            ],
            &[
                "loongarch64/run-threads.o",
                "loongarch64/threads-a-clang19-O2-nopic.o",
                "loongarch64/threads-b-clang19-O2-nopic.o",
            ],
            &[
                "loongarch64/run-threads.o",
                "loongarch64/threads-a-clang19-O2-initial.o",
                "loongarch64/threads-b-clang19-O2-initial.o",
            ],
            &[
                "loongarch64/run-threads.o",
                "loongarch64/threads-a-clang19-O2-extreme.o",
                "loongarch64/threads-b-clang19-O2-extreme.o",
            ],
            &[
                "loongarch64/run-threads.o",
                "loongarch64/threads-a-clang19-O2-desc.o",
                "loongarch64/threads-b-clang19-O2-desc.o",
            ],
        ],
    );
}
