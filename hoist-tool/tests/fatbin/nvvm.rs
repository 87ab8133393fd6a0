//! NVVM (LTO-IR), which NVIDIA's fatbinary compresses and nobody else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{fixture, folder, read};

/// `hoist fatbin recompress` of NVVM that is not compressed, with this fatbinary: what it prints, and writes.
fn recompressed(at: &Path, words: &[&str], fatbinary: Option<&Path>) -> (String, Vec<u8>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(["fatbin", "recompress"]).args(words).args([
        "lto-none.fatbin",
        "-o",
        "out.fatbin",
    ]);
    for variable in ["PATH", "CUDA_HOME", "CUDA_PATH", "FATBINARY"] {
        command.env_remove(variable);
    }
    if let Some(tool) = fatbinary {
        command.env("FATBINARY", tool);
    }
    let output = command.current_dir(at).stdin(Stdio::null()).output().expect("hoist runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    (String::from_utf8(output.stdout).expect("text"), read(at, "out.fatbin"))
}

#[test]
fn nvvm_stays_where_there_is_no_fatbinary() {
    let folder = folder(&["lto-none.fatbin"]);
    let at = folder.path();
    for words in [["--mode", "size"], ["--with", "zstd"]] {
        let (said, bytes) = recompressed(at, &words, None);
        assert!(
            said.contains("entries that stay as they are: 1 (nvvm for sm_75), 2.2 kB"),
            "{said}"
        );
        assert!(said.contains(": NVVM (LTO-IR) is scrambled before it is compressed"), "{said}");
        assert!(said.contains("--mode fatbinary of CUDA 12.8"), "{said}");
        assert_eq!(bytes, read(at, "lto-none.fatbin"));
    }
}

/// A program in place of fatbinary, which gives a file for what it is to make.
#[cfg(unix)]
fn stand_in(at: &Path, commands: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = at.join("fatbinary");
    fs::write(&path, format!("#!/bin/sh\n{commands}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

#[cfg(unix)]
#[test]
fn what_fatbinary_writes_is_looked_at() {
    let names = ["lto-none.fatbin", "lto.fatbin", "concat.fatbin", "none.fatbin", "zstd.fatbin"];
    let folder = folder(&names);
    let at = folder.path();
    let plain = read(at, "lto-none.fatbin");
    let gives = |file: &Path| {
        let file = file.display();
        format!(
            "for word; do case $word in --create=*) /bin/cp '{file}' \"${{word#*=}}\";; esac; done"
        )
    };
    let words = "echo \"$@\" >&2; exit 3";
    for (commands, told) in [
        (
            gives(&fixture("concat.fatbin")),
            "fatbinary has written concatenated for 0 of 9152 bytes, in place of nvvm for 75 of 2180",
        ),
        (
            gives(&fixture("zstd.fatbin")),
            "fatbinary has written another number of entries than one",
        ),
        (gives(&fixture("t.cu")), "what fatbinary has written: no region at offset 0x0"),
        ("exit 0".to_owned(), "fatbinary has written nothing: exit status: 0"),
        (
            words.to_owned(),
            "fatbinary has written nothing: -64 --compress-mode=balance --image3=kind=nvvm,sm=75,file=",
        ),
    ] {
        let tool = stand_in(at, &commands);
        let (said, bytes) = recompressed(at, &["--mode", "balance"], Some(&tool));
        assert!(
            said.contains("entries that stay as they are: 1 (nvvm for sm_75), 2.2 kB"),
            "{said}"
        );
        assert!(said.contains(told), "{said}");
        assert!(bytes == plain, "{commands}");
    }
    // what has another size is left, what is the same code is taken; for a method it is not asked
    for (file, words, same, told) in [
        (
            "lto-none.fatbin",
            "--mode balance",
            "lto-none.fatbin",
            "has written nvvm for 75 of 2184 bytes",
        ),
        (
            "lto.fatbin",
            "--mode balance",
            "lto.fatbin",
            "entries that NVIDIA's fatbinary has compressed: 1",
        ),
        ("lto.fatbin", "--with zstd", "lto-none.fatbin", "entries that stay as they are: 1"),
    ] {
        let tool = stand_in(at, &gives(&fixture(file)));
        let words: Vec<_> = words.split(' ').collect();
        let (said, bytes) = recompressed(at, &words, Some(&tool));
        assert!(bytes == read(at, same), "{file} {words:?}: {said}");
        assert!(said.contains(told), "{file} {words:?}: {said}");
    }
    // what fatbinary leaves, it has not compressed
    let whole = at.join("lto-none.fatbin");
    let mut bytes = plain;
    bytes.last_mut().into_iter().for_each(|last| *last = 1);
    fs::write(&whole, &bytes).expect("a file");
    let (said, now) = recompressed(at, &["--mode", "balance"], Some(&stand_in(at, &gives(&whole))));
    assert!(now == bytes && !said.contains("fatbinary") && !said.contains("stay"), "{said}");
}

/// By name in `xtask/skips.toml`.
#[test]
fn fatbinary_makes_of_nvvm_what_nvcc_made() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|at| at.join("fatbinary"));
    let Some(tool) = found.find(|at| at.is_file()) else {
        return println!("skipped: fatbinary_makes_of_nvvm_what_nvcc_made: needs fatbinary");
    };
    let folder = folder(&["lto-none.fatbin", "lto.fatbin"]);
    let at = folder.path();
    let sizes = ["speed", "balance", "size"].map(|mode| {
        let (said, bytes) = recompressed(at, &["--mode", mode], Some(&tool));
        assert!(said.contains("fatbinary has compressed: 1 (nvvm for sm_75), 2.2 kB"), "{said}");
        assert!(mode != "balance" || bytes == read(at, "lto.fatbin"), "nvcc's own, without a mode");
        bytes.len()
    });
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}
