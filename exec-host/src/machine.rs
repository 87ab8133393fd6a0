//! What is another thing on every machine: a folder for each, with files and names that are the same in all.
//!
//! Which one it is, is chosen here and nowhere else.

#[cfg_attr(target_arch = "aarch64", path = "machine/aarch64/mod.rs")]
#[cfg_attr(target_arch = "arm", path = "machine/arm/mod.rs")]
#[cfg_attr(target_arch = "riscv64", path = "machine/riscv64/mod.rs")]
#[cfg_attr(target_arch = "x86_64", path = "machine/x86_64/mod.rs")]
mod chosen;

pub use chosen::*;
