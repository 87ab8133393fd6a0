//! Permissions of pages, and what happens to who offends against them: an MMU, an MPU, RISC-V's PMP.
//!
//! Each machine has the same: memory for programs, and functions that prepare, set permissions of pages, and try what is to fail.

#[cfg_attr(target_arch = "aarch64", path = "protection/aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "protection/arm.rs")]
#[cfg_attr(target_arch = "riscv64", path = "protection/riscv64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "protection/x86_64.rs")]
mod own;

use core::fmt::Write as _;

use elf_core::SegmentFlags;

use crate::load::Loaded;
use crate::machine::{Console, exit};

pub use own::{MEMORY, prepare};

/// A table that a processor reads.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
#[repr(C, align(4096))]
struct Table<T = [u64; 512]>(core::cell::UnsafeCell<T>);

// SAFETY: there is one processor, and no function holds a reference when another one is called.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
unsafe impl<T> Sync for Table<T> {}

#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
impl<T> Table<T> {
    const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Its address, which is the physical one, too.
    fn address(&self) -> u64 {
        self.0.get().expose_provenance() as u64
    }

    fn with(&self, f: impl FnOnce(&mut T)) {
        // SAFETY: there is one processor, and no other function has a reference.
        f(unsafe { &mut *self.0.get() });
    }
}

// What is tried, by the code of `own`: a store of the third argument's byte if the second one is 0, else a call; 1 if that was a fault.
#[cfg(target_arch = "x86_64")]
unsafe extern "sysv64" {
    fn attempt(address: usize, how: usize, value: usize) -> usize;
}
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" {
    fn attempt(address: usize, how: usize, value: usize) -> usize;
}

/// Gives a program's pages their permissions; `false` if the machine cannot.
///
/// # Safety
/// The program is in memory that is for programs, and is relocated.
pub unsafe fn protect(loaded: &Loaded) -> bool {
    own::begin();
    let set = loaded.pages.clone().all(|range| {
        let start = (loaded.base + range.offset) as usize;
        // SAFETY: as the caller guarantees.
        unsafe { own::set(start..start + range.size as usize, range.final_flags()) }
    });
    own::end();
    set
}

/// Whether the permissions hold: tries to write to each range of pages, and to run those that are not code.
///
/// # Safety
/// The program is as [`protect`] left it, and does not run.
pub unsafe fn check(name: &str, loaded: &Loaded) -> bool {
    let mut right = true;
    for range in loaded.pages.clone() {
        let (start, size, flags) = (loaded.base + range.offset, range.size, range.final_flags());
        let address = start as usize;
        let (may_read, may_write) =
            (flags.contains(SegmentFlags::READ), flags.contains(SegmentFlags::WRITE));
        let held = match may_read && may_write {
            // SAFETY: the page is there and may be read.
            true => unsafe { core::ptr::with_exposed_provenance::<u8>(address).read_volatile() },
            false => 0,
        };
        // SAFETY: where it may be written, the byte that is there.
        let written = unsafe { attempt(address, 0, held.into()) } == 0;
        // Thumb code's addresses are odd
        let function = address | usize::from(cfg!(target_arch = "arm"));
        // SAFETY: what may be executed is not called; all else is a fault, or the machine is broken.
        let called =
            flags.contains(SegmentFlags::EXECUTE) || unsafe { attempt(function, 1, 0) } == 0;
        let word = |done| if done { "done" } else { "trapped" };
        let _ = writeln!(
            Console,
            "{name}: {size:#x} bytes at {start:#x}: {flags:?}: write {}, execution {}",
            word(written),
            word(called)
        );
        right &= written == may_write && called == flags.contains(SegmentFlags::EXECUTE);
    }
    right
}

/// A fault that nobody tried to have.
#[cfg_attr(target_arch = "x86_64", unsafe(export_name = "unexpected"))]
#[cfg(target_arch = "x86_64")]
extern "sysv64" fn unexpected() -> ! {
    stop()
}

/// A fault that nobody tried to have.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(export_name = "unexpected")]
extern "C" fn unexpected() -> ! {
    stop()
}

fn stop() -> ! {
    let _ = writeln!(Console, "failed: an unexpected fault");
    exit(false)
}
