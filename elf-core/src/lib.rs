//! Zero-copy ELF parsing and the vocabulary of relocation, for programs without a heap or an operating system.
#![no_std]
#![forbid(unsafe_code)]

mod apply;
pub mod archive;
mod class;
mod error;
mod file;
mod name;
pub mod names;
pub mod raw32;
pub mod raw64;
mod record;
mod reloc;
mod section;
mod segment;
mod symbol;
pub mod table;

pub use apply::{
    ApplyError, ApplyErrorKind, Query, Resolve, SectionMut, apply, apply_all, apply_kind,
};
pub use class::{Class, Elf32, Elf64, Encoding, Row};
pub use error::{Error, ErrorKind};
pub use file::{File, FileHeader};
pub use name::{Name, StringTable};
pub use record::{Record, Rel, Rela, RelocationIter, Relocations};
pub use reloc::{
    Arch, Bits, Check, Field, Kind, Order, Page, Role, Slot, Stage, Stub, Value, find, well_formed,
};
pub use section::{CompressionHeader, SectionFlags, SectionHeader};
pub use segment::{Dynamic, ProgramHeader, SegmentFlags};
pub use symbol::{Definition, Symbol, SymbolTable};
pub use table::{Entry, Table, TableIter};
