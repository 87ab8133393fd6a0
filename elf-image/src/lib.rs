//! Executables and shared objects to relocated images: what boot loaders, kernels and dynamic loaders do.
//!
//! An [`Image`] is a linked file (`ET_EXEC`, `ET_DYN`, static PIE) by its program headers: how much memory it takes and where, what
//! goes there, and which permissions the pages have afterwards. The memory is the caller's, and where its bytes are and the address that
//! they will have are two things.
//!
//! ```
//! use elf_core::{File, Query, Resolve as _};
//! use elf_image::{AddressKind, Image};
//! use reloc_x86::X86_64;
//!
//! let bytes = include_bytes!("../../fixtures/x86_64/libshared-relr.so");
//! let image = Image::parse(File::parse(bytes)?, AddressKind::Virtual)?;
//! assert!(!image.is_fixed() && image.size() < 0x10_0000);
//!
//! let mut memory = vec![0xff; image.size() as usize];
//! let base = 0x7000_0000; // where the first byte will be, a multiple of `image.alignment()`
//! image.write(&mut memory)?;
//! // the symbols that it has itself, and one function of somebody else's
//! let own = image.own_symbols::<X86_64>(base)?;
//! let symbols = |query: &Query| own.resolve(query).or(Some(0x1234_5678));
//! image.relocate::<X86_64>(&mut memory, base, &symbols)?;
//! for range in image.pages(0x1000)? {
//!     println!("{:#x}: {:#x} bytes {:?}", base + range.offset, range.size, range.final_flags());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It knows `elf-core` only; an architecture is a type parameter, [`Arch`](elf_core::Arch), whose rows are what relocations mean. It
//! takes no memory, calls no code and changes no permission: that is an executor's part.
//!
//! # What is refused
//!
//! Segments that overlap, do not rise, are not aligned as they say, or do not fit the address space or the file, by their number
//! ([`ErrorKind`]). What the file says of itself beside that is believed as far as it does no harm: relocations stay inside of the image.
//!
//! # Symbols
//!
//! [`Exports`] finds a symbol of a file by name and version, as `ld.so` does; whose symbols are looked at in which order is the
//! caller's to say ([`ImageSymbols`]).
#![no_std]
#![forbid(unsafe_code)]

mod error;
mod exports;
mod facts;
mod image;
mod own;
mod pages;
mod relative;
mod relative_rows;
mod relocate;

pub use error::{Error, ErrorKind};
pub use exports::{Exports, SymbolReference};
pub use facts::{DynamicFacts, InitArray, TlsTemplate};
pub use image::{AddressKind, Image, LoadSegment, Segments};
pub use own::OwnSymbols;
pub use pages::{PageRange, Pages};
pub use relative_rows::RelativeRows;
pub use relocate::ImageSymbols;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
