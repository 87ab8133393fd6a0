//! Libraries that others need, found as the dynamic loader finds them where nothing else is said.

use std::path::Path;

/// Where they are.
const FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
];

/// What the dynamic loader has to load itself.
pub(crate) fn is_of_loader(name: &str) -> bool {
    let own = ["libc.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so"];
    own.iter().any(|start| name.starts_with(start))
}

/// The bytes of the library of this name.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    FOLDERS.iter().find_map(|folder| std::fs::read(Path::new(folder).join(name)).ok())
}
