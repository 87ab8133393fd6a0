//! Relocation kinds of x86-64 and i386: one row says what a kind computes, which values it allows and which bits it fills.
//!
//! ```
//! use elf_core::{Query, Record, Role, SectionMut, apply};
//! use reloc_x86::{X86_64, x86_64::R_X86_64_PLT32};
//!
//! let mut code = [0xe8, 0, 0, 0, 0, 0xc3]; // call callee; ret
//! let record = Record { offset: 1, symbol: 7, r#type: R_X86_64_PLT32, addend: Some(-4) };
//! let mut section = SectionMut { bytes: &mut code, address: 0x1000, big_endian: false };
//! let callee = |query: &Query| (query.role == Role::Plt && query.symbol == 7).then_some(0x1200);
//!
//! apply::<X86_64>(&record, &mut section, &callee)?;
//! assert_eq!(code, [0xe8, 0xfb, 0x01, 0, 0, 0xc3]); // 0x1200 - 0x1005
//! # Ok::<(), elf_core::ApplyError>(())
//! ```
//!
//! Above `elf-core`, whose words the tables are written in; below the executors, which answer what symbols are worth.
//!
//! What may do without the GOT (`GOTPCRELX`, `GOT32X`) is rewritten if a linker [knows](elf_core::Facts) enough of the symbol, and
//! so are [sequences](elf_core::tls) for thread-local variables.
//! x32, the ILP32 form of x86-64, is not an architecture here.
#![no_std]
#![forbid(unsafe_code)]

pub mod i386;
mod relax;
mod tls32;
mod tls64;
pub mod x86_64;

pub use i386::I386;
pub use x86_64::X86_64;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
