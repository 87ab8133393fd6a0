//! The dynamic loader as the oracle: relocated segments of libraries, byte for byte. `cargo xtask ld-so` compares all of the machine.
#![cfg(test)]
// RISC-V: what relocations say of thread-local variables lacks the bias that its C library adds (0x800)
#![cfg(not(target_arch = "riscv64"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

#[path = "../examples/ld_so/compare.rs"]
mod compare;

use std::path::{Path, PathBuf};
use system::{ARCH, itself};

/// What a child process is to compare.
const FILE: &str = "HOIST_LD_SO";
/// Libraries that most machines have, some of them.
const LIBRARIES: [&str; 30] = [
    "libz.so.1",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libcrypto.so.3",
    "libssl.so.3",
    "libpng16.so.16",
    "libsqlite3.so.0",
    "libxml2.so.2",
    "libglib-2.0.so.0",
    "libcurl.so.4",
    "libgnutls.so.30",
    "liblzma.so.5",
    "libzstd.so.1",
    "libbz2.so.1.0",
    "libexpat.so.1",
    "libgmp.so.10",
    "libicuuc.so.72",
    "libncursesw.so.6",
    "libreadline.so.8",
    "libpcre2-8.so.0",
    "libselinux.so.1",
    "libuuid.so.1",
    "libcap.so.2",
    "libtinfo.so.6",
    "libgomp.so.1",
    "libatomic.so.1",
    "libffi.so.8",
    "libacl.so.1",
    "libresolv.so.2",
];

/// The part of a child process, of which each library has one.
#[test]
fn child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    match compare::compare(Path::new(&path)) {
        Ok(same) => println!("\nCOMPARED {} {}", same.words, same.different.join("; ")),
        Err(why) => println!("\nREFUSED {why}"),
    }
    // destructors of what was opened are nobody's business
    std::process::abort();
}

#[test]
fn libraries_are_as_ld_so_relocates_them() {
    let own = [format!("/lib/{ARCH}-linux-gnu"), format!("/usr/{ARCH}-linux-gnu/lib")];
    let folders =
        own.map(PathBuf::from).into_iter().chain(["/usr/lib64", "/lib64"].map(PathBuf::from));
    let folders: Vec<PathBuf> = folders.collect();
    let find = |name: &&str| -> Option<PathBuf> {
        folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    let files: Vec<PathBuf> = LIBRARIES.iter().filter_map(find).take(20).collect();
    let mut words = 0;
    for path in &files {
        let mut child = itself();
        let child = child.args(["--exact", "child", "--nocapture"]).env(FILE, path);
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix("COMPARED "));
        let line = line.unwrap_or_else(|| panic!("{}: {text}", path.display()));
        let (count, different) = line.split_once(' ').unwrap();
        assert_eq!(different, "", "{}", path.display());
        words += count.parse::<usize>().unwrap();
    }
    println!("{} libraries, {words} relocated words", files.len());
    if files.len() < 3 {
        println!("skipped: libraries_are_as_ld_so_relocates_them: needs libraries of Debian");
    } else {
        assert!(words > 1000, "{words}");
    }
}
