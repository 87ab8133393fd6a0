//! What code that chooses by the processor (`target_clones`, `__builtin_cpu_supports`) asks of its compiler's run-time library. That
//! library is linked statically: no process has these symbols for others.

#[cfg(not(target_arch = "arm"))]
pub(crate) mod bits;

use crate::external::External;
use crate::machine;
use elf_core::Name;

/// The symbol of this name.
pub(crate) fn find(name: Name<'_>) -> Option<External> {
    machine::processor::find(name.to_str()?)
}
