//! Functions and variables: one entity for each thing that several objects name.

use super::arena::{Arena, Id};
use alloc::vec::Vec;
use elf_core::names::{STO_CUDA_ENTRY, STO_CUDA_MANAGED, STT_CUDA_OBJECT, STT_OBJECT};
use elf_core::{Name, Symbol};

/// Bits of `sh_info` of code that are a symbol; up to `sm_89` the others are registers.
pub(super) const SYMBOL_OF_TEXT: u32 = 0xff_ffff;

/// Marks numbers of entities.
pub(super) enum EntityKey {}
pub(super) type EntityId = Id<EntityKey>;

/// What an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    /// In global memory or a constant bank, or one without a place: a texture.
    Variable,
    /// In shared memory; without a definition an array whose size the launch gives.
    Shared,
    /// What the system has in shared memory.
    Reserved,
    /// A name inside a bank: parameters, literals.
    InBank,
}

/// Where an entity is defined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) object: usize,
    /// Index of the section in the object; `None` for common variables and textures.
    pub(super) section: Option<u32>,
}

/// A function or variable.
pub(super) struct Entity<'a> {
    pub(super) name: Name<'a>,
    pub(super) kind: Kind,
    pub(super) local: bool,
    /// The definition, or the first reference.
    pub(super) symbol: Symbol,
    pub(super) place: Option<Place>,
    /// Object of the first definition, which another may have replaced.
    pub(super) origin: Option<usize>,
    /// Objects whose definition was that which counts until another replaced it.
    pub(super) former: Vec<usize>,
    /// Object of the first mention.
    pub(super) first: usize,
    /// A common variable: its alignment.
    pub(super) common: Option<u64>,
    /// A subroutine in another function's code.
    pub(super) inner: bool,
    /// Registers that the definition of a function needs, if its object says so.
    pub(super) registers: Option<u32>,
    /// Where it ends up in its output section.
    pub(super) value: u64,
}

impl Entity<'_> {
    pub(super) const fn is_kernel(&self) -> bool {
        matches!(self.kind, Kind::Function)
            && self.symbol.other & STO_CUDA_ENTRY != 0
            && self.place.is_some()
    }

    /// Whether this is a second name of a function, or one inside its code.
    pub(super) const fn is_alias(&self) -> bool {
        matches!(self.kind, Kind::Function) && self.inner && !self.local
    }

    /// Whether its symbol says that it is memory.
    pub(super) const fn is_object(&self) -> bool {
        matches!(self.symbol.r#type(), STT_OBJECT | STT_CUDA_OBJECT)
    }

    /// Whether this is the size of the bank of whichever kernel runs, which a function cannot know: all ones, as nvlink has it. Code of
    /// toolkit 12.8 and later compares addresses with it that may be those of parameters (`isspacep.param`).
    pub(super) fn is_bank_size(&self) -> bool {
        self.place.is_none() && self.name.as_bytes() == b".nv.ptx.const0.size"
    }

    /// `st_other` as a linked file has it.
    pub(super) const fn linked_other(&self) -> u8 {
        self.symbol.other & (STO_CUDA_ENTRY | STO_CUDA_MANAGED | 0x3)
    }
}

/// All entities, in the order of their first mention.
pub(super) type Entities<'a> = Arena<EntityKey, Entity<'a>>;
