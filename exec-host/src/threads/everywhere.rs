//! Writing to all threads' copies of a block, which nobody uses yet.
//!
//! Only the C library knows where a thread has its variables, and tells nobody. But the kernel says where a thread has the head of its
//! list of robust mutexes (`get_robust_list`), and glibc has that at one TP offset in every thread. What is
//! found is compared with this thread's head, and written by the kernel, so that a thread which ends meanwhile is an error code. Who
//! is being created at this moment copies the initial values, which are written before.
//!
//! In between a thread may end. The C library keeps its stack, where its variables are, for the next one, up to 40 MiB of stacks; what is
//! beyond that is unmapped, and the kernel finds nothing to write to. Only if somebody maps memory at the same addresses before the
//! next system call, that memory is written to: nothing in a process can rule it out.
//!
//! Where the kernel does not say it (emulators, filters of system calls), nothing is written, and whoever asked finds another way.

use crate::machine;
use core::ffi::c_void;
use std::collections::BTreeSet;
use std::io;

/// Bytes of a `struct robust_list_head` (<linux/futex.h>).
const HEAD: usize = 3 * size_of::<usize>();
/// How often a thread is asked that has just begun.
const TRIES: u32 = 100;

/// Address of the head of a thread's list; 0 if it has none yet.
fn head_of(thread: i32) -> io::Result<u64> {
    let (mut head, mut size) = (0usize, 0usize);
    // SAFETY: the results are written to variables of ours.
    let result =
        unsafe { libc::syscall(libc::SYS_get_robust_list, thread, &raw mut head, &raw mut size) };
    match (result, head) {
        (0, 0) => Ok(0),
        (0, _) if size == HEAD => Ok(head as u64),
        (0, _) => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// One piece of memory of this process for the kernel to copy.
fn piece(address: u64, size: usize) -> libc::iovec {
    libc::iovec {
        iov_base: core::ptr::with_exposed_provenance_mut::<c_void>(address as usize),
        iov_len: size,
    }
}

/// What is `offset` bytes behind a head: `futex_offset` is one number for all threads of a C library.
fn word_behind(head: u64) -> Option<u64> {
    let mut word = 0usize;
    let size = size_of::<usize>();
    let local = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: size };
    let remote = piece(head.wrapping_add(size as u64), size);
    // SAFETY: the kernel writes to the word, and says so if there is nothing to read.
    let copied = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    (copied.cast_unsigned() == size).then_some(word as u64)
}

/// What is the same in all threads.
struct Known {
    /// From the thread pointer to the head.
    tp_offset: u64,
    futex_offset: u64,
}

fn known() -> Option<Known> {
    let head = head_of(0).ok().filter(|&head| head != 0)?;
    let tp_offset = head.wrapping_sub(machine::thread_pointer());
    // somewhere in the C library's description of the thread
    let is_near = tp_offset.cast_signed().unsigned_abs() < 1 << 16;
    is_near.then_some(Known { tp_offset, futex_offset: word_behind(head)? })
}

/// Whether threads can be reached here.
pub(super) fn is_possible() -> bool {
    static IS_POSSIBLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *IS_POSSIBLE.get_or_init(|| known().is_some() && threads().is_ok())
}

/// All threads of this process.
fn threads() -> io::Result<Vec<i32>> {
    let entries = std::fs::read_dir("/proc/self/task")?;
    let number = |entry: io::Result<std::fs::DirEntry>| {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    };
    entries.map(number).collect()
}

/// Whether a thread has ended, though others wait for it.
fn has_ended(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.map_or(true, |stat| {
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes());
        matches!(state, Some([b'Z' | b'X', ..]))
    })
}

/// The thread pointer of a thread; `None` if it has ended.
///
/// # Errors
/// If that cannot be known.
fn pointer_of(thread: i32, known: &Known) -> io::Result<Option<u64>> {
    for _ in 0..TRIES {
        match head_of(thread) {
            Ok(0) if has_ended(thread) => return Ok(None),
            // it has just begun
            Ok(0) => std::thread::sleep(core::time::Duration::from_micros(20)),
            Ok(head) => {
                if word_behind(head) == Some(known.futex_offset) {
                    return Ok(Some(head.wrapping_sub(known.tp_offset)));
                }
                std::thread::yield_now();
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Writes `content` at `tp_offset` of every thread that is there; whether that was done.
///
/// # Safety
/// All threads have so many bytes there, which nobody uses.
pub(super) unsafe fn write(tp_offset: i64, content: &[u8]) -> bool {
    let Some(known) = known() else { return false };
    let mut done = BTreeSet::new();
    // until there is none that was not seen
    loop {
        let Ok(mut threads) = threads() else { return false };
        threads.retain(|thread| !done.contains(thread));
        if threads.is_empty() {
            return true;
        }
        for thread in threads {
            let Ok(pointer) = pointer_of(thread, &known) else { return false };
            if let Some(pointer) = pointer {
                let local = libc::iovec {
                    iov_base: content.as_ptr().cast_mut().cast(),
                    iov_len: content.len(),
                };
                let remote = piece(pointer.wrapping_add_signed(tp_offset), content.len());
                // SAFETY: as the caller guarantees; where the thread has just ended, the kernel finds nothing to write to, or a stack that the
                // C library keeps for the next one.
                let copied = unsafe {
                    let this = libc::getpid();
                    libc::process_vm_writev(this, &raw const local, 1, &raw const remote, 1, 0)
                };
                if copied.cast_unsigned() != content.len()
                    && !matches!(head_of(thread), Err(_) | Ok(0))
                {
                    return false;
                }
            }
            done.insert(thread);
        }
    }
}
