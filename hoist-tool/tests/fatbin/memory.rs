//! Memory of images that are packed several in one entry (CUDA 13.5): cut, they are not all in memory.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Stdio};

use elf_core::names::EM_X86_64;
use fatbin::{
    CompressionMode, EntryFlags, EntryKind, Item, NewEntry, Part, Sm, object_size, region,
    write_object,
};

use super::{folder, json};

const ENTRIES: usize = 24;
const IMAGE: usize = 8 << 20;
/// KiB of memory of its own: less than what is kept of all entries takes.
const LIMIT: &str = "131072";

#[test]
fn images_of_which_several_are_one_entry_are_cut_in_little_memory() {
    let folder = folder(&[]);
    let at = folder.path();
    let part = |number: usize, sm| Part {
        kind: EntryKind::Elf,
        sm: Sm::new(sm),
        flags: EntryFlags::ADDRESS_64 | EntryFlags::LINUX,
        code_version: (1, 8),
        offset: (number * IMAGE) as u64,
        size: IMAGE as u64,
    };
    let parts = [part(0, 75), part(1, 80)];
    let payload = vec![0; 2 * IMAGE];
    let stored = CompressionMode::Speed.pack(&payload).expect("it is small");
    let entry = NewEntry::concatenated(&parts, &payload);
    let entry = entry.compressed(CompressionMode::Speed.method(), &stored);
    let bytes = region(&[Item::New(entry); ENTRIES]).expect("a region");
    let mut object = vec![0; object_size(bytes.len(), "all")];
    write_object(&bytes, "all", EM_X86_64, &mut object).expect("an object");
    fs::write(at.join("all.o"), &object).expect("a file");
    // each keeps 192 MiB
    for words in [
        "prune all.o -o all.o",
        "slim all.o --backup kept",
        "slim all.o --backup kept --mode speed",
    ] {
        fs::write(at.join("all.o"), &object).expect("a file");
        let script = format!(
            "ulimit -d {LIMIT}; exec \"$hoist\" fatbin {words} --keep sm_80 --limit 1000000000"
        );
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script]).env("hoist", env!("CARGO_BIN_EXE_hoist"));
        shell.env("RAYON_NUM_THREADS", "2").current_dir(at).stdin(Stdio::null());
        let output = shell.output().expect("a shell");
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        let listed = json(at, &["list", "--json", "all.o"]);
        let entries = listed["files"][0]["regions"][0]["entries"].as_array().expect("entries");
        assert_eq!(entries.len(), ENTRIES, "{words}");
        for entry in entries {
            assert_eq!(entry["unpacked_size"], IMAGE as u64, "{words}: {entry}");
        }
    }
}

/// Compressed bundles of LLVM's, which are 120 MiB when all are unpacked.
#[test]
fn images_of_compressed_bundles_are_unpacked_one_container_at_a_time() {
    const IMAGE: usize = 10 << 20;
    const BUNDLES: usize = 12;
    let folder = folder(&[]);
    let at = folder.path();
    let id = b"hipv4-amdgcn-amd-amdhsa--gfx90a";
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    for word in [1, 4096, IMAGE as u64, id.len() as u64] {
        bundle.extend(word.to_le_bytes());
    }
    bundle.extend(id);
    bundle.resize(4096 + IMAGE, 0);
    let stored = CompressionMode::Balance.pack(&bundle).expect("it is small");
    let total = u32::try_from(24 + stored.len()).expect("it is small");
    let mut file = Vec::new();
    for _ in 0..BUNDLES {
        file.extend(b"CCOB\x02\0\x01\0");
        file.extend(
            [total, u32::try_from(bundle.len()).expect("it is small"), 0, 0]
                .map(u32::to_le_bytes)
                .as_flattened(),
        );
        file.extend(&stored);
    }
    fs::write(at.join("all.ccob"), &file).expect("a file");
    for words in ["list all.ccob", "extract all.ccob -o out --limit 1000000000"] {
        let script = format!("ulimit -d 65536; exec \"$hoist\" fatbin offload {words}");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script]).env("hoist", env!("CARGO_BIN_EXE_hoist"));
        shell.env("RAYON_NUM_THREADS", "2").current_dir(at).stdin(Stdio::null());
        let output = shell.output().expect("a shell");
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter(|line| line.contains("gfx90a"))
            .count();
        assert_eq!(lines, BUNDLES, "{words}");
    }
    let written = fs::read_dir(at.join("out")).expect("a folder");
    let sizes = written.map(|file| file.expect("a file").metadata().expect("a file").len());
    assert_eq!(sizes.sum::<u64>(), (BUNDLES * IMAGE) as u64);
}
