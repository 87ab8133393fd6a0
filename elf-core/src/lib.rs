//! Zero-copy ELF parsing and the vocabulary of relocation, for programs without a heap or an operating system.
#![no_std]
#![forbid(unsafe_code)]

mod address;
mod android;
mod apply;
pub mod archive;
mod class;
mod crel;
mod dynamic;
mod error;
mod file;
mod gnu_hash;
mod group;
mod hash;
mod header;
mod leb;
mod name;
pub mod names;
mod note;
mod property;
pub mod raw;
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
pub mod version;
mod version_list;
mod word;

pub use android::{AndroidPacked, AndroidPackedIter};
pub use apply::{
    ApplyError, ApplyErrorKind, Query, Resolve, SectionMut, apply, apply_all, apply_kind,
};
pub use class::{Class, Elf32, Elf64, Encoding, Row};
pub use crel::{Crel, CrelIter};
pub use dynamic::DynamicSection;
pub use error::{Error, ErrorKind};
pub use file::File;
pub use gnu_hash::{GnuHashTable, gnu_hash};
pub use group::Group;
pub use hash::{HashTable, sysv_hash};
pub use header::FileHeader;
pub use name::{Name, StringTable};
pub use note::{Note, Notes};
pub use property::{Properties, Property};
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
