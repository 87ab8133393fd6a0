//! What the machines have of their own: the architecture of their code, the first instructions, the console. But for UEFI, it is that of
//! the other example.

#[cfg_attr(target_arch = "aarch64", path = "../../bare-metal/src/machine/aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "../../bare-metal/src/machine/arm.rs")]
#[cfg_attr(target_arch = "riscv64", path = "../../bare-metal/src/machine/riscv.rs")]
#[cfg_attr(
    target_os = "none",
    cfg_attr(target_arch = "x86_64", path = "../../bare-metal/src/machine/x86_64.rs")
)]
#[cfg_attr(target_os = "uefi", path = "uefi.rs")]
#[expect(dead_code, reason = "what links objects has more of it")]
mod own;
#[cfg(not(target_arch = "x86_64"))]
#[path = "../../bare-metal/src/machine/semihosting.rs"]
mod semihosting;
#[cfg(target_arch = "x86_64")]
#[path = "../../bare-metal/src/machine/serial.rs"]
mod serial;

pub use own::{Architecture as Arch, code_has_changed};

#[cfg(not(target_arch = "x86_64"))]
pub use semihosting::exit;
#[cfg(not(target_arch = "x86_64"))]
use semihosting::print;
#[cfg(target_arch = "x86_64")]
pub use serial::exit;
#[cfg(target_arch = "x86_64")]
use serial::print;

#[cfg(target_os = "uefi")]
pub use own::reserve;

/// Takes memory for programs from whoever gives it out: nobody.
#[cfg(not(target_os = "uefi"))]
pub fn reserve(_: core::ops::Range<usize>) -> bool {
    true
}

/// Bytes of a page.
pub const PAGE: u64 = 0x1000;

/// The console of whoever emulates or debugs this machine.
pub struct Console;

impl core::fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        print(text);
        Ok(())
    }
}

/// Calls a program.
///
/// # Safety
/// It is in memory, and its entry a function of this type.
pub unsafe fn enter(entry: u64, value: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    type Entry = extern "sysv64" fn(usize) -> usize;
    #[cfg(not(target_arch = "x86_64"))]
    type Entry = extern "C" fn(usize) -> usize;
    let entry = core::ptr::with_exposed_provenance::<()>(entry as usize);
    // SAFETY: as the caller guarantees.
    unsafe { core::mem::transmute::<*const (), Entry>(entry)(value) }
}
