//! Relocation kinds of Arm with addresses of 4 bytes, in A32, Thumb-2 and Thumb-1 code: one row says what a kind computes, which
//! values it allows and which bits it fills.
//!
//! ```
//! use elf_core::{Query, Record, Role, SectionMut, apply};
//! use reloc_arm::Arm;
//! use reloc_arm::arm::R_ARM_CALL;
//!
//! let mut code = [0xfe, 0xff, 0xff, 0xeb]; // bl .
//! let record = Record { offset: 0, symbol: 7, r#type: R_ARM_CALL, addend: None };
//! let mut section = SectionMut { bytes: &mut code, address: 0x1000, big_endian: false };
//! let callee = |query: &Query| (query.role == Role::Plt && query.symbol == 7).then_some(0x1_2801);
//!
//! apply::<Arm>(&record, &mut section, &callee)?;
//! assert_eq!(code, [0xfe, 0x45, 0x00, 0xfa]); // blx 0x12800: Thumb code, as bit 0 says
//! # Ok::<(), elf_core::ApplyError>(())
//! ```
//!
//! Above `elf-core`, whose words the tables are written in; below the executors, which answer what symbols are worth.
//!
//! Objects have addends in their instructions (`REL`) or in records (`RELA`). What the processors can do that objects are for is read
//! from their [build attributes](attributes).
#![no_std]
#![forbid(unsafe_code)]

mod architecture;
pub mod arm;
pub mod attributes;
mod branch;
mod field;
mod group;
mod stub;
mod tls;

pub use architecture::Arm;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
