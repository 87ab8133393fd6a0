//! Sections of the linked file, before they have numbers and offsets.

use super::arena::{Arena, Id};
use super::entity::EntityId;
use alloc::vec::Vec;

/// Marks numbers of sections.
pub(super) enum OutKey {}
pub(super) type OutId = Id<OutKey>;
pub(super) type Outs = Arena<OutKey, Out>;

/// The order of sections in the file; those of one class stand as they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    SectionNames,
    Strings,
    Symbols,
    Frame,
    ToolNote,
    CudaNote,
    ModuleInfo,
    Compat,
    Info,
    CallGraph,
    Prototypes,
    RelocationActions,
    Relocations,
    Banks,
    Text,
    Initialized,
    NoBits,
    /// Bank 0 from `sm_100` on.
    LateBanks,
    MercurySymbols,
    Mercury,
    MercuryBanks,
    MercuryCode,
    MercuryData,
}

/// What `sh_link` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    None,
    Strings,
    Symbols,
    ToolNote,
    MercurySymbols,
}

/// What `sh_info` is.
#[derive(Clone, Copy)]
pub(super) enum Info {
    None,
    Section(OutId),
    /// A function's symbol in the low 24 bits.
    Symbol(EntityId, u32),
    /// Number of symbols up to the last local one.
    Symbols,
    /// Number of local symbols before the others.
    Locals,
    Compat,
}

/// A section of the linked file.
pub(super) struct Out {
    pub(super) name: Vec<u8>,
    pub(super) class: Class,
    pub(super) r#type: u32,
    pub(super) flags: u64,
    pub(super) alignment: u64,
    pub(super) entry_size: u64,
    pub(super) link: Link,
    pub(super) info: Info,
    /// Size, if the section has no bytes in the file.
    pub(super) memory: u64,
    pub(super) data: Vec<u8>,
    /// The section whose bytes this has, too.
    pub(super) shares: Option<OutId>,
}

impl Out {
    /// An empty section.
    pub(super) fn new(name: &[u8], class: Class, r#type: u32, alignment: u64) -> Self {
        Self {
            name: name.to_vec(),
            class,
            r#type,
            flags: 0,
            alignment,
            entry_size: 0,
            link: Link::None,
            info: Info::None,
            memory: 0,
            data: Vec::new(),
            shares: None,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.memory.max(self.data.len() as u64)
    }

    /// Puts `bytes` at the next multiple of `alignment`, zeros before them, and says where that is.
    pub(super) fn append(&mut self, bytes: &[u8], alignment: u64) -> u64 {
        let start = align(self.data.len() as u64, alignment);
        self.data.resize(usize::try_from(start).unwrap_or(usize::MAX), 0);
        self.data.extend_from_slice(bytes);
        self.alignment = self.alignment.max(alignment);
        start
    }

    /// The same for bytes that are not in the file.
    pub(super) fn reserve(&mut self, size: u64, alignment: u64) -> u64 {
        let start = align(self.memory, alignment);
        self.memory = start.saturating_add(size);
        self.alignment = self.alignment.max(alignment);
        start
    }
}

/// The next multiple of `alignment`, which may be 0 for none.
pub(super) fn align(offset: u64, alignment: u64) -> u64 {
    offset.checked_next_multiple_of(alignment.max(1)).unwrap_or(u64::MAX)
}

/// What a relocation or an attribute names: to be a symbol's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    Entity(EntityId),
    Section(OutId),
}

/// A relocation of the linked file.
#[derive(Clone, Copy)]
pub(super) struct OutRecord {
    pub(super) offset: u64,
    pub(super) r#type: u32,
    pub(super) symbol: Meaning,
    pub(super) addend: Option<i64>,
}
