//! Which architecture's tables a file needs, and the names of its relocations.

use core::fmt;

use anyhow::{Result, bail};
use elf_core::names::{self, EM_386, EM_AARCH64, EM_CUDA, EM_RISCV, EM_X86_64};
use elf_core::{Arch, File, Kind};
pub use reloc_aarch64::Aarch64;
use reloc_cuda::Cuda;
pub use reloc_riscv::{Rv32, Rv64};
pub use reloc_x86::{I386, X86_64};

/// An architecture that objects can be relocated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// `EM_X86_64`, 64 bits.
    X86_64,
    /// `EM_386`.
    I386,
    /// `EM_AARCH64`, 64 bits, of either byte order.
    Aarch64,
    /// `EM_RISCV`, 32 bits.
    Rv32,
    /// `EM_RISCV`, 64 bits.
    Rv64,
}

impl Machine {
    /// The machine of a file.
    ///
    /// # Errors
    /// If this project has no relocations for it.
    pub fn of(file: &File<'_>) -> Result<Self> {
        let number = file.header().machine;
        let bits = if file.encoding().is_64() { 64 } else { 32 };
        Ok(match (number, bits) {
            (EM_X86_64, 64) => Self::X86_64,
            (EM_386, 32) => Self::I386,
            (EM_AARCH64, 64) => Self::Aarch64,
            (EM_RISCV, 32) => Self::Rv32,
            (EM_RISCV, 64) => Self::Rv64,
            _ => match names::machine(number) {
                Some(name) => bail!("no relocations for {name} with {bits} bits"),
                None => bail!("no relocations for machine {number} with {bits} bits"),
            },
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::I386 => "i386",
            Self::Aarch64 => "AArch64",
            Self::Rv32 => "RISC-V 32",
            Self::Rv64 => "RISC-V 64",
        })
    }
}

/// Runs `$body` with `$A` as the [`Arch`] of `$machine`.
#[macro_export]
macro_rules! with_arch {
    ($machine:expr, $A:ident => $body:expr) => {
        match $machine {
            $crate::machine::Machine::X86_64 => {
                type $A = $crate::machine::X86_64;
                $body
            }
            $crate::machine::Machine::I386 => {
                type $A = $crate::machine::I386;
                $body
            }
            $crate::machine::Machine::Aarch64 => {
                type $A = $crate::machine::Aarch64;
                $body
            }
            $crate::machine::Machine::Rv32 => {
                type $A = $crate::machine::Rv32;
                $body
            }
            $crate::machine::Machine::Rv64 => {
                type $A = $crate::machine::Rv64;
                $body
            }
        }
    };
}

/// The name of a relocation type: of ours where this project relocates the machine, else from its list of names.
#[must_use]
pub fn relocation_name(machine: u16, r#type: u32) -> Option<&'static str> {
    let ours = |kinds: &'static [Kind]| elf_core::find(kinds, r#type).map(|kind| kind.name);
    match machine {
        EM_X86_64 => ours(X86_64::KINDS),
        EM_386 => ours(I386::KINDS),
        EM_AARCH64 => ours(Aarch64::KINDS),
        EM_CUDA => ours(Cuda::KINDS),
        EM_RISCV => ours(Rv64::KINDS),
        _ => names::relocation(machine, r#type),
    }
}
