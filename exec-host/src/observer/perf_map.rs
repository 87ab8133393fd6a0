//! Names for `perf report` and `perf top`: `/tmp/perf-PID.map` (`tools/perf/Documentation/jit-interface.txt` of Linux).

use super::{Loaded, LoadedFunction, LoadedLibrary, Observed, Observer};
use core::fmt::Write as _;
use exec_core::sync::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a line for every function that is loaded.
///
/// The file knows no unloads. Where functions follow each other at one address, `perf` shows one of the names; a
/// `JitDump` tells them apart by time.
#[derive(Debug)]
pub struct PerfMap(Mutex<File>);

/// This process has begun its file: what is there is its own.
static BEGUN: AtomicBool = AtomicBool::new(false);

impl PerfMap {
    /// Opens `/tmp/perf-PID.map`, where `perf` looks for it. Several ones in a process append to the same file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create() -> io::Result<Self> {
        let path = format!("/tmp/perf-{}.map", std::process::id());
        // one of an earlier process with this number, if it is there
        if !BEGUN.swap(true, Ordering::AcqRel)
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        Self::create_at(path)
    }

    /// Opens a file of any other name, and appends to what is there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create_at(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        options.open(path).map(|file| Self(Mutex::new(file)))
    }
}

impl Observer for PerfMap {
    fn loaded(&self, loaded: &Loaded<'_>) -> io::Result<Option<Observed>> {
        self.write(&loaded.functions())
    }

    fn library_loaded(&self, library: &LoadedLibrary<'_>) -> io::Result<Option<Observed>> {
        self.write(&library.functions())
    }
}

impl PerfMap {
    fn write(&self, functions: &[LoadedFunction<'_>]) -> io::Result<Option<Observed>> {
        let mut lines = String::new();
        for function in functions {
            let suffix = if function.is_stub { "@plt" } else { "" };
            let name = function.name.to_string();
            let (address, size) = (function.address, function.size);
            writeln!(lines, "{address:x} {size:x} {name}{suffix}").map_err(io::Error::other)?;
        }
        let mut file = self.0.lock();
        file.write_all(lines.as_bytes())?;
        Ok(None)
    }
}
