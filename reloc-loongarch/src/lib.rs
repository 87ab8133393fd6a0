//! Relocation kinds of LoongArch64: one row says what a kind computes, which values it allows and which bits it fills.
//!
//! ```
//! use elf_core::{Query, Record, Role, SectionMut, apply};
//! use reloc_loongarch::LoongArch64;
//! use reloc_loongarch::loongarch::R_LARCH_CALL36;
//!
//! let mut code = [0x01, 0, 0, 0x1e, 0x21, 0, 0, 0x4c]; // pcaddu18i ra, 0; jirl ra, ra, 0
//! let record = Record { offset: 0, symbol: 7, r#type: R_LARCH_CALL36, addend: Some(0) };
//! let mut section = SectionMut { bytes: &mut code, address: 0x1000, big_endian: false };
//! let callee = |query: &Query| (query.role == Role::Plt && query.symbol == 7).then_some(0x2_1800);
//!
//! apply::<LoongArch64>(&record, &mut section, &callee)?;
//! assert_eq!(code, [0x21, 0, 0, 0x1e, 0x21, 0, 0x08, 0x4e]); // pcaddu18i ra, 1; jirl ra, ra, -0x1f800
//! # Ok::<(), elf_core::ApplyError>(())
//! ```
//!
//! Above `elf-core`, whose words the tables are written in; below the executors, which answer what symbols are worth.
//!
//! Code becomes shorter where whoever lays it out has [room](elf_core::Shrink) to note that: padding, calls of 36 bits, addresses
//! within 2 MiB of the code, also where the GOT has them, variables near the thread pointer. Else it stays as long as it was compiled, and padding that a linker would have to shorten for an alignment is refused as
//! misaligned. Sequences of TLS descriptors become local exec where the variable's offset from the thread pointer is [known](elf_core::Facts). Objects of the first ABI, whose relocations are a stack machine (`R_LARCH_SOP_PUSH_PCREL` and others), are
//! refused by name.
#![no_std]
#![forbid(unsafe_code)]

mod code;
mod fields;
pub mod loongarch;
mod relax;
mod tls;

pub use loongarch::LoongArch64;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
