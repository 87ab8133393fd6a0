//! Versions of compilers that were asked before.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::string::String;

use exec_core::{Cache, Identity, Key, Lookup};

/// What the version of the program at `path` is known by; nothing if it is only a name for a program that may start any
/// compiler.
pub(super) fn key(path: &Path, name: &str) -> Option<Key> {
    let path = fs::canonicalize(path).ok()?;
    // not `ccache`, which answers to the names of all compilers
    let is_named = path.file_name()?.to_str()?.split('-').any(|part| part == name);
    let file = fs::metadata(&path).ok().filter(|_| is_named)?;
    let (size, number, device) = (file.len(), file.ino(), file.dev());
    let state = format!("{size} {number} {device} {} {}", file.mtime(), file.mtime_nsec());
    let identity = Identity { name: "version of", version: &state, target: "", options: &[] };
    Some(Key::of(&identity, path.to_str()?))
}

/// The version, if the cache knows it.
pub(super) fn known(cache: &dyn Cache, key: &Key) -> Option<String> {
    match cache.get(key).ok()? {
        Lookup::Hit(version) => String::from_utf8(version).ok(),
        Lookup::Miss | Lookup::Damaged => None,
    }
}
