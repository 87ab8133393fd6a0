//! Code becomes shorter: where it may is noted once, and then decided again and again until nothing moves any more (RISC-V psABI,
//! "Linker Relaxation").
//!
//! Every pass decides by the addresses that the one before has led to. When that does not come to rest, what has become longer again
//! stays so, and in the end all instructions stay as long as they are.

use crate::error::{Error, ErrorKind};
use crate::model::edits::{Edit, EditRange, may_shrink};
use crate::model::features::LINKER_DEFINED;
use crate::model::fixed::Fixed;
use crate::model::options::{ImageMode, Options};
use crate::model::relocations::{Target, is_relocations, pass_over, target};
use crate::model::scan_result::ScanResult;
use crate::model::spans::{Bases, Group, Spans};
use crate::model::storage::{
    Needs, ObjectSlot, Requirements, SectionSlot, SectionState, SymbolSlot, SymbolState,
};
use crate::model::surroundings::Surroundings;
use crate::model::tls;
use crate::plan::sections::{self, How};
use crate::plan::shrink::section::{Places, SectionPass, Settling};
use core::cell::Cell;
use core::marker::PhantomData;
use elf_core::names::{SHN_LORESERVE, STB_LOCAL};
use elf_core::{Arch, Definition, File, Relocations, SectionHeader, decide_some};

mod section;

/// Passes in which everything is decided anew, and then as many in which nothing becomes shorter than it was.
const PASSES: u32 = 30;

/// The name that means where the global pointer is.
const GLOBAL_POINTER: &str = "__global_pointer$";

impl Requirements {
    /// The same with room for the places where code of this architecture may become shorter: none for one whose code never does.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if a relocation section is damaged.
    pub fn with_edits<A: Arch>(self, objects: &[File<'_>]) -> Result<Self, Error> {
        let mut edits = 0usize;
        if may_shrink::<A>() {
            for (object, file) in (0..usize::MAX).zip(objects) {
                edits = edits.saturating_add(count::<A>(object, file)?);
            }
        }
        Ok(Self { edits, ..self })
    }
}

/// How many edits the relocations of `file` may come to.
fn count<A: Arch>(number: usize, file: &File<'_>) -> Result<usize, Error> {
    let places = Places::<A>::new(true, true);
    let mut count = 0usize;
    let mut next = 0u32;
    file.sections().try_for_each(|header| {
        let index = next;
        next = index.wrapping_add(1);
        if !is_relocations(&header) {
            return Ok(());
        }
        let records = file.relocations(&header).map_err(Error::elf(number, index))?;
        let Some(records) = records else { return Ok(()) };
        records.try_for_each(|record| {
            let may = places.of(&record).is_some();
            count = count.saturating_add(may.into());
            Ok::<(), Error>(())
        })
    })?;
    Ok(count)
}

/// What is done with the relocations of a section, which has this index.
type Visit<'v, 'a> = dyn FnMut(usize, &File<'a>, (u32, Relocations<'a>), &mut [SectionSlot]) -> Result<(), Error>
    + 'v;

/// The objects whose code is to become shorter.
#[derive(Clone, Copy)]
pub(crate) struct Shrinking<'p, 'a> {
    pub(crate) files: &'p [File<'a>],
    pub(crate) objects: &'p [ObjectSlot<'a>],
    pub(crate) options: &'p Options,
    pub(crate) found: &'p ScanResult,
    pub(crate) how: How<'p>,
    /// Number of the symbol that means where the global pointer is, if code may count from there.
    pub(crate) global_pointer: Option<u32>,
}

impl<'a> Shrinking<'_, 'a> {
    /// Notes in `edits` where the code of all objects may become shorter, and in `sections` which edits are whose. Gives how many they are.
    ///
    /// What stands before the place of an earlier record, or overlaps it, is left as long as it is.
    pub(crate) fn collect<A: Arch>(
        &self,
        sections: &mut [SectionSlot],
        edits: &mut [Edit],
    ) -> Result<usize, Error> {
        let places = Places::<A>::new(self.found.bounds.relaxes(), self.global_pointer.is_some());
        let mut count = 0usize;
        self.each_target(sections, false, &mut |object, _, (target, records), sections| {
            let Some(slot) = sections.get_mut(slot_of(self.objects, object, target)) else {
                return Ok(());
            };
            let is_code = matches!(
                slot.state,
                SectionState::Placed(
                    Group::Text | Group::Data | Group::WriteExecute | Group::Packed
                )
            );
            if slot.edits.count > 0 || !is_code || u32::try_from(slot.size).is_err() {
                return Ok(());
            }
            let first = count;
            let mut end = 0u64;
            let mut following = 0u32;
            records.try_for_each(|record| {
                let index = following;
                following = index.saturating_add(1);
                let Some(size) = places.of(&record) else { return Ok(()) };
                let behind = record.offset.saturating_add(size);
                if record.offset < end || behind > slot.size {
                    return Ok(());
                }
                let needed = count.saturating_add(1);
                let storage = ErrorKind::Storage { what: "edits", needed };
                let edit = edits.get_mut(count).ok_or(Error::object(object, storage))?;
                let (place, kept) = (record.offset as u32, size as u32);
                *edit = Edit { place, record: index, kept, ..Edit::default() };
                (end, count) = (behind, needed);
                Ok(())
            })?;
            let range = |at: usize| u32::try_from(at).unwrap_or(0);
            slot.edits = EditRange { first: range(first), count: range(count.wrapping_sub(first)) };
            Ok(())
        })?;
        Ok(count)
    }

    /// Goes over the relocations of all sections that are loaded, or only of those that have edits: with the object, its file, the
    /// relocations and all slots.
    fn each_target(
        &self,
        sections: &mut [SectionSlot],
        only_edited: bool,
        visit: &mut Visit<'_, 'a>,
    ) -> Result<(), Error> {
        for (number, (file, object)) in (0..usize::MAX).zip(self.files.iter().zip(self.objects)) {
            let mut next = 0u32;
            file.sections().try_for_each(|header: SectionHeader| {
                let index = next;
                next = index.wrapping_add(1);
                if !is_relocations(&header) {
                    return Ok(());
                }
                let has_edits = || {
                    let slot = sections.get(slot_of(self.objects, number, header.info));
                    slot.is_some_and(|slot| slot.edits.count > 0)
                };
                if only_edited && !has_edits() {
                    return Ok(());
                }
                match target(number, index, &header, file, object, sections)? {
                    Some(Target { target, records, .. }) => {
                        visit(number, file, (target, records), sections)
                    }
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// Decides until nothing moves any more. Everything has its place before and after.
    pub(crate) fn settle<A: Arch>(
        &self,
        sections: &mut [SectionSlot],
        symbols: &mut [SymbolSlot],
        (spans, fixed): (&mut Spans, &mut Fixed),
        edits: &mut [Edit],
    ) -> Result<(), Error> {
        let mut pass = 0u32;
        loop {
            let settling = match pass {
                ..PASSES => Settling::Free,
                _ if pass < 2 * PASSES => Settling::Longer,
                _ => Settling::AsLongAsIs,
            };
            if !self.decide::<A>(sections, symbols, spans, edits, settling)? {
                return Ok(());
            }
            if pass > 4 * PASSES {
                return Err(Error::object(0, ErrorKind::Unsettled));
            }
            pass = pass.wrapping_add(1);
            self.place(sections, symbols, (&mut *spans, &mut *fixed), edits)?;
            for (number, object) in (0..usize::MAX).zip(self.objects) {
                move_symbols::<A>(number, object, sections, symbols, edits)?;
            }
        }
    }

    /// Decides about all edits; says whether any has changed.
    fn decide<A: Arch>(
        &self,
        sections: &mut [SectionSlot],
        symbols: &[SymbolSlot],
        spans: &Spans,
        edits: &mut [Edit],
        settling: Settling,
    ) -> Result<bool, Error> {
        let bases = Bases::new(spans, self.options.base.unwrap_or(0));
        let address = |id: u32| {
            let slot = symbols.get(id as usize)?;
            Some(bases.of(slot.group).wrapping_add(slot.value))
        };
        let block = if self.options.executable { tls::executable_block::<A>(spans) } else { None };
        let surroundings = Surroundings {
            objects: self.objects,
            options: self.options,
            global_pointer: self.global_pointer.and_then(address),
            got: bases.of(Group::Got),
            block,
            flags: 0,
        };
        let mut has_changed = false;
        self.each_target(sections, true, &mut |number, file, (target, records), sections| {
            let Some(slot) = sections.get(slot_of(self.objects, number, target)) else {
                return Ok(());
            };
            let SectionState::Placed(group) = slot.state else { return Ok(()) };
            let source = file.section(target).and_then(|header| file.section_data(&header));
            let Some(object) = self.objects.get(number) else {
                return Ok(());
            };
            let mut section = SectionPass::<A> {
                number,
                object,
                section: target,
                source: source.map_err(Error::elf(number, target))?,
                address: bases.of(group).wrapping_add(slot.offset),
                symbols,
                spans,
                bases: &bases,
                surroundings: Surroundings { flags: file.header().flags, ..surroundings },
                edits: slot.edits.of_mut(edits),
                settling,
                next: Cell::new(0),
                gone: 0,
                has_changed: false,
                arch: PhantomData,
            };
            // a loop for the few that shrink where there is room for code; else that of all other passes
            if cfg!(target_pointer_width = "64") {
                decide_some::<A, _>(&records, &mut section, SectionPass::next_record)?;
            } else {
                pass_over::<A>(&records, &mut section)?;
            }
            section.finish();
            has_changed |= section.has_changed;
            Ok(())
        })?;
        Ok(has_changed)
    }

    /// Gives every section its place again, now that some have other sizes.
    fn place(
        &self,
        sections: &mut [SectionSlot],
        symbols: &mut [SymbolSlot],
        (spans, fixed): (&mut Spans, &mut Fixed),
        edits: &[Edit],
    ) -> Result<(), Error> {
        let Self { files, objects, options, .. } = *self;
        let how = How { edits, ..self.how };
        let mut again = Spans::new();
        *fixed = Fixed::default();
        let placed = (&mut again, &mut *fixed);
        let runs = sections::place_all(files, objects, sections, options, how, placed)?;
        fixed.finish(objects, sections, options)?;
        let groups: &[Group] = match options.mode {
            ImageMode::Packed { .. } => &[Group::Packed],
            ImageMode::Segments { .. } => &[Group::Text, Group::Data, Group::WriteExecute],
        };
        let is_common = |slot: &SymbolSlot| slot.state == SymbolState::Common;
        for &group in groups {
            let mut span = *again.group(group);
            // what is common, and the header, stand behind the sections, and stay there
            if group == Group::Packed
                && (self.found.header.is_some() || symbols.iter().any(is_common))
            {
                (span.size, span.alignment) =
                    (spans.group(group).size, spans.group(group).alignment);
            }
            spans.replace(group, span);
        }
        spans.finish(options)?;
        if LINKER_DEFINED && let Some(runs) = runs {
            runs.define(sections, symbols, &self.found.special);
        }
        Ok(())
    }
}

/// Number of the symbol that means where the global pointer is, if code may count from there.
pub(crate) fn global_pointer(
    objects: &[ObjectSlot<'_>],
    symbols: &[SymbolSlot],
    options: &Options,
) -> Result<Option<u32>, Error> {
    if !options.global_pointer {
        return Ok(None);
    }
    for (number, object) in (0..usize::MAX).zip(objects) {
        let Some(table) = &object.symbols else { continue };
        for (index, symbol) in (0..u32::MAX).zip(table.symbols()) {
            if symbol.binding() == STB_LOCAL {
                continue;
            }
            let name = table.name_of(&symbol).map_err(Error::elf(number, object.symbol_table))?;
            if name == GLOBAL_POINTER {
                let id = object.first_symbol.saturating_add(index as usize);
                let slot = symbols.get(id).and_then(|slot| symbols.get(slot.definition as usize));
                let is_there = |slot: &&SymbolSlot| match slot.state {
                    // it has no place before all else has one
                    _ if slot.needs.has(Needs::EDGE) => false,
                    SymbolState::Defined => slot.group != Group::Absolute || options.base.is_some(),
                    SymbolState::External => options.base.is_some(),
                    _ => false,
                };
                return Ok(slot.filter(is_there).map(|slot| slot.definition));
            }
        }
    }
    Ok(None)
}

/// Where section `section` of object `object` is among all slots.
fn slot_of(objects: &[ObjectSlot<'_>], object: usize, section: u32) -> usize {
    let first = objects.get(object).map_or(usize::MAX, |object| object.first_section);
    first.saturating_add(section as usize)
}

/// Brings the symbols of one object to where their sections are now, and they in them.
fn move_symbols<A: Arch>(
    number: usize,
    object: &ObjectSlot<'_>,
    sections: &[SectionSlot],
    symbols: &mut [SymbolSlot],
    edits: &[Edit],
) -> Result<(), Error> {
    let Some(table) = &object.symbols else { return Ok(()) };
    let elf = Error::elf(number, object.symbol_table);
    let sections = sections.get(object.first_section..).unwrap_or_default();
    let slots = symbols.get_mut(object.first_symbol..).unwrap_or_default();
    let mut slots = (0..u32::MAX).zip(slots);
    // symbols of one section mostly follow each other: what is asked of it is asked once
    let mut current = (0u32, None);
    table.symbols().try_for_each(|symbol| {
        let Some((index, slot)) = slots.next() else { return Ok(()) };
        let section = match symbol.shndx {
            section @ 1..SHN_LORESERVE => section.into(),
            _ => match table.section_of(index, &symbol).map_err(&elf)? {
                Definition::Section(section) => section,
                _ => return Ok(()),
            },
        };
        if current.0 != section {
            let placed = sections.get(section as usize);
            let placed = placed.filter(|it| matches!(it.state, SectionState::Placed(_)));
            current = (section, placed.map(|it| (it.offset, it.edits.of(edits))));
        }
        if let Some((offset, edits)) = &current.1 {
            slot.value = edits.moved(A::symbol(&symbol).0).wrapping_add(*offset);
        }
        Ok(())
    })
}
