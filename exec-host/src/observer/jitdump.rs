//! Code for `perf inject --jit`, which makes it files that `perf report` and `perf annotate` read
//! (`tools/perf/Documentation/jitdump-specification.txt` of Linux).

use super::debug_object::debug_object;
use super::lines::{Line, lines};
use super::{Loaded, LoadedFunction, LoadedLibrary, Observed, Observer};
use crate::Host;
use crate::word::wide;
use core::ffi::c_void;
use core::ptr;
use elf_core::Arch as _;
use exec_core::sync::Mutex;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Writes every function that is loaded, with its code and the lines that it was compiled from, to `jit-PID.dump`.
///
/// Run the program under `perf record -k CLOCK_MONOTONIC`, then `perf inject --jit`. The format has no record of an unload:
/// what is loaded to the same addresses later replaces it, by its time.
#[derive(Debug)]
pub struct JitDump {
    state: Mutex<State>,
    marker: Marker,
    path: PathBuf,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Number of functions so far.
    count: u64,
}

/// A mapping of the file that `perf record` notes, so that `perf inject` finds the file.
#[derive(Debug)]
struct Marker(*mut c_void);

// SAFETY: it is an address that is unmapped at last.
unsafe impl Send for Marker {}
// SAFETY: as above.
unsafe impl Sync for Marker {}

/// `JIT_CODE_LOAD`.
const LOAD: u32 = 0;
/// `JIT_CODE_DEBUG_INFO`.
const DEBUG_INFO: u32 = 2;
/// `JIT_CODE_CLOSE`.
const CLOSE: u32 = 3;
/// Size of what every record starts with: number, size, time.
const PREFIX: usize = 16;
/// Bytes mapped as a marker.
const MARKER: usize = 1;

impl JitDump {
    /// Begins `jit-PID.dump` in a folder, in the place of a file of this name.
    ///
    /// # Errors
    /// If the file cannot be written, or not be mapped executable, which `perf record` waits for.
    pub fn create(folder: impl AsRef<Path>) -> io::Result<Self> {
        let path = folder.as_ref().join(format!("jit-{}.dump", std::process::id()));
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).read(true).write(true);
        let mut file = options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC).open(&path)?;
        let mut header = Vec::new();
        header.extend_from_slice(b"DTiJ"); // JiTD in the byte order of the machine
        for word in [1, 40, Host::MACHINE.into(), 0, std::process::id()] {
            header.extend_from_slice(&u32::to_le_bytes(word));
        }
        header.extend_from_slice(&now().to_le_bytes());
        header.extend_from_slice(&0u64.to_le_bytes());
        file.write_all(&header)?;
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: without a wish for an address no existing mapping is touched, and nobody reads this one.
        let marker =
            unsafe { mmap(ptr::null_mut(), MARKER, protection, MapFlags::PRIVATE, &file, 0) }?;
        Ok(Self { state: Mutex::new(State { file, count: 0 }), marker: Marker(marker), path })
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Observer for JitDump {
    fn loaded(&self, loaded: &Loaded<'_>) -> io::Result<Option<Observed>> {
        let mut known: Vec<Line> = Vec::new();
        for object in 0..loaded.files().len() {
            if let Some(object) = debug_object(loaded, object) {
                lines(&object, &mut known);
            }
        }
        self.write(&loaded.functions(), known, |address, size| loaded.bytes(address, size))
    }

    fn library_loaded(&self, library: &LoadedLibrary<'_>) -> io::Result<Option<Observed>> {
        let mut known: Vec<Line> = Vec::new();
        lines(library.file(), &mut known);
        for line in &mut known {
            line.address = line.address.wrapping_add(library.bias());
        }
        self.write(&library.functions(), known, |address, size| library.code(address, size))
    }
}

impl JitDump {
    /// Appends functions, with their code and the lines that are known.
    fn write<'l>(
        &self,
        functions: &[LoadedFunction<'_>],
        mut known: Vec<Line>,
        code: impl Fn(u64, u64) -> Option<&'l [u8]>,
    ) -> io::Result<Option<Observed>> {
        known.sort_by_key(|line| line.address);
        let mut state = self.state.lock();
        let mut records = Vec::new();
        let mut count = state.count;
        for function in functions {
            let Some(code) = code(function.address, function.size) else { continue };
            let end = function.address.saturating_add(function.size);
            let from = known.partition_point(|line| line.address < function.address);
            let to = known.partition_point(|line| line.address < end);
            if let Some(lines) = known.get(from..to).filter(|lines| !lines.is_empty()) {
                debug_info(&mut records, function.address, lines);
            }
            load(&mut records, function, code, count);
            count = count.saturating_add(1);
        }
        state.file.write_all(&records)?;
        state.count = count;
        Ok(None)
    }
}

impl Drop for JitDump {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let mut close = Vec::new();
        record(&mut close, CLOSE, |_| ());
        // the format does without
        let _ = state.file.write_all(&close);
        // SAFETY: it is our mapping, of which nobody has a reference.
        let _ = unsafe { munmap(self.marker.0, MARKER) };
    }
}

/// Appends a record: its number, its size, the time, and its content.
fn record(records: &mut Vec<u8>, number: u32, content: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    content(&mut body);
    let size = u32::try_from(body.len().saturating_add(PREFIX)).unwrap_or(u32::MAX);
    records.extend_from_slice(&number.to_le_bytes());
    records.extend_from_slice(&size.to_le_bytes());
    records.extend_from_slice(&now().to_le_bytes());
    records.append(&mut body);
}

/// Appends the record of a function.
fn load(records: &mut Vec<u8>, function: &LoadedFunction<'_>, code: &[u8], index: u64) {
    record(records, LOAD, |body| {
        body.extend_from_slice(&std::process::id().to_le_bytes());
        body.extend_from_slice(&rustix::thread::gettid().as_raw_nonzero().get().to_le_bytes());
        for word in [function.address, function.address, code.len() as u64, index] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        body.extend_from_slice(function.name.as_bytes());
        body.extend_from_slice(if function.is_stub { b"@plt\0" } else { b"\0" });
        body.extend_from_slice(code);
    });
}

/// Appends the lines of the function that comes next.
fn debug_info(records: &mut Vec<u8>, address: u64, lines: &[Line]) {
    record(records, DEBUG_INFO, |body| {
        body.extend_from_slice(&address.to_le_bytes());
        body.extend_from_slice(&(lines.len() as u64).to_le_bytes());
        for line in lines {
            body.extend_from_slice(&line.address.to_le_bytes());
            body.extend_from_slice(&line.number.to_le_bytes());
            body.extend_from_slice(&line.discriminator.to_le_bytes());
            body.extend(line.file.bytes().filter(|byte| *byte != 0));
            body.push(0);
        }
    });
}

/// Nanoseconds of the clock that `perf record -k CLOCK_MONOTONIC` uses.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result is written to a variable of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|it| wide(it.cast_unsigned()));
    seconds.wrapping_mul(1_000_000_000).wrapping_add(rest)
}
