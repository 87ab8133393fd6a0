//! Extended attributes: capabilities, access lists, what users wrote.

use std::fs::File;
use std::path::Path;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr, getxattr, listxattr};

use crate::paint;

/// No file system has longer lists or values.
const LARGEST: usize = 1 << 16;

/// Gives a file the attributes of another one; which it cannot have is told, if `told` says so.
pub(super) fn keep(file: &File, old: &Path, told: bool) {
    let mut names = vec![0; LARGEST];
    // a file system without attributes has none to keep
    let size = listxattr(old, &mut names[..]).unwrap_or(0);
    let names = names.get(..size).unwrap_or_default();
    let (mut value, mut own) = (vec![0; LARGEST], vec![0; LARGEST]);
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let size = getxattr(old, name, &mut value[..]).unwrap_or(0);
        let value = value.get(..size).unwrap_or_default();
        let has = fgetxattr(file, name, &mut own[..]).unwrap_or(usize::MAX);
        if own.get(..has) == Some(value) {
            continue;
        }
        let done = fsetxattr(file, name, value, XattrFlags::empty());
        if let (Err(error), true) = (done, told) {
            let (path, name) = (old.display().to_string(), String::from_utf8_lossy(name));
            paint::warning(&format!("{path}: is a new file without the attribute {name}: {error}"));
        }
    }
}
