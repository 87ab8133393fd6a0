//! Relocation kinds of CUDA cubins (`R_CUDA_*`): one row says what a kind computes, which values it allows, which bits it fills,
//! who resolves it, and how that is known.
//!
//! ```
//! use elf_core::{Query, Record, Role, SectionMut, apply};
//! use reloc_cuda::cuda::R_CUDA_CONST_FIELD19_40;
//! use reloc_cuda::{Cuda, Resolver, row};
//!
//! let mut code = [0; 16]; // an instruction of 128 bits
//! let mut section = SectionMut { bytes: &mut code, address: 0, big_endian: false };
//! let record = Record { offset: 0, symbol: 7, r#type: R_CUDA_CONST_FIELD19_40, addend: Some(12) };
//! let constants = |query: &Query| match query.role {
//!     Role::Address => Some(0x1c), // where the symbol is in its bank
//!     Role::Bank => Some(3),
//!     _ => None,
//! };
//!
//! apply::<Cuda>(&record, &mut section, &constants)?;
//! assert_eq!(u128::from_le_bytes(code), (0x28 >> 2) << 40 | 3 << 54);
//! assert_eq!(row(R_CUDA_CONST_FIELD19_40).map(|row| row.resolver), Some(Resolver::Linker));
//! # Ok::<(), elf_core::ApplyError>(())
//! ```
//!
//! # What a resolver is asked
//!
//! - [`Role::Address`](elf_core::Role::Address): a function's or variable's address on the device; for a symbol in shared memory
//!   its offset there, in a constant bank its offset in the bank.
//! - [`Role::Bank`](elf_core::Role::Bank): the number of that bank.
//! - [`Role::Generic`](elf_core::Role::Generic): the address that a pointer without a memory space has.
//! - [`Role::Unified`](elf_core::Role::Unified): the address of the function's or variable's entry in the table that devices
//!   share, or that of itself where there is none.
//! - [`Role::Descriptor`](elf_core::Role::Descriptor): the address of a function's descriptor.
//! - [`Role::HeaderIndex`](elf_core::Role::HeaderIndex), [`Role::TextureSlot`](elf_core::Role::TextureSlot),
//!   [`Role::SurfaceDescriptor`](elf_core::Role::SurfaceDescriptor): of a texture, sampler or surface; the kind says of which.
//! - [`Role::Size`](elf_core::Role::Size), by `R_CUDA_UNUSED_CLEAR*` alone: the symbol's size, or 0 if a linker drops it. The
//!   place holds the size already.
//!
//! # Loading and linking
//!
//! [`Load`] gives a linked cubin's image for a device address: sections aligned to 128 bytes, relocated, without a heap. With the
//! feature `link`, which needs a heap, `link::link` does a device linker's job on relocatable cubins.
//!
//! Above `elf-core`, whose words the table is written in; beside `nvinfo`, which reads what else a cubin holds.
//!
//! # What is refused
//!
//! `R_CUDA_INSTRUCTION128`, whose value has 128 bits, and all of the Mercury form (`R_MERCURY_*`, numbers from 0x10000), whose
//! places are in code that does not exist yet, are refused by name. `R_CUDA_YIELD_*` change nothing, as with nvlink.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "link")]
extern crate alloc;

pub mod cuda;
#[cfg(feature = "link")]
pub mod link;
mod load;
pub mod mercury;
mod proof;
mod resolver;
mod unified;

pub use cuda::RelocationRow;
pub use load::{Load, LoadError, LoadErrorKind, SECTION_ALIGNMENT};
pub use proof::Proof;
pub use resolver::Resolver;
pub use unified::without_unified_table;

use elf_core::names::EM_CUDA;
use elf_core::{Arch, Kind, Stub, well_formed};

/// CUDA, all architectures.
#[derive(Clone, Copy, Debug)]
pub struct Cuda;

impl Arch for Cuda {
    const MACHINE: u16 = EM_CUDA;
    const ADDRESS_SIZE: u64 = 8;
    const KINDS: &'static [Kind] = &KINDS;
    const STUBS: &'static [Stub] = &[];
}

/// The row of `R_CUDA_*` number `number`.
#[must_use]
pub fn row(number: u32) -> Option<&'static RelocationRow> {
    cuda::ROWS.get(usize::try_from(number).ok()?)
}

static KINDS: [Kind; cuda::KINDS.len() + mercury::KINDS.len()] = kinds();
const _: () = assert!(well_formed(&KINDS));

/// All kinds by rising number: those of machine code, then those of the Mercury form.
#[expect(clippy::indexing_slicing, reason = "the compiler runs this")]
const fn kinds() -> [Kind; cuda::KINDS.len() + mercury::KINDS.len()] {
    let mut all = [Kind::marker(0, ""); cuda::KINDS.len() + mercury::KINDS.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = match index.checked_sub(cuda::KINDS.len()) {
            None => cuda::KINDS[index],
            Some(index) => mercury::KINDS[index],
        };
        index += 1;
    }
    all
}

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
