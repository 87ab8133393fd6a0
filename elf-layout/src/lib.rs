//! Where the sections of relocatable objects go, in storage the caller lends.
//!
//! A [`Layout`] takes several objects, decides which symbol means which, counts what their relocations need (GOT entries,
//! stubs), gives every section its place by permission, and writes the relocated image: into the memory of this process, of
//! another one, or of a device, since where the bytes are and the address they will have are two things.
//!
//! ```
//! use elf_core::File;
//! use elf_layout::{Layout, ObjectSlot, Options, Requirements, SectionSlot, Storage, SymbolSlot};
//! use reloc_x86::X86_64;
//!
//! let bytes = include_bytes!("../../fixtures/x86_64/elftest.o");
//! let files = [File::parse(bytes)?];
//! assert!(Requirements::of(&files)?.sections <= 16);
//!
//! // no heap: 16 sections and 16 symbols at the most
//! let mut objects = [ObjectSlot::default(); 1];
//! let (mut sections, mut symbols) = ([SectionSlot::default(); 16], [SymbolSlot::default(); 16]);
//! let storage = Storage { objects: &mut objects, sections: &mut sections, symbols: &mut symbols, names: &mut [], edits: &mut [] };
//! let layout = Layout::<X86_64>::plan(&files, Options::default(), storage, &mut |_| None)?;
//!
//! let mut image = [0; 0x2000];
//! layout.write(&mut image, 0x10_0000)?; // as it will stand at 0x100000, wherever it is now
//! let (object, symbol) = layout.find("foo".into()).unwrap();
//! assert_eq!(layout.symbol(object, symbol).unwrap().at(0x10_0000), 0x10_0000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It knows `elf-core` only; an architecture is a type parameter, [`Arch`](elf_core::Arch). It takes no memory, calls no code and
//! changes no permission: that is an executor's part. It does not merge strings. Who gives threads their copies of thread-local
//! variables says where they are ([`StaticTlsBlock`]).
//!
//! # Features
//!
//! All but `alloc` are on by default, and those of `elf-core` with them; firmware that counts bytes turns them off.
//!
//! | Feature | |
//! |---|---|
//! | `alloc` | `HeapStorage`: storage from the heap; `archives`: which members of archives are taken; `explain`: errors with names; all undefined symbols |
//! | `addresses` | sections that stand at the address they carry, which those of compilers never do; else they are an error |
//! | `copy-relocations` | copy relocations and canonical PLT entries ([`ExternalKind`]): copies and stubs where the caller's symbols are too far for code without `-fPIC`; else [`ExternalKind::Unknown`] |
//! | `edits` | code that becomes shorter, where the caller lends [room](Storage::edits) to note it: padding and relaxation of RISC-V and LoongArch; else padding that is too long is an error |
//! | `indirect-functions` | functions behind stubs of their own: those of resolvers (`STT_GNU_IFUNC`), those that may be replaced; else they are refused |
//! | `linker-defined` | [symbols that linkers define](is_linker_defined): `__start_NAME`, `__init_array_start`, `_end`; else the caller is asked for them |
//! | `parts` | [parts of an image](Layout::parts), which several threads can write at once; with `alloc`, parts of the objects, which they can scan (`ScanPart`) |
//! | `relax` | relaxation ([`Options::relax`]); else the GOT is used wherever the compiler has said so |
//! | `symbol-versions` | what `NAME@@VERSION` defines answers `NAME` and `NAME@VERSION` (`.symver`); else each name is one of its own |
//! | `thread-local` | thread-local variables; else their sections and relocations are an error |
//! | `thunks` | range-extension thunks: stubs between sections of code, if that is more than a branch spans; else it is the relocation that fails |
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
pub mod archives;
mod emit;
mod error;
#[cfg(feature = "alloc")]
pub mod explain;
mod hash;
#[cfg(feature = "alloc")]
mod heap_storage;
#[cfg(feature = "alloc")]
mod missing;
mod model;
mod plan;

pub use emit::be8::CodeMark;
pub use emit::indirect::{IndirectFunction, ReplaceableFunction};
#[cfg(feature = "parts")]
pub use emit::part::ImagePart;
pub use emit::view::{CopyEntry, FixedSection, GotEntry, StubEntry, SymbolAddress};
pub use error::{Error, ErrorKind};
#[cfg(feature = "alloc")]
pub use heap_storage::HeapStorage;
#[cfg(feature = "alloc")]
pub use missing::undefined_symbols;
pub use model::edits::Edit;
pub use model::external::{ExternalKind, ExternalSymbol};
pub use model::layout::Layout;
pub use model::options::{ImageMode, Options, Target2, ThreadLocal};
pub use model::spans::Segment;
pub use model::storage::{ObjectSlot, Requirements, SectionSlot, Storage, SymbolSlot};
pub use model::tls::{StaticTlsBlock, TlsBlock};
pub use plan::linker_defined::is_linker_defined;
#[cfg(all(feature = "alloc", feature = "parts"))]
pub use plan::scan_part::ScanPart;
pub use plan::sections::FRAGMENT_ROOM;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
