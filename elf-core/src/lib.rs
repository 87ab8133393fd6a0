//! Zero-copy ELF parsing and the vocabulary of relocation, for programs without a heap or an operating system.
#![no_std]
#![forbid(unsafe_code)]

mod android;
mod apply;
pub mod archive;
mod class;
mod crel;
mod error;
mod file;
mod header;
mod leb;
mod name;
pub mod names;
pub mod raw32;
pub mod raw64;
mod record;
mod reloc;
mod relocations;
mod relr;
mod section;
mod segment;
mod symbol;
pub mod table;
mod word;

pub use android::{AndroidPacked, AndroidPackedIter};
pub use apply::{ApplyError, ApplyErrorKind, Query, Resolve, SectionMut, apply, apply_kind};
pub use class::{Class, Elf32, Elf64, Encoding, Row};
pub use error::{Error, ErrorKind};
pub use crel::{Crel, CrelIter};
pub use file::File;
pub use header::FileHeader;
pub use name::{Name, StringTable};
pub use record::{Mips64El, Mips64ElRel, Mips64ElRela, Record, Rel, Rela};
pub use reloc::{
    Arch, Bits, Check, Field, Kind, Order, Page, Role, Slot, Stage, Stub, Value, find, well_formed,
};
pub use relocations::{IndexedRelocations, RelocationIter, Relocations};
pub use relr::{Relr, RelrIter, relative_type};
pub use section::{CompressionHeader, SectionFlags, SectionHeader};
pub use segment::{Dynamic, ProgramHeader, SegmentFlags};
pub use symbol::{Definition, Symbol, SymbolTable};
pub use table::{Entry, Table, TableIter};
pub use word::{Address, Half, Word, Xword};
