//! What a layout tells about itself.

use crate::emit::resolve::Symbols;
use crate::model::edits::{Edits, may_shrink};
use crate::model::features::INDIRECT_FUNCTIONS;
use crate::model::layout::Layout;
use crate::model::owner::owner;
use crate::model::spans::{Group, Segment};
use crate::model::storage::{GOT_SLOTS, Needs, SymbolSlot, SymbolState};
use crate::model::stubs;
use elf_core::names::STB_LOCAL;
use elf_core::{Arch, Definition, Name, SectionFlags, SegmentFlags, Slot};

/// An address that moves with the image, or one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolAddress {
    /// Bytes from the start of the image.
    Image(u64),
    /// Fixed: an absolute symbol, the caller's answer, or 0 for a weak symbol that nobody defines.
    Absolute(u64),
}

impl SymbolAddress {
    /// The address for an image at `base`.
    #[must_use]
    pub const fn at(self, base: u64) -> u64 {
        match self {
            Self::Image(offset) => base.wrapping_add(offset),
            Self::Absolute(address) => address,
        }
    }
}

/// A GOT entry, or the first of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GotEntry {
    /// The object that names the symbol.
    pub object: usize,
    /// The symbol's index there; 0 for the module's own TLS entries.
    pub symbol: u32,
    /// What the entry holds.
    pub content: Slot,
    /// Bytes from the start of the image.
    pub offset: u64,
}

/// A stub: code that jumps to a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StubEntry {
    /// The object that names the symbol.
    pub object: usize,
    /// The symbol's index there.
    pub symbol: u32,
    /// Bytes from the start of the image.
    pub offset: u64,
    /// Size in bytes, padding included.
    pub size: u64,
}

/// A copy relocation: room in the image for constant data of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyEntry {
    /// The object that names the symbol.
    pub object: usize,
    /// The symbol's index there.
    pub symbol: u32,
    /// Address of the data.
    pub address: u64,
    /// Bytes from the start of the image.
    pub offset: u64,
}

/// A section that stands at the address it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedSection {
    /// The object.
    pub object: usize,
    /// The section's index there.
    pub section: u32,
    /// Where it is, and with which permissions.
    pub segment: Segment,
}

impl<A: Arch> Layout<'_, '_, A> {
    /// Where symbol `symbol` of object `object` is; `None` if nobody defines it, it is not loaded, or every thread has its own. An indirect
    /// or replaceable function is where its stub is. Of a function of Thumb code bit 0 is set, as in all pointers to it.
    #[must_use]
    pub fn symbol(&self, object: usize, symbol: u32) -> Option<SymbolAddress> {
        let slot = self.slot(object, symbol)?;
        let thumb = u64::from(A::HAS_STATES && slot.needs.has(Needs::THUMB));
        match (slot.state, slot.group) {
            (SymbolState::Undefined | SymbolState::NotLoaded | SymbolState::Discarded, _) => None,
            (
                SymbolState::ThreadLocal | SymbolState::ExternalThreadLocal | SymbolState::TlsBase,
                _,
            ) => None,
            (SymbolState::Indirect | SymbolState::Replaceable, _) if !INDIRECT_FUNCTIONS => None,
            (SymbolState::Indirect | SymbolState::Replaceable, _) => {
                let symbols = Symbols::new(self, 0, 0..self.symbols.len(), 0);
                Some(SymbolAddress::Image(symbols.pointer(slot)?))
            }
            (_, Group::Absolute) => Some(SymbolAddress::Absolute(slot.value | thumb)),
            (_, group) => {
                let offset = self.spans.group(group).offset.wrapping_add(slot.value);
                Some(SymbolAddress::Image(offset | thumb))
            }
        }
    }

    /// Size in bytes of symbol `symbol` of object `object`: its `st_size`, without what has gone from it; `None` if there is no such
    /// symbol.
    #[must_use]
    pub fn symbol_size(&self, object: usize, symbol: u32) -> Option<u64> {
        let slot = self.objects.get(object)?;
        let table = slot.symbols.as_ref()?;
        let found = table.get(symbol).ok()?;
        let section = match table.section_of(symbol, &found) {
            Ok(Definition::Section(section)) if may_shrink::<A>() => {
                self.section_slot(object, section)
            }
            _ => None,
        };
        let edits = section.map_or_else(Edits::default, |section| section.edits::<A>(self.edits));
        let (start, _) = A::symbol(&found);
        Some(edits.moved(start.saturating_add(found.size)).wrapping_sub(edits.moved(start)))
    }

    /// Size in bytes of section `section` of object `object` in the image: its `sh_size`, without what has gone from it; `None` if it is
    /// not loaded.
    #[must_use]
    pub fn section_size(&self, object: usize, section: u32) -> Option<u64> {
        let slot = self.section_slot(object, section)?;
        self.offset_of(slot).map(|_| slot.size)
    }

    /// Offset from the start of the image of what is at `offset` of section `section` of object `object` in the file, or of what follows if it has
    /// gone; `None` if the section is not loaded.
    #[must_use]
    pub fn place(&self, object: usize, section: u32, offset: u64) -> Option<u64> {
        let slot = self.section_slot(object, section)?;
        let moved = slot.edits::<A>(self.edits).moved(offset);
        Some(self.offset_of(slot)?.wrapping_add(moved))
    }

    /// Addresses of the symbols of object `object` from number `first` on, in order, for an image at `base`: for each what
    /// [`symbol`](Self::symbol) says.
    pub fn addresses(
        &self,
        object: usize,
        first: u32,
        base: u64,
    ) -> impl Iterator<Item = Option<u64>> + '_ {
        let object = self.objects.get(object);
        let ids = object.map_or(0..0, |object| {
            let start = object.first_symbol.saturating_add(first as usize);
            start..object.first_symbol.saturating_add(object.symbol_count)
        });
        let symbols = Symbols::new(self, 0, ids, base);
        symbols.slots.iter().map(move |slot| symbols.pointer(slot))
    }

    /// The object and index that define symbol `symbol` of object `object`: its own, unless another definition was taken.
    #[must_use]
    pub fn definition(&self, object: usize, symbol: u32) -> Option<(usize, u32)> {
        owner(self.objects, self.slot(object, symbol)?.definition)
    }

    /// The addresses that the caller has answered with for symbols that no object defines, those of thread-local variables apart.
    pub fn answers(&self) -> impl Iterator<Item = u64> + '_ {
        let is_answer = |slot: &&SymbolSlot| {
            matches!(slot.state, SymbolState::External | SymbolState::ExternalFunction)
                && matches!(slot.group, Group::Absolute)
        };
        let thumb = |slot: &SymbolSlot| u64::from(A::HAS_STATES && slot.needs.has(Needs::THUMB));
        let slots = self.special_definitions().map(|(_, slot)| slot);
        slots.filter(is_answer).map(move |slot| slot.value | thumb(slot))
    }

    /// Whether symbol `symbol` of object `object` is the [definition](Self::definition) that was taken.
    #[must_use]
    pub fn is_definition(&self, object: usize, symbol: u32) -> bool {
        let first = self.objects.get(object).map_or(0, |object| object.first_symbol);
        let id = first.saturating_add(symbol as usize);
        self.slot(object, symbol).is_some_and(|slot| slot.definition as usize == id)
    }

    /// The first symbol of this name that an object defines and others may see, as object and index.
    ///
    /// Symbols are looked at one after the other: a caller that asks often keeps a table.
    #[must_use]
    pub fn find(&self, name: Name<'_>) -> Option<(usize, u32)> {
        (0..usize::MAX).zip(self.objects).find_map(|(number, object)| {
            let table = object.symbols.as_ref()?;
            let mut symbols = (0..u32::MAX).zip(table.symbols());
            let found = symbols.find(|(_, symbol)| {
                let named = || table.name_of(symbol).is_ok_and(|found| found == name);
                !symbol.is_undefined() && symbol.binding() != STB_LOCAL && named()
            });
            found.and_then(|(index, _)| self.definition(number, index))
        })
    }

    /// All GOT entries.
    pub fn got_entries(&self) -> impl Iterator<Item = GotEntry> + '_ {
        let start = self.spans.group(Group::Got).offset;
        let symbols = Symbols::new(self, 0, 0..self.symbols.len(), 0);
        let module = self.found.tls_module.then_some(GotEntry {
            object: 0,
            symbol: 0,
            content: Slot::TlsLd,
            offset: start,
        });
        let own = self.special_definitions().flat_map(move |(id, slot)| {
            let (object, symbol) = owner(self.objects, id).unwrap_or_default();
            let entry = |content| {
                let offset = symbols.got_entry(slot, content)?;
                Some(GotEntry { object, symbol, content, offset })
            };
            let mut entries = [None; 4];
            for (place, &(need, content)) in entries.iter_mut().zip(GOT_SLOTS) {
                *place = if slot.needs.has(need) { entry(content) } else { None };
            }
            entries.into_iter().flatten()
        });
        module.into_iter().chain(own)
    }

    /// All stubs, several of a symbol where there is more code than a branch spans. A branch uses the nearest, and only if it does not
    /// reach the symbol itself.
    pub fn stubs(&self) -> impl Iterator<Item = StubEntry> + '_ {
        let symbols = Symbols::new(self, 0, 0..self.symbols.len(), 0);
        self.special_definitions().flat_map(move |(id, slot)| {
            let (object, symbol) = owner(self.objects, id).unwrap_or_default();
            let stubs = if slot.needs.has(Needs::ANY_STUB) { slot.needs } else { Needs::default() };
            symbols.stub_runs(slot).flat_map(move |first| {
                stubs::of::<A>(stubs).map(move |(offset, stub)| StubEntry {
                    object,
                    symbol,
                    offset: first.wrapping_add(offset),
                    size: stub.size(),
                })
            })
        })
    }

    /// The copy relocations (`R_X86_64_COPY` in executables): room for constant data whose address does not fit every place that takes
    /// it. The caller, who has answered with the address and size of the data, fills it after
    /// [`write`](Self::write).
    pub fn copies(&self) -> impl Iterator<Item = CopyEntry> + '_ {
        let symbols = Symbols::new(self, 0, 0..self.symbols.len(), 0);
        let has_any = self.spans.group(Group::Copies).size > 0;
        let definitions = has_any.then(|| self.special_definitions()).into_iter().flatten();
        definitions.filter_map(move |(id, slot)| {
            let offset = symbols.copy(slot)?;
            let (object, symbol) = owner(self.objects, id)?;
            Some(CopyEntry { object, symbol, address: slot.value, offset })
        })
    }

    /// The unwinding tables (`.eh_frame`) that are loaded, as offset and size in bytes; a length of 0 follows each. Those of an
    /// [executable](crate::Options::executable) that has its start files stand together, with one behind the last.
    pub fn unwinding_tables(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let slots = self.sections.iter().filter(|slot| slot.unwinding && slot.size > 0);
        slots.filter_map(|slot| Some((self.offset_of(slot)?, slot.size)))
    }

    /// The sections that stand at the address they carry, by rising address.
    pub fn fixed_sections(&self) -> impl Iterator<Item = FixedSection> + '_ {
        self.fixed.iter(self.sections).filter_map(|at| {
            let object =
                self.objects.partition_point(|object| object.first_section <= at).checked_sub(1)?;
            let section = at.checked_sub(self.objects.get(object)?.first_section)? as u32;
            let header = self.files.get(object)?.section(section).ok()?;
            let mut flags = SegmentFlags::READ;
            flags.set(SegmentFlags::WRITE, header.flags.contains(SectionFlags::WRITE));
            flags.set(SegmentFlags::EXECUTE, header.flags.contains(SectionFlags::EXECINSTR));
            let offset = self.section(object, section)?;
            Some(FixedSection {
                object,
                section,
                segment: Segment { offset, size: header.size, flags },
            })
        })
    }
}
