//! Zero-copy ELF parsing and the vocabulary of relocation, for programs without a heap or an operating system.
//!
//! For loaders, linkers, debuggers and firmware that read ELF files which they do not trust. A file is a `&[u8]`; all
//! that is read of it borrows from there. Both classes and both byte orders are read through the same types.
//!
//! ```
//! use elf_core::{Definition, File};
//!
//! # const BYTES: &[u8] = include_bytes!("../../fixtures/x86_64/elftest.o");
//! let file = File::parse(BYTES)?;
//! for section in file.sections() {
//!     let name = file.section_name(&section)?;
//!     for record in file.relocations(&section)?.into_iter().flatten() {
//!         println!("{name}: {:#x} type {} symbol {}", record.offset, record.r#type, record.symbol);
//!     }
//! }
//! let symbols = file.symbol_table()?.expect("an object has symbols");
//! let (index, foo) = symbols.find("foo".into()).expect("foo");
//! assert!(matches!(symbols.section_of(index, &foo)?, Definition::Section(_)));
//! # Ok::<_, elf_core::Error>(())
//! ```
//!
//! # Layers
//!
//! | What | Where |
//! |---|---|
//! | The specifications' structs, field for field; numbers and their names | [`raw32`], [`raw64`], [`raw`]; [`names`] |
//! | Rows of a table, checked once, turned into plain views one by one | [`Table`], [`Class`], [`Entry`] |
//! | A file and its tables | [`File`], of a known class [`ClassFile`], [`SectionHeader`], [`ProgramHeader`], [`SymbolTable`], [`StringTable`] |
//! | Relocations in all their forms: tables, `SHT_RELR`, `SHT_CREL`, Android's | [`Relocations`], [`Record`] |
//! | What a dynamic linker goes by, found by sections or, without any, by addresses | [`DynamicSection`], [`HashTable`], [`GnuHashTable`], [`version`] |
//! | Notes and program properties, section groups | [`Notes`], [`Properties`], [`Group`] |
//! | What a relocation is, and how it is applied | [`Kind`], [`Arch`], [`apply`], [`apply_dynamic`] |
//! | Thread-local storage, and code that is rewritten for it | [`tls`] |
//! | Unwinding tables, checked before an unwinder gets them | [`eh_frame`] |
//! | Static libraries | [`archive`] |
//!
//! An [`Error`] says what is wrong, and at which offset of the file. Iterators over rows of one size cannot fail; those
//! over records of varying size give a `Result`, and end after an error.
//!
//! # Features
//!
//! All are on by default. Without any, what is read is ELF of 64 bits, little-endian, with relocations in tables, in less than
//! half of the code; with `elf32` alone the same of 32 bits. What is left out is a named error ([`ErrorKind::FeatureOff`]).
//!
//! | Feature | Reads |
//! |---|---|
//! | `elf32` | files of 32 bits |
//! | `elf64` | files of 64 bits; so it is without `elf32` |
//! | `big-endian` | big-endian files |
//! | `packed-relocations` | `SHT_RELR`, `SHT_CREL` and Android's forms; [`IndexedRelocations`] |
//! | `mips64` | relocations of little-endian MIPS64, which are like no others |
//! | `relax` | nothing more; [`Special::Relax`] and [`Special::Transition`] in rows, and the code behind them |
//!
//! On machines of 32 bits all rows share one reader, for size; on others each kind of row has loops of its own, for speed.
//!
//! # What is not promised
//!
//! - Only what is asked for is checked: [`File::parse`] accepts a file whose symbols are broken, and sections that
//!   overlap. Whether a file means anything is for others to say.
//! - Names are bytes. Compressed sections are not decompressed, addresses are not relocated.
//! - A small file can name many things more than once: work is bounded by the file's size for each thing asked for,
//!   not for all of them together.
//! - Packed relocations are read from the first one on: [`Relocations::indexed`] says how not to.
#![no_std]
#![forbid(unsafe_code)]

pub mod archive;
mod class_file;
mod content;
mod dynamic;
pub mod eh_frame;
mod error;
mod file;
mod foreign;
pub mod names;
mod records;
mod reloc;
mod structs;
pub mod table;
mod views;

pub use class_file::ClassFile;
pub use content::build_attributes::{BuildAttributeForm, build_attributes};
pub use content::group::Group;
pub use content::mapping::Mapping;
pub use content::name::{Name, StringTable, is_hidden};
pub use content::note::{Note, Notes};
pub use content::property::{Properties, Property};
pub use content::symbols::SymbolTable;
pub use dynamic::gnu_hash::{GnuHashTable, gnu_hash};
pub use dynamic::hash::{HashTable, sysv_hash};
pub use dynamic::section::DynamicSection;
pub use dynamic::version;
pub use error::{Error, ErrorKind};
pub use file::File;
pub use foreign::Foreign;
pub use records::android::{AndroidPacked, AndroidPackedIter};
pub use records::crel::{Crel, CrelIter};
#[cfg(feature = "packed-relocations")]
pub use records::indexed::IndexedRelocations;
pub use records::relocations::{RelocationIter, Relocations};
pub use records::relr::{Relr, RelrIter, relative_type};
pub use records::rows::{Mips64El, Mips64ElRel, Mips64ElRela, Rel, Rela};
pub use reloc::apply::{SectionMut, apply, apply_got_load, apply_kind, apply_rewrite};
pub use reloc::arch::{Arch, find_of};
pub use reloc::attributes::{BuildAttributes, SymbolAttributes};
pub use reloc::check::Check;
pub use reloc::decide::{Decision, Facts, Pass, choose, decide, decide_all, decide_some};
pub use reloc::dynamic::{apply_dynamic, apply_load};
pub use reloc::error::{ApplyError, ApplyErrorKind};
pub use reloc::field::{Bits, Decode, Encode, Field, Order, Unencodable};
pub use reloc::in_place::apply_all;
pub use reloc::kind::{
    Alternative, Branch, Kind, Pair, Relax, Special, Stage, asks_size, decides, find, shrinks,
    well_formed,
};
pub use reloc::pairing::{Pairing, Shorten};
pub use reloc::query::{Query, Resolve};
pub use reloc::rewrite::{Addresses, GotLoad, Reach, Rewrite};
pub use reloc::shrink::{Alignment, Padding, Shrink};
pub use reloc::site::Site;
pub use reloc::stub::{Stub, StubChoice, StubRelocation};
pub use reloc::tls;
pub use reloc::value::{Contents, Page, Role, Slot, Value};
pub use structs::{raw, raw32, raw64};
pub use table::class::{Class, Elf32, Elf64, Row};
pub use table::entry::Entry;
pub use table::rows::{Table, TableIter};
pub use table::word::{Address, Half, Word, Xword};
pub use views::encoding::Encoding;
pub use views::header::FileHeader;
pub use views::record::Record;
pub use views::section::{CompressionHeader, SectionFlags, SectionHeader};
pub use views::segment::{Dynamic, ProgramHeader, SegmentFlags};
pub use views::symbol::{Definition, Symbol};

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
