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
