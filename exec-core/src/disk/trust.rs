//! Whether a cache may be believed: what it gives out is run.

use std::format;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::string::ToString as _;
use std::sync::Arc;

use crate::error::CacheError;

/// What SQLite keeps beside a database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The folder without links in its path, if it is there; refused unless nobody but the user of this process can put anything into
/// it or into the database of this name.
///
/// # Errors
/// [`CacheError::Untrusted`]; [`CacheError::Open`] if it cannot be looked at.
pub(super) fn folder(folder: &Path, database: &str) -> Result<Option<PathBuf>, CacheError> {
    // without a separator at the end, which would follow a link
    let folder: PathBuf = folder.components().collect();
    if !look(&folder, true)? {
        return Ok(None);
    }
    let folder = fs::canonicalize(folder).map_err(|error| CacheError::Open(Arc::new(error)))?;
    for above in folder.ancestors().skip(1) {
        check_above(above)?;
    }
    look(&folder.join(database), false)?;
    for end in BESIDE {
        look(&folder.join(format!("{database}{end}")), false)?;
    }
    Ok(Some(folder))
}

/// Whether there is something at `path`; refused if others have a hand in it.
fn look(path: &Path, is_folder: bool) -> Result<bool, CacheError> {
    let file = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        outcome => outcome.map_err(|error| CacheError::Open(Arc::new(error)))?,
    };
    let (owner, mode) = owner(&file);
    let what = if file.is_symlink() {
        "is a symbolic link"
    } else if !is_folder && !file.is_file() {
        "is no regular file"
    } else if owner != user() {
        "belongs to somebody else"
    } else if mode & 0o022 != 0 {
        "can be written by others"
    } else {
        return Ok(true);
    };
    Err(CacheError::Untrusted { path: path.display().to_string(), what, owner, mode })
}

/// Refuses a folder in which anybody can put another one in the cache's place.
fn check_above(path: &Path) -> Result<(), CacheError> {
    const STICKY: u32 = 0o1000;
    let file = fs::symlink_metadata(path).map_err(|error| CacheError::Open(Arc::new(error)))?;
    let (owner, mode) = owner(&file);
    if mode & 0o002 == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    let what = "holds the cache and can be written by everybody";
    Err(CacheError::Untrusted { path: path.display().to_string(), what, owner, mode })
}

/// Owner and permissions of a file.
#[cfg(unix)]
fn owner(file: &fs::Metadata) -> (u32, u32) {
    use std::os::unix::fs::MetadataExt as _;
    (file.uid(), file.mode() & 0o7777)
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Where files have other ways to say who may write them, the folder is the user's business.
#[cfg(not(unix))]
fn owner(_: &fs::Metadata) -> (u32, u32) {
    (0, 0)
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}
