//! Files that other files name: read with a limit, and only where they may be.

use core::error::Error as StdError;
use core::fmt;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec::Vec;

/// Bytes that the files which one file names may have in all, unless told otherwise.
pub const NAMED_LIMIT: u64 = 4 << 30;

/// Reads the files that a file names, such as the members of a thin archive. Whoever wrote that file may be anybody: only regular
/// files are opened, in its folder or below, and in all no more bytes are read than the limit. A file that is named again
/// is not read again, but counts again.
#[derive(Debug)]
pub struct NamedFiles {
    folder: PathBuf,
    anywhere: bool,
    limit: u64,
    left: u64,
    known: HashMap<PathBuf, Arc<[u8]>>,
}

/// Why a file was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The system says no.
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It is a device, a pipe, a folder or the like.
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// It is not in the folder of the file that names it.
    Outside {
        /// The file, without links in its path.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// With it, more bytes would be read than allowed.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// Bytes allowed in all.
        limit: u64,
    },
}

impl NamedFiles {
    /// For the names in the file at `path`: relative to its folder. At most [`NAMED_LIMIT`] bytes in all.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let (folder, known) = (folder.to_owned(), HashMap::new());
        Self { folder, anywhere: false, limit: NAMED_LIMIT, left: NAMED_LIMIT, known }
    }

    /// The same, with files outside of the folder too.
    #[must_use]
    pub fn anywhere(self, anywhere: bool) -> Self {
        Self { anywhere, ..self }
    }

    /// The same, with at most so many bytes in all.
    #[must_use]
    pub fn limit(self, bytes: u64) -> Self {
        Self { limit: bytes, left: bytes, ..self }
    }

    /// The file of this name.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(&mut self, name: &Path) -> Result<Arc<[u8]>, FileError> {
        let named = self.folder.join(name);
        let system = |cause| FileError::System { path: named.clone(), cause };
        let path = fs::canonicalize(&named).map_err(system)?;
        if !self.anywhere {
            let folder = fs::canonicalize(&self.folder).map_err(system)?;
            if !path.starts_with(&folder) {
                return Err(FileError::Outside { path, folder: self.folder.clone() });
            }
        }
        let (limit, left) = (self.limit, self.left);
        if let Some(bytes) = self.known.get(&path) {
            let size = bytes.len() as u64;
            self.left = left.checked_sub(size).ok_or_else(|| FileError::TooLarge {
                path: named.clone(),
                size,
                limit,
            })?;
            return Ok(Arc::clone(bytes));
        }
        // looked at before it is opened: to open a pipe is to wait for who writes
        let is_file = fs::symlink_metadata(&path).map_err(system)?.is_file();
        if !is_file {
            return Err(FileError::NotRegular { path: named });
        }
        let file = fs::File::open(&path).map_err(system)?;
        let found = file.metadata().map_err(system)?;
        if !found.is_file() {
            return Err(FileError::NotRegular { path: named });
        }
        let mut bytes = Vec::new();
        if found.len() <= left {
            file.take(left.saturating_add(1)).read_to_end(&mut bytes).map_err(system)?;
        }
        // it may grow while it is read
        let size = found.len().max(bytes.len() as u64);
        self.left = left.checked_sub(size).ok_or_else(|| FileError::TooLarge {
            path: named.clone(),
            size,
            limit,
        })?;
        let bytes: Arc<[u8]> = bytes.into();
        self.known.insert(path, Arc::clone(&bytes));
        Ok(bytes)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::NotRegular { path } => write!(f, "{}: no regular file", path.display()),
            Self::Outside { path, folder } => {
                write!(f, "{}: not in the folder {}", path.display(), folder.display())
            }
            Self::TooLarge { path, size, limit } => write!(
                f,
                "{}: {size} bytes, with which more is named than the limit of {limit}",
                path.display()
            ),
        }
    }
}

impl StdError for FileError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::System { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
