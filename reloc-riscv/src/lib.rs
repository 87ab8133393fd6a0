//! Relocation kinds of RISC-V: one row says what a kind computes, which values it allows and which bits it fills.
//!
//! ```
//! use elf_core::{Query, Record, Role, SectionMut, apply};
//! use reloc_riscv::Rv64;
//! use reloc_riscv::riscv::R_RISCV_CALL_PLT;
//!
//! let mut code = [0x97, 0, 0, 0, 0xe7, 0x80, 0, 0]; // auipc ra, 0; jalr ra
//! let record = Record { offset: 0, symbol: 7, r#type: R_RISCV_CALL_PLT, addend: Some(0) };
//! let mut section = SectionMut { bytes: &mut code, address: 0x1000, big_endian: false };
//! let callee = |query: &Query| (query.role == Role::Plt && query.symbol == 7).then_some(0x1_2800);
//!
//! apply::<Rv64>(&record, &mut section, &callee)?;
//! assert_eq!(code, [0x97, 0x20, 0x01, 0, 0xe7, 0x80, 0x00, 0x80]); // auipc ra, 0x12; jalr -0x800(ra)
//! # Ok::<(), elf_core::ApplyError>(())
//! ```
//!
//! Above `elf-core`, whose words the tables are written in; below the executors, which answer what symbols are worth.
//!
//! [`Rv32`] and [`Rv64`] share their rows. Code becomes shorter where whoever lays it out has [room](elf_core::Shrink) to note that: padding, calls,
//! addresses near zero or the global pointer, variables near the thread pointer. Else it stays as long as it was compiled, and
//! padding that a linker would have to shorten for an alignment is refused as misaligned. Sequences of TLS descriptors become local
//! exec where the variable's offset from the thread pointer is [known](elf_core::Facts), and shorter where it is known beforehand.
#![no_std]
#![forbid(unsafe_code)]

mod attributes;
mod relax;
pub mod riscv;
mod tls;

pub use riscv::{Rv32, Rv64};

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
