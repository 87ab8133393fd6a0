//! What a killed process leaves: a file under a name of ours, that nobody holds any more. Whoever writes such a file next into the folder
//! removes it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;

const PREFIX: &str = ".hoist-";
const SUFFIX: &str = ".tmp";

/// Of files under such names.
pub(super) fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder
}

/// Whether a file is called so: it is being written, or was.
#[must_use]
pub fn is_ours(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Keeps others from removing a file as long as it is open. Where that cannot be, nobody removes any.
pub(super) fn hold(file: &File) {
    let _ = file.try_lock();
}

/// Removes what nobody holds. What cannot be removed stays: it keeps nobody from writing.
pub(super) fn clean(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_ours(&entry.file_name()) || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let held = File::open(entry.path()).map(|file| file.try_lock().is_err());
        if held.is_ok_and(|held| !held) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
