//! What the benches share: the files they read.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The small object of the README.
pub const SMALL: &[u8] = include_bytes!("../../fixtures/x86_64/elftest.o");

/// An object of `count` functions, made by `cargo xtask generate` when it is first wanted.
///
/// # Errors
/// If it cannot be made or read.
pub fn functions(count: u32) -> std::io::Result<Vec<u8>> {
    std::fs::read(generated("functions", count)?)
}

/// The path of an object of `count` of `what` (`functions`, `sections`, `got`), made by `cargo xtask generate` when it is first
/// wanted.
///
/// # Errors
/// If it cannot be made.
pub fn generated(what: &str, count: u32) -> std::io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let path = target.join("benches").join(format!("{what}-{count}.o"));
    if !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap_or(&target))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let arguments = ["xtask", "generate", what, &count.to_string()];
        let status = Command::new(cargo).current_dir(root).args(arguments).arg(&path).status()?;
        if !status.success() {
            return Err(std::io::Error::other(format!("cargo {} failed", arguments.join(" "))));
        }
    }
    Ok(path)
}

/// The C library of this machine, if it is where Debian and others have it.
#[must_use]
pub fn libc() -> Option<Vec<u8>> {
    let folders = ["/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"];
    folders.iter().find_map(|folder| std::fs::read(Path::new(folder).join("libc.so.6")).ok())
}
