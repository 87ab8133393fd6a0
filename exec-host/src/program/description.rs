//! What the system says of a process: where its arguments, environment and auxiliary vector are (`/proc/self/cmdline`, `environ`, `auxv`), by
//! which `ps` names it and debuggers find its program.

use core::ffi::{c_int, c_long};
use core::ops::Range;
use core::ptr;
use std::fs;
use std::io;
use std::os::fd::RawFd;

/// Some of what it says. What is not known stays as it is.
#[derive(Clone, Debug)]
pub(super) struct Description {
    code: Range<u64>,
    data: Range<u64>,
    heap: Range<u64>,
    stack: u64,
    pub(super) arguments: Range<u64>,
    pub(super) environment: Range<u64>,
    /// Words of an auxiliary vector that is to be the process's.
    pub(super) auxiliary: Option<Range<u64>>,
    /// The file that the process is to be of.
    pub(super) file: Option<RawFd>,
}

/// `struct prctl_mm_map` (<linux/prctl.h>).
#[repr(C)]
struct Map {
    words: [u64; 11],
    auxiliary: *const u8,
    auxiliary_size: u32,
    file: c_int,
}

impl Description {
    /// What it says of this one (proc(5), `/proc/pid/stat`).
    pub(super) fn of_process() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        // the name may have spaces
        let (_, fields) = stat.rsplit_once(')').ok_or(io::ErrorKind::InvalidData)?;
        // the first of these is field 3
        let field = |number: usize| {
            fields.split_ascii_whitespace().nth(number.saturating_sub(3))?.parse().ok()
        };
        let range = |first, last| Some(field(first)?..field(last)?);
        // SAFETY: asks where the heap ends.
        let heap = unsafe { libc::syscall(libc::SYS_brk, 0 as c_long) };
        let read = || {
            let heap = field(47)?..u64::try_from(heap).ok()?;
            Some(Self {
                code: range(26, 27)?,
                data: range(45, 46)?,
                heap,
                stack: field(28)?,
                arguments: range(48, 49)?,
                environment: range(50, 51)?,
                auxiliary: None,
                file: None,
            })
        };
        read().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Has it say so.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn tell(&self) -> io::Result<()> {
        let [code, data, heap] = [&self.code, &self.data, &self.heap];
        let auxiliary = self.auxiliary.clone().unwrap_or_default();
        let map = Map {
            words: [
                code.start,
                code.end,
                data.start,
                data.end,
                heap.start,
                heap.end,
                self.stack,
                self.arguments.start,
                self.arguments.end,
                self.environment.start,
                self.environment.end,
            ],
            auxiliary: ptr::with_exposed_provenance(auxiliary.start as usize),
            auxiliary_size: auxiliary.end.wrapping_sub(auxiliary.start) as u32,
            file: self.file.unwrap_or(-1),
        };
        // SAFETY: the kernel reads the structure and the vector, whose ranges are mapped or refused; it only remembers the others.
        let told = unsafe {
            libc::prctl(
                libc::PR_SET_MM,
                libc::PR_SET_MM_MAP as usize,
                &raw const map,
                size_of::<Map>(),
                0usize,
            )
        };
        if told == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
