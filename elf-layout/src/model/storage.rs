//! What the caller lends, and how much of it.

use crate::error::{Error, ErrorKind};
use crate::model::edits::{Edit, EditRange};
use crate::model::features::{COPY_RELOCATIONS, INDIRECT_FUNCTIONS, LINKER_DEFINED, THREAD_LOCAL};
use crate::model::linkonce::is_linkonce;
use crate::model::spans::Group;
use core::num::NonZeroU32;
use elf_core::names::{SHT_GROUP, STB_LOCAL};
use elf_core::{File, Slot, SymbolTable};

/// How many elements of each kind a layout of some objects needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Requirements {
    /// Elements of [`Storage::objects`].
    pub objects: usize,
    /// Elements of [`Storage::sections`].
    pub sections: usize,
    /// Elements of [`Storage::symbols`].
    pub symbols: usize,
    /// Elements of [`Storage::names`]: a power of two, or 0 for a single object.
    pub names: usize,
    /// Elements of [`Storage::edits`]: 0 until [`with_edits`](Self::with_edits) counts them.
    pub edits: usize,
}

impl Requirements {
    /// Counts what `objects` need.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if a symbol table is damaged, [`ErrorKind::TooLarge`] if there are more than 2^31 of anything.
    pub fn of(objects: &[File<'_>]) -> Result<Self, Error> {
        let names = Self::names_of(objects)?;
        Ok(Self { names, ..Self::without_names(objects)? })
    }

    /// The same without a table of their names.
    pub(crate) fn without_names(objects: &[File<'_>]) -> Result<Self, Error> {
        let mut total = Self { objects: objects.len(), ..Self::default() };
        for (object, file) in (0..usize::MAX).zip(objects) {
            let symbols = file.symbol_table().map_err(Error::elf(object, 0))?;
            let symbols = symbols.map_or(1, |table| table.len().max(1));
            total.sections = total.sections.saturating_add(file.sections().len());
            total.symbols = total.symbols.saturating_add(symbols);
            if total.sections.max(total.symbols) > MOST {
                return Err(Error::object(object, ErrorKind::TooLarge));
            }
        }
        Ok(total)
    }

    /// Counts the cells of a hash table of the names that `objects` may share.
    pub(crate) fn names_of(objects: &[File<'_>]) -> Result<usize, Error> {
        if objects.len() < 2 {
            return Ok(0);
        }
        let mut keys = 0usize;
        for (object, file) in (0..usize::MAX).zip(objects) {
            keys = keys.saturating_add(keys_of(file, object)?);
        }
        Ok(keys.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX))
    }
}

/// Most sections or symbols: their numbers fit 31 bits.
pub(crate) const MOST: usize = 0x7fff_ffff;

/// Names that other objects may share: of symbols that are not local, and of section groups.
fn keys_of(file: &File<'_>, object: usize) -> Result<usize, Error> {
    let table = file.symbol_table().map_err(Error::elf(object, 0))?;
    // `count` would check its sum for overflow, and panic
    let count = |total: usize, counts: bool| total.saturating_add(usize::from(counts));
    let global = |table: SymbolTable<'_>| {
        table.symbols().iter().fold(0, |total, symbol| count(total, symbol.binding() != STB_LOCAL))
    };
    let groups = file.sections().iter().fold(0, |total, section| {
        count(total, section.r#type == SHT_GROUP || is_linkonce(file, &section))
    });
    Ok(table.map_or(0, global).saturating_add(groups))
}

/// Storage that the caller lends to a layout; [`Requirements`] says how much. What it holds before does not matter.
#[derive(Debug)]
pub struct Storage<'s, 'a> {
    /// One an object.
    pub objects: &'s mut [ObjectSlot<'a>],
    /// One a section.
    pub sections: &'s mut [SectionSlot],
    /// One a symbol.
    pub symbols: &'s mut [SymbolSlot],
    /// A hash table of names.
    pub names: &'s mut [u32],
    /// One for each place where code may become shorter; none to leave all code as long as it is, with padding that is right only if all of it
    /// may stay.
    pub edits: &'s mut [Edit],
}

/// What a layout knows of an object.
#[derive(Clone, Copy, Default)]
pub struct ObjectSlot<'a> {
    /// Number of the object's section 0 among all sections.
    pub(crate) first_section: usize,
    /// Number of sections.
    pub(crate) section_count: u32,
    /// Number of the object's symbol 0 among all symbols.
    pub(crate) first_symbol: usize,
    /// Number of symbols, at least 1.
    pub(crate) symbol_count: usize,
    /// The symbols.
    pub(crate) symbols: Option<SymbolTable<'a>>,
    /// The section that holds them.
    pub(crate) symbol_table: u32,
}

impl core::fmt::Debug for ObjectSlot<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ObjectSlot")
            .field("symbol_count", &self.symbol_count)
            .finish_non_exhaustive()
    }
}

/// What a layout knows of a section.
#[derive(Clone, Copy, Debug, Default)]
pub struct SectionSlot {
    /// Bytes from the start of the group.
    pub(crate) offset: u64,
    /// Size in bytes.
    pub(crate) size: u64,
    pub(crate) state: SectionState,
    /// Whether it tells how to unwind (`.eh_frame`).
    pub(crate) unwinding: bool,
    /// Number of the next section: by address, of those at addresses of their own; by name, of those that stand together.
    pub(crate) next: Option<NonZeroU32>,
    pub(crate) edits: EditRange,
}

/// Whether and where a section is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SectionState {
    /// It occupies no memory.
    #[default]
    NotLoaded,
    /// Of a discarded COMDAT group: another object's is kept.
    Discarded,
    /// In this group.
    Placed(Group),
}

/// Numbers of symbols, and of all that are between them: what need not be looked at is outside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SymbolRange {
    first: usize,
    end: usize,
}

impl SymbolRange {
    /// Adds symbol `id`.
    #[inline]
    pub(crate) fn include(&mut self, id: usize) {
        self.first = if self.end == 0 { id } else { self.first.min(id) };
        self.end = self.end.max(id.saturating_add(1));
    }

    /// The slots of those that are among `count` symbols from number `first` on, and how many of these are before them.
    pub(crate) fn within<'s>(
        &self,
        symbols: &'s mut [SymbolSlot],
        first: usize,
        count: usize,
    ) -> (usize, &'s mut [SymbolSlot]) {
        let start = self.first.max(first);
        let end = self.end.min(first.saturating_add(count));
        (start.wrapping_sub(first), symbols.get_mut(start..end).unwrap_or_default())
    }

    /// The numbers.
    pub(crate) fn numbers(&self) -> core::ops::Range<u32> {
        self.first as u32..self.end as u32
    }

    /// The slots with their numbers.
    pub(crate) fn of<'s>(
        &self,
        symbols: &'s [SymbolSlot],
    ) -> impl Iterator<Item = (u32, &'s SymbolSlot)> + use<'s> {
        let slots = symbols.get(self.first..self.end).unwrap_or_default();
        (self.first as u32..u32::MAX).zip(slots)
    }
}

/// What a layout knows of a symbol.
#[derive(Clone, Copy, Debug, Default)]
pub struct SymbolSlot {
    /// Bytes from the start of the group.
    pub(crate) value: u64,
    /// Number of the symbol that defines this one: itself, or another object's.
    pub(crate) definition: u32,
    /// Index of the first GOT entry, if `needs` has any.
    pub(crate) got: u32,
    pub(crate) extra: Extra,
    pub(crate) needs: Needs,
    pub(crate) state: SymbolState,
    pub(crate) group: Group,
}
const _: () = assert!(size_of::<SymbolSlot>() == 24);

/// What a symbol of some state has beside its value. Each is written before it is read, and only one at a time is meant: before
/// additions are placed what the state says, then what they got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra(u32);

impl Extra {
    /// Alignment of a common symbol that has no place yet.
    // out of the loop over symbols where there is room for code
    #[cfg_attr(target_pointer_width = "64", cold, inline(never))]
    pub(crate) const fn of_common(alignment: u64) -> Self {
        // the smallest processors have no instruction that counts zeros
        let (mut bits, mut rest, mut step) = (0u32, alignment, 32u32);
        while step > 0 {
            let high = rest.unbounded_shr(step);
            if high != 0 {
                (bits, rest) = (bits.wrapping_add(step), high);
            }
            step >>= 1;
        }
        Self(bits)
    }

    /// In bytes, a power of two: that of [`of_common`](Self::of_common), rounded down.
    pub(crate) const fn alignment(self) -> u64 {
        1u64.unbounded_shl(self.0)
    }

    /// Size in bytes of constant data of the caller's.
    pub(crate) const fn of_constant(size: u32) -> Self {
        Self(size)
    }

    pub(crate) const fn constant_size(self) -> u64 {
        self.0 as u64
    }

    /// Module of a thread-local variable of the caller's.
    pub(crate) const fn of_variable(module: u32) -> Self {
        Self(module)
    }

    pub(crate) const fn module(self) -> u64 {
        self.0 as u64
    }

    /// Bytes from the start of the stubs to the symbol's first; `None` if that is too far.
    pub(crate) fn of_stubs(offset: u64) -> Option<Self> {
        u32::try_from(offset).ok().map(Self)
    }

    pub(crate) const fn stubs(self) -> u64 {
        self.0 as u64
    }

    /// Bytes from the start of the copies to the symbol's, a multiple of [`COPY_ALIGNMENT`]; `None` if that is too far.
    pub(crate) fn of_copy(offset: u64) -> Option<Self> {
        u32::try_from(offset / COPY_ALIGNMENT).ok().map(Self)
    }

    pub(crate) const fn copy(self) -> u64 {
        (self.0 as u64).wrapping_mul(COPY_ALIGNMENT)
    }
}

/// Alignment of copies in bytes: as much as compilers give to data.
pub(crate) const COPY_ALIGNMENT: u64 = 64;

/// What a symbol is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SymbolState {
    /// Nothing: nobody defines it.
    #[default]
    Undefined,
    /// 0: nobody defines it, and nobody needs to.
    UndefinedWeak,
    /// An address in its group, of an object's own.
    Defined,
    /// An address of the caller's.
    External,
    /// An address of a function of the caller's.
    ExternalFunction,
    /// An address of constant data of the caller's.
    ExternalConstant,
    /// An address in its group, once it is placed; until then the value is the size.
    Common,
    /// A place in the initial values of thread-local storage.
    ThreadLocal,
    /// The start of the block of thread-local variables.
    TlsBase,
    /// A thread-local variable of the caller's, packed.
    ExternalThreadLocal,
    /// An indirect function (`STT_GNU_IFUNC`), by the address of its resolver.
    Indirect,
    /// The address of a function behind a stub, which may be replaced.
    Replaceable,
    /// Defined in a section that is not loaded.
    NotLoaded,
    /// Defined in a section of a discarded COMDAT group.
    Discarded,
}

impl SymbolState {
    /// Whether a symbol's own section does not say all of it.
    pub(crate) const fn is_special(self) -> bool {
        matches!(self, Self::Undefined | Self::Common | Self::Indirect | Self::Replaceable)
    }
}

/// What relocations need for a symbol, and what is true of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs(u16);

impl Needs {
    #[cfg(all(feature = "alloc", feature = "parts"))]
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const GOT: Self = Self(1);
    pub(crate) const GOT_TP_OFFSET: Self = Self(1 << 1);
    pub(crate) const GOT_TLS_GD: Self = Self(1 << 2);
    pub(crate) const GOT_TLS_DESC: Self = Self(1 << 3);
    pub(crate) const ANY_GOT: Self = Self(0xf);
    /// The first of the architecture's stubs: see [`stub`](Self::stub).
    pub(crate) const STUB: Self = Self(1 << 4);
    pub(crate) const ANY_STUB: Self = Self(0xf << 4);
    /// A place too narrow for any address counts from itself to the symbol: a function needs a canonical PLT entry, data a copy
    /// relocation.
    pub(crate) const NEAR: Self = Self(1 << 8);
    /// A place too narrow for any address takes that of the symbol, with the same needs.
    pub(crate) const LOW: Self = Self(1 << 9);
    /// The data have a copy relocation.
    pub(crate) const COPY: Self = Self(1 << 10);

    /// Gives way to other definitions; undefined, it may stay so.
    pub(crate) const WEAK: Self = Self(1 << 11);
    /// First of its name.
    pub(crate) const FIRST: Self = Self(1 << 12);
    /// T: a function of Thumb code.
    pub(crate) const THUMB: Self = Self(1 << 13);
    /// An [edge](crate::plan::linker_defined::Edge) of the image, whose number the value is until all is placed.
    pub(crate) const EDGE: Self = Self(1 << 14);
    /// A reference whose visibility is not the default: only a definition of the image is meant.
    pub(crate) const HIDDEN: Self = Self(1 << 15);

    /// What is not left out by features.
    const BUILT: Self = Self(
        !(if COPY_RELOCATIONS { 0 } else { Self::NEAR.0 | Self::LOW.0 | Self::COPY.0 }
            | if THREAD_LOCAL { 0 } else { 0xe }
            | if LINKER_DEFINED { 0 } else { Self::EDGE.0 }),
    );

    /// Stub `index` of the architecture's, of which there are at most four.
    pub(crate) const fn stub(index: u8) -> Self {
        Self(Self::STUB.0.unbounded_shl(index as u32) & Self::ANY_STUB.0)
    }

    /// [`THUMB`](Self::THUMB), if it is that, or nothing.
    pub(crate) const fn thumb(is_thumb: bool) -> Self {
        Self(Self::THUMB.0.wrapping_mul(is_thumb as u16))
    }

    #[inline]
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 & Self::BUILT.0 != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn set(&mut self, other: Self, on: bool) {
        self.0 = if on { self.0 | other.0 } else { self.0 & !other.0 };
    }

    /// Gives way to other definitions; undefined, it may stay so.
    pub(crate) const fn is_weak(self) -> bool {
        self.0 & Self::WEAK.0 != 0
    }
}

/// The first of `slots`, as many as are needed.
pub(crate) fn cut<'s, T>(
    slots: &'s mut [T],
    what: &'static str,
    needed: usize,
) -> Result<&'s mut [T], Error> {
    let kind = ErrorKind::Storage { what, needed };
    slots.get_mut(..needed).ok_or_else(|| Error::object(0, kind))
}

impl SymbolSlot {
    /// The number of the symbol's GOT entry of this content, if it has one.
    pub(crate) fn got_index(&self, content: Slot) -> Option<u32> {
        // the first one of an indirect function is its resolver's
        let mut index = self.got.saturating_add(self.is_indirect().into());
        if content == Slot::Address {
            return self.needs.has(Needs::GOT).then_some(index);
        }
        for &(need, entry) in GOT_SLOTS {
            if entry == content {
                return self.needs.has(need).then_some(index);
            }
            if self.needs.has(need) {
                index = index.wrapping_add(entry.entries() as u32);
            }
        }
        None
    }

    /// Whether the symbol is a stub's, which has a GOT entry of its own.
    pub(crate) const fn is_indirect(&self) -> bool {
        INDIRECT_FUNCTIONS && matches!(self.state, SymbolState::Indirect | SymbolState::Replaceable)
    }
}

/// The GOT entries of a symbol in the order they stand in.
pub(crate) const GOT_SLOTS: &[(Needs, Slot)] = if THREAD_LOCAL {
    &[
        (Needs::GOT, Slot::Address),
        (Needs::GOT_TP_OFFSET, Slot::TpOffset),
        (Needs::GOT_TLS_GD, Slot::TlsGd),
        (Needs::GOT_TLS_DESC, Slot::TlsDesc),
    ]
} else {
    &[(Needs::GOT, Slot::Address)]
};
