//! Sections that stand together because a symbol means where they start or end: those of one name that is a C identifier
//! (`__start_NAME`, `__stop_NAME`), and the arrays of functions to be called first and last (`__init_array_start`).
//!
//! Only where an undefined symbol has such a name, or the objects are an executable with its [start files](start_files), are sections placed in
//! this way: then all that could be meant are left out at
//! first, sorted by name, and placed behind all others, each run in the group of what its sections want together, as linkers make one
//! output section of them. Sections of arrays come by priority, those with `SHF_LINK_ORDER` in the order of the sections that they
//! are linked to, all others in the order of the objects. The symbols that mean them are sorted by the same names, and both
//! lists are gone through side by side: no name is looked for twice. What is special about Arm's unwinding tables is in `unwind_index`.

use crate::error::{Error, ErrorKind};
use crate::model::features::LINKER_DEFINED;
use crate::model::list::{List, Nodes, sort};
use crate::model::options::Options;
use crate::model::owner::{followed, name_of, owner, section_of};
use crate::model::spans::{Group, Spans, alignment_of, group_of};
use crate::model::storage::{
    ObjectSlot, SectionSlot, SectionState, SymbolRange, SymbolSlot, SymbolState,
};
use crate::model::unwind_index::UnwindIndex;
use core::num::NonZeroU32;
use elf_core::names::SHT_NOBITS;
use elf_core::{File, SectionFlags, SectionHeader};
use key::{Array, Gathers, Key, is_gathered, key, meaning};
use unwind_index::Index;

pub(crate) mod key;
pub(crate) mod start_files;
mod unwind_index;

/// Whether an undefined symbol means where sections start or end.
pub(crate) fn are_wanted(
    objects: &[ObjectSlot<'_>],
    symbols: &[SymbolSlot],
    special: &SymbolRange,
) -> bool {
    LINKER_DEFINED
        && special.of(symbols).any(|(id, slot)| {
            slot.state == SymbolState::Undefined
                && slot.definition == id
                && name_of(objects, id).is_some_and(|name| meaning(name).is_some())
        })
}

/// The sections that are placed behind all others, name by name.
pub(crate) struct Runs<'p, 'a> {
    files: &'p [File<'a>],
    objects: &'p [ObjectSlot<'a>],
    list: List,
    has_link_order: bool,
    gathers: Gathers,
    /// Of Arm's unwinding tables.
    pub(crate) index: Option<UnwindIndex>,
}

impl<'p, 'a> Runs<'p, 'a> {
    pub(crate) fn new(
        files: &'p [File<'a>],
        objects: &'p [ObjectSlot<'a>],
        gathers: Gathers,
    ) -> Self {
        let list = List::default();
        Self { files, objects, list, has_link_order: false, gathers, index: None }
    }

    /// Enters section `at`, of all, if it is placed later: whether it is.
    pub(crate) fn enter(
        &mut self,
        at: usize,
        (file, header): (&File<'_>, &SectionHeader),
        sections: &mut [SectionSlot],
    ) -> bool {
        let Some(number) = u32::try_from(at).ok().and_then(NonZeroU32::new) else { return false };
        if !is_gathered(file, header, self.gathers) {
            return false;
        }
        self.has_link_order |= header.flags.contains(SectionFlags::LINK_ORDER);
        let mut list = self.list;
        list.append(number, &mut self.by(sections, false));
        self.list = list;
        true
    }

    /// Places the sections, now that all others are.
    pub(crate) fn place(
        &mut self,
        sections: &mut [SectionSlot],
        spans: &mut Spans,
        options: &Options,
    ) -> Result<(), Error> {
        self.list.first = sort(self.list.first, &mut self.by(sections, false));
        self.place_those(false, sections, spans, options)?;
        if self.has_link_order {
            self.list.first = sort(self.list.first, &mut self.by(sections, true));
            self.place_those(true, sections, spans, options)?;
        }
        Ok(())
    }

    /// Places the runs with sections that follow others, or those without.
    fn place_those(
        &mut self,
        linked: bool,
        sections: &mut [SectionSlot],
        spans: &mut Spans,
        options: &Options,
    ) -> Result<(), Error> {
        let mut next = self.list.first;
        while let Some(first) = next {
            let (whole, end) = self.whole(first, sections);
            if whole.flags.contains(SectionFlags::LINK_ORDER) == linked
                && let Some(group) = group_of(&whole, options)
            {
                let key = self.key(first).map(|(key, _)| key);
                if linked && key.as_ref().map(|key| key.array) == Some(Array::UnwindIndex) {
                    let (files, objects, gathers) = (self.files, self.objects, self.gathers);
                    let index = Index { files, objects, gathers };
                    let mut place_one =
                        |number: NonZeroU32, sections: &mut [SectionSlot], spans: &mut Spans| {
                            self.place_one(number, group, sections, spans, options)
                        };
                    let found = index.place((first, end), group, sections, spans, &mut place_one);
                    self.index = Some(found?);
                    next = end;
                    continue;
                }
                let mut at = Some(first);
                while let Some(number) = at.filter(|_| at != end) {
                    at = self.place_one(number, group, sections, spans, options)?;
                }
                if key.is_some_and(|key| key.is_frames()) {
                    // a length of 0, if no start file has one
                    let end = spans.append(group, 4, 1);
                    end.ok_or_else(|| Error::object(0, ErrorKind::TooLarge))?;
                }
            }
            next = end;
        }
        Ok(())
    }

    /// Places a section, and gives the one behind it.
    fn place_one(
        &self,
        number: NonZeroU32,
        group: Group,
        sections: &mut [SectionSlot],
        spans: &mut Spans,
        options: &Options,
    ) -> Result<Option<NonZeroU32>, Error> {
        let Some((object, section, header)) = self.section(number) else { return Ok(None) };
        let error = |kind| Error { object, section, kind };
        let alignment = alignment_of(&header, options);
        let alignment = alignment.map_err(|found| error(ErrorKind::Alignment(found)))?;
        let Some(slot) = sections.get_mut(number.get() as usize) else { return Ok(None) };
        let offset = spans.append(group, slot.size, alignment);
        slot.offset = offset.ok_or_else(|| error(ErrorKind::TooLarge))?;
        slot.state = SectionState::Placed(group);
        Ok(slot.next)
    }

    /// What the sections from `first` on that stand together are as one, and which is the first behind them.
    fn whole(
        &self,
        first: NonZeroU32,
        sections: &[SectionSlot],
    ) -> (SectionHeader, Option<NonZeroU32>) {
        let own = self.key(first).map(|(key, _)| key);
        let mut whole = SectionHeader { r#type: SHT_NOBITS, ..SectionHeader::default() };
        whole.flags = SectionFlags::X86_64_LARGE;
        let mut next = Some(first);
        while let Some(number) = next {
            if self.key(number).map(|(key, _)| key) != own {
                break;
            }
            if let Some((_, _, header)) = self.section(number) {
                // what is large only in part must be near all the same
                let large = whole.flags & header.flags & SectionFlags::X86_64_LARGE;
                let others = (whole.flags | header.flags) - SectionFlags::X86_64_LARGE;
                whole.flags = others | large;
                if header.r#type != SHT_NOBITS {
                    whole.r#type = header.r#type;
                }
            }
            next = slot_of(sections, number).and_then(|slot| slot.next);
        }
        (whole, next)
    }

    /// Defines the symbols that mean where these sections start and end, and are undefined or were defined so before.
    pub(crate) fn define(
        &self,
        sections: &[SectionSlot],
        symbols: &mut [SymbolSlot],
        special: &SymbolRange,
    ) {
        let mut wanted = List::default();
        for id in special.numbers() {
            let Some(slot) = symbols.get_mut(id as usize) else { break };
            let is_open = match slot.state {
                SymbolState::Undefined => true,
                SymbolState::Defined => is_undefined(self.objects, id),
                _ => false,
            };
            let is_meant = || name_of(self.objects, id).is_some_and(|it| meaning(it).is_some());
            if is_open
                && slot.definition == id
                && is_meant()
                && let Some(number) = NonZeroU32::new(id)
            {
                slot.value = 0;
                wanted.append(number, &mut ByMeaning { objects: self.objects, symbols });
            }
        }
        let mut nodes = ByMeaning { objects: self.objects, symbols };
        let mut next = sort(wanted.first, &mut nodes);
        let (mut run, mut rest) = (None::<(Key<'_>, Range)>, self.list.first);
        while let Some(number) = next {
            next = nodes.next(number);
            nodes.set_next(number, None);
            let Some((key, is_end)) = nodes.meaning(number) else { continue };
            while run.as_ref().is_none_or(|(found, _)| *found < key)
                && let Some(first) = rest
            {
                let (found, end) = self.range(first, sections);
                (run, rest) = (self.key(first).map(|(key, _)| (key, found)), end);
            }
            if let Some((_, range)) = run.as_ref().filter(|(found, _)| *found == key)
                && let Some(slot) = nodes.symbols.get_mut(number.get() as usize)
            {
                (slot.state, slot.group) = (SymbolState::Defined, range.group);
                slot.value = if is_end { range.end } else { range.start };
            }
        }
    }

    /// Where the sections from `first` on that stand together do so, and which is the first behind them.
    fn range(&self, first: NonZeroU32, sections: &[SectionSlot]) -> (Range, Option<NonZeroU32>) {
        let (_, behind) = self.whole(first, sections);
        let place = slot_of(sections, first);
        let group = match place.map(|slot| slot.state) {
            Some(SectionState::Placed(group)) => group,
            _ => Group::Absolute,
        };
        let start = place.map_or(0, |slot| slot.offset);
        let mut range = Range { group, start, end: start };
        let mut at = Some(first);
        while let Some(slot) = at.filter(|_| at != behind).and_then(|at| slot_of(sections, at)) {
            range.end = slot.offset.saturating_add(slot.size);
            at = slot.next;
        }
        if let Some(index) = self.index.filter(|index| index.first == first) {
            range.end = index.end;
        }
        (range, behind)
    }

    fn section(&self, number: NonZeroU32) -> Option<(usize, u32, SectionHeader)> {
        section_of(self.files, self.objects, number)
    }

    fn key(&self, number: NonZeroU32) -> Option<(Key<'a>, (u32, &'a [u8]))> {
        let (object, _, header) = self.section(number)?;
        key(self.files.get(object)?, &header, self.gathers)
    }

    /// Where the section is that this one follows (`SHF_LINK_ORDER`); behind all if it follows none.
    fn followed(&self, number: NonZeroU32, sections: &[SectionSlot]) -> (u8, u64) {
        let slot = followed(self.files, self.objects, sections, number);
        match slot.map(|slot| (slot.state, slot.offset)) {
            Some((SectionState::Placed(group), offset)) => (group as u8, offset),
            _ => (u8::MAX, 0),
        }
    }

    fn by<'s>(&'s self, sections: &'s mut [SectionSlot], follows: bool) -> ByName<'s, 'a> {
        ByName { runs: self, sections, follows }
    }
}

/// Whether the object itself does not define symbol `id`.
fn is_undefined(objects: &[ObjectSlot<'_>], id: u32) -> bool {
    let symbol = owner(objects, id)
        .and_then(|(object, index)| objects.get(object)?.symbols.as_ref()?.get(index).ok());
    symbol.is_some_and(|symbol| symbol.is_undefined())
}

/// Where sections stand together.
struct Range {
    group: Group,
    /// Bytes from the start of the group.
    start: u64,
    end: u64,
}

fn slot_of(sections: &[SectionSlot], number: NonZeroU32) -> Option<&SectionSlot> {
    sections.get(number.get() as usize)
}

/// Sections by what they have in common, then by rank, or by what they follow.
struct ByName<'s, 'a> {
    runs: &'s Runs<'s, 'a>,
    sections: &'s mut [SectionSlot],
    follows: bool,
}

impl Nodes for ByName<'_, '_> {
    fn next(&self, number: NonZeroU32) -> Option<NonZeroU32> {
        slot_of(self.sections, number).and_then(|slot| slot.next)
    }

    fn set_next(&mut self, number: NonZeroU32, next: Option<NonZeroU32>) {
        if let Some(slot) = self.sections.get_mut(number.get() as usize) {
            slot.next = next;
        }
    }

    fn is_before(&self, first: NonZeroU32, second: NonZeroU32) -> bool {
        if !self.follows {
            return self.runs.key(first) < self.runs.key(second);
        }
        let key = |number| {
            let common = self.runs.key(number).map(|(key, _)| key);
            (common, self.runs.followed(number, self.sections))
        };
        key(first) < key(second)
    }
}

/// Symbols by the sections that they mean. The next one is where the value will be.
struct ByMeaning<'s, 'a> {
    objects: &'s [ObjectSlot<'a>],
    symbols: &'s mut [SymbolSlot],
}

impl<'a> ByMeaning<'_, 'a> {
    fn meaning(&self, number: NonZeroU32) -> Option<(Key<'a>, bool)> {
        meaning(name_of(self.objects, number.get())?)
    }
}

impl Nodes for ByMeaning<'_, '_> {
    fn next(&self, number: NonZeroU32) -> Option<NonZeroU32> {
        let value = self.symbols.get(number.get() as usize)?.value;
        u32::try_from(value).ok().and_then(NonZeroU32::new)
    }

    fn set_next(&mut self, number: NonZeroU32, next: Option<NonZeroU32>) {
        if let Some(slot) = self.symbols.get_mut(number.get() as usize) {
            slot.value = next.map_or(0, NonZeroU32::get).into();
        }
    }

    fn is_before(&self, first: NonZeroU32, second: NonZeroU32) -> bool {
        let key = |number| self.meaning(number).map(|(key, _)| key);
        key(first) < key(second)
    }
}
