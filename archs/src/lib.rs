//! The one list of the architectures that hoist relocates. Whoever works for all of them goes over this list.
//!
//! ```
//! use archs::{Architecture, Visitor};
//! use elf_core::Arch;
//!
//! struct Kinds;
//!
//! impl Visitor for Kinds {
//!     type Output = usize;
//!
//!     fn visit<A: Arch>(self) -> usize {
//!         A::KINDS.len()
//!     }
//! }
//!
//! let architecture = Architecture::of(elf_core::names::EM_AARCH64, true).expect("AArch64");
//! assert_eq!(architecture.to_string(), "AArch64");
//! assert!(architecture.visit(Kinds) > 100);
//! ```
//!
//! Above the crates `reloc-*`, of which each has its rows and stubs; below the executors and the command line. A crate with a new
//! architecture is entered with a line of [`list!`].
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;
use elf_core::names::{self, EM_CUDA};
use elf_core::{Arch, Kind, find};

#[doc(hidden)]
pub use {reloc_aarch64, reloc_arm, reloc_cuda, reloc_loongarch, reloc_riscv, reloc_x86};

/// The list: calls a macro with what it is given and a line of each architecture.
#[doc(hidden)]
#[macro_export]
macro_rules! list {
    ($callback:ident $($given:tt)*) => {
        $crate::$callback! {
            $($given)*
            // variant, its name, and the type with its tables
            [X86_64, "x86-64", reloc_x86::X86_64]
            [I386, "i386", reloc_x86::I386]
            [Aarch64, "AArch64", reloc_aarch64::Aarch64]
            [Cuda, "CUDA", reloc_cuda::Cuda]
            [Arm, "Arm", reloc_arm::Arm]
            [Rv32, "RISC-V 32", reloc_riscv::Rv32]
            [Rv64, "RISC-V 64", reloc_riscv::Rv64]
            [LoongArch64, "LoongArch64", reloc_loongarch::LoongArch64]
        }
    };
}

/// Runs an expression with a type `A` for the [`Arch`] of an [`Architecture`]: a [`Visitor`] for those who need their surroundings.
///
/// ```
/// use archs::{Architecture, with_arch};
/// use elf_core::Arch as _;
///
/// for &architecture in Architecture::ALL {
///     assert_eq!(with_arch!(architecture, A => A::MACHINE), architecture.machine());
/// }
/// ```
#[macro_export]
macro_rules! with_arch {
    ($architecture:expr, $A:ident => $body:expr) => {
        $crate::list! { __with ($architecture) $A ($body) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __with {
    (
        ($architecture:expr) $A:ident ($body:expr)
        $([$variant:ident, $name:literal, $module:ident::$arch:ident])*
    ) => {
        match $architecture {
            $($crate::Architecture::$variant => {
                type $A = $crate::$module::$arch;
                $body
            })*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __define {
    ($([$variant:ident, $name:literal, $module:ident::$arch:ident])*) => {
        /// An architecture, known when the program runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names of the types")]
        pub enum Architecture {
            $($variant,)*
        }

        impl Architecture {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The path of the [`Arch`], crate first, for those who write programs.
            #[must_use]
            pub const fn path(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!(stringify!($module), "::", stringify!($arch)),)*
                }
            }

            /// What `visitor` makes of the architecture.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant => visitor.visit::<$module::$arch>(),)*
                }
            }
        }
    };
}

list! { __define }

/// What is done with an architecture that is known when the program runs.
pub trait Visitor {
    /// What it gives.
    type Output;

    /// Does it.
    fn visit<A: Arch>(self) -> Self::Output;
}

impl Architecture {
    /// That of files with this `e_machine` and addresses of 64 bits or 32.
    #[must_use]
    pub fn of(machine: u16, is_64: bool) -> Option<Self> {
        let size = if is_64 { 8 } else { 4 };
        let is_it = |it: &&Self| it.machine() == machine && it.address_size() == size;
        Self::ALL.iter().find(is_it).copied()
    }

    /// `e_machine`.
    #[must_use]
    pub fn machine(self) -> u16 {
        with_arch!(self, A => A::MACHINE)
    }

    /// Size of an address in bytes.
    #[must_use]
    pub fn address_size(self) -> u64 {
        with_arch!(self, A => A::ADDRESS_SIZE)
    }

    /// All kinds of relocation, by rising number.
    #[must_use]
    pub fn kinds(self) -> &'static [Kind] {
        with_arch!(self, A => A::KINDS)
    }

    /// Whether it is that of a GPU, whose device linker is another than that of hosts.
    #[must_use]
    pub fn is_gpu(self) -> bool {
        self.machine() == EM_CUDA
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The ABI's name of a relocation's type: that of a row where hoist relocates the machine, else of the list of names.
#[must_use]
pub fn relocation_name(machine: u16, r_type: u32) -> Option<&'static str> {
    match Architecture::ALL.iter().find(|architecture| architecture.machine() == machine) {
        Some(architecture) => find(architecture.kinds(), r_type).map(|kind| kind.name),
        None => names::relocation(machine, r_type),
    }
}

/// The architecture of this program.
#[cfg(target_arch = "aarch64")]
pub type Host = reloc_aarch64::Aarch64;
/// The architecture of this program.
#[cfg(target_arch = "arm")]
pub type Host = reloc_arm::Arm;
/// The architecture of this program.
#[cfg(target_arch = "riscv64")]
pub type Host = reloc_riscv::Rv64;
/// The architecture of this program.
#[cfg(target_arch = "x86_64")]
pub type Host = reloc_x86::X86_64;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_machine() {
        for &architecture in Architecture::ALL {
            let is_64 = architecture.address_size() == 8;
            assert_eq!(Architecture::of(architecture.machine(), is_64), Some(architecture));
            let kind = architecture.kinds().last().unwrap();
            assert_eq!(relocation_name(architecture.machine(), kind.number), Some(kind.name));
        }
        assert_eq!(Architecture::of(names::EM_NONE, true), None);
    }
}
