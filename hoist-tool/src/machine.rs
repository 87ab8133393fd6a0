//! Which architecture's tables a file needs.

use anyhow::{Result, bail};
use archs::Architecture;
use elf_core::{File, names};

/// The architecture for which a file of a host is relocated.
///
/// # Errors
/// If this project has no relocations for it.
pub fn architecture(file: &File<'_>) -> Result<Architecture> {
    let number = file.header().machine;
    let is_64 = file.encoding().is_64();
    let bits = if is_64 { 64 } else { 32 };
    match Architecture::of(number, is_64).filter(|found| !found.is_gpu()) {
        Some(architecture) => Ok(architecture),
        None => match names::machine(number) {
            Some(name) => bail!("no relocations for {name} with {bits} bits"),
            None => bail!("no relocations for machine {number} with {bits} bits"),
        },
    }
}
