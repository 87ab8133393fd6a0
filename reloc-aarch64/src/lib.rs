//! Relocation kinds of AArch64: one row says what a kind computes, which values it allows and which bits it fills.
//!
//! ```
//! use elf_core::{Query, Record, Role, SectionMut, apply};
//! use reloc_aarch64::Aarch64;
//! use reloc_aarch64::aarch64::R_AARCH64_CALL26;
//!
//! let mut code = 0x9400_0000u32.to_le_bytes(); // bl callee
//! let record = Record { offset: 0, symbol: 7, r#type: R_AARCH64_CALL26, addend: Some(0) };
//! let mut section = SectionMut { bytes: &mut code, address: 0x1000, big_endian: false };
//! let callee = |query: &Query| (query.role == Role::Plt && query.symbol == 7).then_some(0x0f80);
//!
//! apply::<Aarch64>(&record, &mut section, &callee)?;
//! assert_eq!(code, 0x97ff_ffe0u32.to_le_bytes()); // (0x0f80 - 0x1000) / 4 = -32
//! # Ok::<(), elf_core::ApplyError>(())
//! ```
//!
//! Above `elf-core`, whose words the tables are written in; below the executors, which answer what symbols are worth.
//!
//! `MOVN` and `MOVZ` follow the sign, as the ABI wants it; loads through the GOT become additions if a linker
//! [knows](elf_core::Facts) enough of the symbol, and [sequences](elf_core::tls) for thread-local variables become local exec. ILP32 (`ELFCLASS32`, with numbers
//! of its own) is not this architecture; pointer authentication is refused by name.
#![no_std]
#![forbid(unsafe_code)]

pub mod aarch64;
mod relax;
mod tls;

pub use aarch64::Aarch64;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
