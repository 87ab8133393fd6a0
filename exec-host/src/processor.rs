//! What code that chooses by the processor (`target_clones`, `__builtin_cpu_supports`) asks of its compiler's run-time library. That
//! library is linked statically: no process has these symbols for others.

#[cfg(target_arch = "aarch64")]
mod atomics;
#[cfg_attr(target_arch = "aarch64", path = "processor/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "processor/x86_64.rs")]
mod machine;

use crate::external::External;
use elf_core::Name;

/// The symbol of this name.
pub(crate) fn find(name: Name<'_>) -> Option<External> {
    machine::find(name.to_str()?)
}

/// Words of bits, those set whose feature is there.
fn bits<const N: usize>(features: &[(u32, bool)]) -> [u32; N] {
    let mut words = [0; N];
    for &(number, _) in features.iter().filter(|(_, is_there)| *is_there) {
        if let Some(word) = words.get_mut(number as usize / 32) {
            *word |= 1 << (number % 32);
        }
    }
    words
}
