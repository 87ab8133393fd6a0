//! What the machines have of their own: the architecture of their code, the first instructions, the console, the instruction cache.

#[cfg_attr(target_arch = "aarch64", path = "machine/aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "machine/arm.rs")]
#[cfg_attr(any(target_arch = "riscv32", target_arch = "riscv64"), path = "machine/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "machine/x86_64.rs")]
mod own;
#[cfg(not(target_arch = "x86_64"))]
mod semihosting;
#[cfg(target_arch = "x86_64")]
mod serial;

pub use own::{Architecture, EDITS, code_has_changed};

#[cfg(not(target_arch = "x86_64"))]
use semihosting::print;
#[cfg(target_arch = "x86_64")]
use serial::print;

#[cfg(not(target_arch = "x86_64"))]
pub use semihosting::exit;
#[cfg(target_arch = "x86_64")]
pub use serial::exit;

/// The console of whoever emulates or debugs this machine.
pub struct Console;

impl core::fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        print(text);
        Ok(())
    }
}
