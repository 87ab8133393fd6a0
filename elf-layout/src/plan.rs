//! Where everything goes, one step a file, in the order in which they run: groups, sections, symbols, needs, additions, thunks.

use crate::error::{Error, ErrorKind};
use crate::model::bounds::Bounds;
use crate::model::edits::{Edit, may_shrink};
use crate::model::external::ExternalSymbol;
use crate::model::features::{INDIRECT_FUNCTIONS, LINKER_DEFINED, PARTS, THREAD_LOCAL};
use crate::model::fixed::Fixed;
use crate::model::layout::Layout;
use crate::model::names::{Names, Numbers};
use crate::model::options::Options;
use crate::model::owner::owner;
use crate::model::scan_result::ScanResult;
use crate::model::spans::{Group, Spans};
use crate::model::storage::{
    COPY_ALIGNMENT, Extra, GOT_SLOTS, MOST, Needs, ObjectSlot, Requirements, SectionSlot, Storage,
    SymbolSlot, SymbolState, cut,
};
use crate::model::thunks::{ThunkSections, has_thunks};
use crate::model::{stubs, tls};
use crate::plan::at_once::{AtOnce, Objects};
use crate::plan::needs::Scan;
use crate::plan::runs::key::Gathers;
use crate::plan::runs::start_files;
use crate::plan::sections::How;
use crate::plan::shrink::Shrinking;
use core::cell::Cell;
use core::marker::PhantomData;
use elf_core::names::ET_REL;
use elf_core::{Arch, File, Name};

pub(crate) mod at_once;
mod findings;
mod flags;
pub(crate) mod groups;
pub(crate) mod linker_defined;
pub(crate) mod needs;
pub(crate) mod runs;
#[cfg(all(feature = "alloc", feature = "parts"))]
pub(crate) mod scan_part;
pub(crate) mod sections;
pub(crate) mod shrink;
pub(crate) mod symbols;
pub(crate) mod thunks;
pub(crate) mod versions;

impl<'a, 's, A: Arch> Layout<'a, 's, A> {
    /// Lays out `files` in lent storage. `externals` answers for symbols that none of them defines, once a name.
    ///
    /// Of several definitions a strong one wins over a common one over a weak one; of section groups with one signature the
    /// first is kept. Nothing is written but the storage.
    ///
    /// # Errors
    /// Every [`ErrorKind`] but those of writing: what is wrong with which section of which object.
    pub fn plan(
        files: &'s [File<'a>],
        options: Options,
        storage: Storage<'s, 'a>,
        externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    ) -> Result<Self, Error> {
        let cells = Requirements::names_of(files)?;
        Self::plan_in(files, options, storage, (cells, None), externals, None)
    }

    /// The same, when it is known how many cells there are for names, and maybe their numbers, and who goes over relocations at once.
    pub(crate) fn plan_in(
        files: &'s [File<'a>],
        options: Options,
        storage: Storage<'s, 'a>,
        (names, numbers): (usize, Option<&dyn Numbers>),
        externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
        at_once: Option<&mut dyn AtOnce<'a>>,
    ) -> Result<Self, Error> {
        if options.replaceable_functions && !INDIRECT_FUNCTIONS {
            let kind = elf_core::ErrorKind::FeatureOff("indirect-functions");
            return Err(Error::elf(0, 0)(elf_core::Error { at: 0, kind }));
        }
        let objects = cut(storage.objects, "objects", files.len())?;
        let (section_count, symbol_count) = number::<A>(files, objects)?;
        let objects: &'s [ObjectSlot<'a>] = objects;
        let sections = cut(storage.sections, "sections", section_count)?;
        let symbols = cut(storage.symbols, "symbols", symbol_count)?;
        let names = cut(storage.names, "names", names)?;
        // all else is written before it is read
        names.fill(0);
        let edits = storage.edits;
        let processor = flags::check::<A>(files)?;
        let target2 = options.target2.on::<A>(processor);
        let is_shared = files.len() > 1;
        let (mut gathers, mut gathered) = (start_files::gathers(files, &options), None);
        let (mut spans, mut fixed) = (Spans::new(), Fixed::default());
        let (mut found, mut copies);
        loop {
            copies = files.len() > 1;
            let count = section_count.max(symbol_count);
            let mut names = is_shared.then(|| Names::new(&mut *names, count, numbers));
            if let Some(names) = &mut names {
                sections.fill(SectionSlot::default());
                for object in 0..files.len() {
                    groups::discard_duplicates(object, files, objects, sections, names)?;
                }
            }
            let how = How { grouped: is_shared, gathers, edits: &[] };
            let placed = (&mut spans, &mut fixed);
            let runs = sections::place_all(files, objects, sections, &options, how, placed)?;
            found = ScanResult { processor, target2, ..ScanResult::default() };
            let replaceable =
                INDIRECT_FUNCTIONS && options.replaceable_functions && !A::STUBS.is_empty();
            for object in 0..files.len() {
                let symbols = (&mut *symbols, &mut found.special);
                symbols::collect::<A>(
                    object,
                    files,
                    objects,
                    sections,
                    symbols,
                    &mut names,
                    replaceable,
                )?;
            }
            let have_versions = names.as_ref().is_none_or(Names::may_have_versions);
            copies |= have_versions && versions::link(objects, symbols, is_shared);
            if is_shared {
                symbols::link(symbols);
            }
            match runs {
                Some(runs) if LINKER_DEFINED => {
                    runs.define(sections, symbols, &found.special);
                    found.unwind_index = runs.index;
                    gathered = Some(runs);
                }
                None if runs::are_wanted(objects, symbols, &found.special) => {
                    gathers = Gathers::Meant;
                    spans.clear();
                    fixed = Fixed::default();
                    continue;
                }
                _ => {}
            }
            break;
        }
        fixed.finish(objects, sections, &options)?;
        let additions = (&mut spans, &mut found);
        let common = symbols::ask::<A>(objects, symbols, additions, &options, externals)?;
        found.bounds = Bounds::of::<A>(&options, &spans, symbols.len(), common);
        found.is_large = thunks::is_large::<A>(&spans);
        let all = Objects { files, slots: objects, sections, options: &options };
        // who has no heap has no parts
        let at_once = at_once.filter(|_| PARTS && cfg!(feature = "alloc"));
        if !at_once.is_some_and(|at_once| at_once.scan(&all, symbols, &mut found)) {
            let symbols = Cell::from_mut(&mut *symbols).as_slice_of_cells();
            for (number, (file, object)) in (0..usize::MAX).zip(files.iter().zip(objects.iter())) {
                let scan = Scan { number, file, object, objects, sections, options: &options };
                scan.run::<A, _>(symbols, &mut found)?;
            }
        }
        let image = (&mut spans, &mut found);
        let stubs_size = place_additions::<A>(symbols, objects, image, &options)?;
        let mut thunks = ThunkSections::NONE;
        if const { has_thunks::<A>() }
            && let Some(reach) = found.reach.filter(|_| stubs_size > 0)
        {
            let how = (stubs_size, reach, gathers);
            thunks = thunks::insert::<A>(files, objects, sections, symbols, &mut spans, how)?;
            if LINKER_DEFINED && let Some(runs) = &gathered {
                runs.define(sections, symbols, &found.special);
            }
        }
        spans.finish(&options)?;
        let (mut noted, mut global_pointer) = (&[] as &[Edit], None);
        let shrinks = found.bounds.relaxes() || found.pads;
        if may_shrink::<A>() && shrinks && !edits.is_empty() && !found.is_large {
            let how = How { grouped: is_shared, gathers, edits: &[] };
            if found.processor & A::NO_GLOBAL_POINTER == 0 {
                global_pointer = shrink::global_pointer(objects, symbols, &options)?;
            }
            let options = &options;
            let shrinking =
                Shrinking { files, objects, options, found: &found, how, global_pointer };
            let count = shrinking.collect::<A>(sections, edits)?;
            let edits = edits.get_mut(..count).unwrap_or_default();
            if !edits.is_empty() {
                let placed = (&mut spans, &mut fixed);
                shrinking.settle::<A>(sections, symbols, placed, edits)?;
            }
            noted = edits;
        }
        linker_defined::place(symbols, &spans, &found);
        if copies {
            propagate_definitions(symbols);
        }
        Ok(Self {
            files,
            objects,
            sections,
            symbols,
            options,
            spans,
            found,
            fixed,
            stubs_size,
            static_tls_block: None,
            thunks,
            edits: noted,
            global_pointer,
            arch: PhantomData,
        })
    }
}

/// Counts GOT entries and stubs and gives them and common symbols their room. Gives the size of all stubs in bytes.
fn place_additions<A: Arch>(
    symbols: &mut [SymbolSlot],
    objects: &[ObjectSlot<'_>],
    (spans, found): (&mut Spans, &mut ScanResult),
    options: &Options,
) -> Result<u64, Error> {
    let too_large = || Error::object(0, ErrorKind::TooLarge);
    let packed = matches!(options.mode, crate::ImageMode::Packed { .. });
    let group = |group| if packed { Group::Packed } else { group };
    let module = THREAD_LOCAL && found.tls_module;
    let mut got = if module { 2u32 } else { 0 };
    // the one for descriptors stands before those of symbols
    let mut stubs = tls::call::<A>(found).map_or(0, |call| call.size());
    let (first, slots) = found.special.within(symbols, 0, symbols.len());
    for (id, slot) in (first..usize::MAX).zip(slots) {
        if slot.definition as usize != id {
            continue;
        }
        if slot.is_indirect() {
            check(id as u32, slot, spans, objects)?;
            found.indirect = true;
            slot.needs = slot.needs.with(Needs::STUB);
        }
        if slot.needs.has(Needs::ANY_GOT) || slot.is_indirect() {
            slot.got = got;
            let entries = got_entries(slot.needs) as u32;
            got = got.saturating_add(entries).saturating_add(slot.is_indirect().into());
        }
        if slot.value == symbols::OWN_ENTRY && slot.group == Group::Got {
            slot.value = u64::from(slot.got).saturating_mul(A::ADDRESS_SIZE);
            found.handle = Some(slot.value);
        }
        if slot.state == SymbolState::Common {
            slot.group = group(Group::Zero);
            let placed = spans.append(slot.group, slot.value, slot.extra.alignment());
            slot.value = placed.ok_or_else(too_large)?;
        }
        if slot.needs.has(Needs::COPY) {
            let size = slot.extra.constant_size();
            let offset = spans.append(Group::Copies, size, COPY_ALIGNMENT);
            slot.extra = offset.and_then(Extra::of_copy).ok_or_else(too_large)?;
        } else if slot.needs.has(Needs::ANY_STUB) && !A::STUBS.is_empty() {
            slot.extra = Extra::of_stubs(stubs).ok_or_else(too_large)?;
            stubs = stubs.saturating_add(stubs::size::<A>(slot.needs));
        }
    }
    let size = u64::from(got).saturating_mul(A::ADDRESS_SIZE);
    spans.append(Group::Got, size, A::ADDRESS_SIZE).ok_or_else(too_large)?;
    if stubs > 0 {
        spans.append(Group::Stubs, stubs, stubs::alignment::<A>()).ok_or_else(too_large)?;
    }
    Ok(stubs)
}

/// Checks that the resolver of symbol `id` is code of the objects.
fn check(
    id: u32,
    slot: &SymbolSlot,
    spans: &Spans,
    objects: &[ObjectSlot<'_>],
) -> Result<(), Error> {
    let is_code = matches!(slot.group, Group::Text | Group::Packed | Group::WriteExecute);
    if is_code && slot.value < spans.group(slot.group).size {
        return Ok(());
    }
    let (object, symbol) = owner(objects, id).unwrap_or_default();
    Err(Error::object(object, ErrorKind::Resolver { symbol }))
}

/// Propagates the resolved definition to all symbols of its name.
fn propagate_definitions(symbols: &mut [SymbolSlot]) {
    for id in 0..symbols.len() {
        let Some(&SymbolSlot { definition, .. }) = symbols.get(id) else { continue };
        if definition as usize != id
            && let Some(&definition) = symbols.get(definition as usize)
            && let Some(slot) = symbols.get_mut(id)
        {
            *slot = definition;
        }
    }
}

/// Number of GOT entries that a symbol needs.
fn got_entries(needs: Needs) -> u64 {
    let needed = GOT_SLOTS.iter().filter(|(need, _)| needs.has(*need));
    needed.fold(0, |total, (_, slot)| slot.entries().saturating_add(total))
}

/// Checks that the files are what the architecture takes, and numbers their sections and symbols. Gives how many of both there are.
fn number<'a, A: Arch>(
    files: &[File<'a>],
    objects: &mut [ObjectSlot<'a>],
) -> Result<(usize, usize), Error> {
    let (mut first_section, mut first_symbol) = (0usize, 0usize);
    for (number, (file, object)) in (0..usize::MAX).zip(files.iter().zip(objects)) {
        let header = file.header();
        let refuse = |kind| Err(Error::object(number, kind));
        if header.machine != A::MACHINE {
            return refuse(ErrorKind::Machine { found: header.machine, expected: A::MACHINE });
        }
        if file.encoding().is_64() != (A::ADDRESS_SIZE == 8) {
            return refuse(ErrorKind::Class);
        }
        let is_big = |file: &File<'_>| file.encoding().is_big_endian();
        if files.first().is_some_and(|first| is_big(first) != is_big(file)) {
            return refuse(ErrorKind::ByteOrder);
        }
        if header.r#type != ET_REL {
            return refuse(ErrorKind::FileType(header.r#type));
        }
        let symbols = file.symbol_table().map_err(Error::elf(number, 0))?;
        *object = ObjectSlot {
            first_section,
            section_count: u32::try_from(file.sections().len()).unwrap_or(u32::MAX),
            first_symbol,
            symbol_count: symbols.map_or(1, |table| table.len().max(1)),
            symbols,
            symbol_table: symbols.map_or(0, |table| table.section()),
        };
        first_section = first_section.saturating_add(file.sections().len());
        first_symbol = first_symbol.saturating_add(object.symbol_count);
        if first_section.max(first_symbol) > MOST {
            return refuse(ErrorKind::TooLarge);
        }
    }
    Ok((first_section, first_symbol))
}
