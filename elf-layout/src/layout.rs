//! A layout: every section, symbol, GOT entry and stub has its place.

use crate::error::{Error, ErrorKind};
use crate::flags;
use crate::groups;
use crate::hash::NameTable;
use crate::indirect;
use crate::islands::{self, Islands};
use crate::needs::{Found, Scan};
use crate::options::Options;
use crate::place::{Group, Segment, Spans};
use crate::relax::Bounds;
use crate::sections::{self, Fixed};
use crate::storage::{
    COPY_ALIGNMENT, Extra, INDIRECT_FUNCTIONS, Needs, ObjectSlot, Requirements, SectionSlot,
    SectionState, Storage, SymbolSlot, SymbolState, THREAD_LOCAL,
};
use crate::stubs;
use crate::symbols;
use crate::tls::ThreadArea;
use core::marker::PhantomData;
use elf_core::names::{EM_CUDA, ET_REL};
use elf_core::{Arch, File, Name, Slot};

/// The caller's answer for a symbol that no object defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct External {
    /// Its address.
    pub address: u64,
    /// What is known of it.
    pub sort: Sort,
}

/// What may stand for a symbol of the caller's where its address does not fit a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Nothing: the relocation is refused.
    Unknown,
    /// A stub, since it is a function.
    Function,
    /// A copy, since it is so many bytes that never change. The executor makes it: [`Layout::copies`]. A branch has no use for it,
    /// and is refused where it does not reach the constant itself.
    Constant {
        /// Size in bytes; of 0 there is no copy.
        size: u64,
    },
    /// A thread-local variable. The address is its offset in the block of its module.
    ThreadLocal {
        /// The number by which `__tls_get_addr` knows the block.
        module: u64,
        /// Bytes from the thread pointer to the variable, if that is the same in every thread.
        distance: Option<i64>,
    },
}

impl External {
    /// A symbol of which nothing but the address is known.
    #[must_use]
    pub const fn new(address: u64) -> Self {
        Self { address, sort: Sort::Unknown }
    }

    /// A function.
    #[must_use]
    pub const fn function(address: u64) -> Self {
        Self { address, sort: Sort::Function }
    }

    /// A thread-local variable at `offset` in the block of `module` and, if that is so in every thread, at `distance` from the
    /// thread pointer.
    #[must_use]
    pub const fn thread_local(module: u64, offset: u64, distance: Option<i64>) -> Self {
        Self { address: offset, sort: Sort::ThreadLocal { module, distance } }
    }

    /// Data that never change.
    #[must_use]
    pub const fn constant(address: u64, size: u64) -> Self {
        Self { address, sort: Sort::Constant { size } }
    }
}

/// Where everything goes: addresses as offsets from the start of an image whose own address may still be open.
#[derive(Debug)]
pub struct Layout<'a, 's, A> {
    pub(crate) files: &'s [File<'a>],
    pub(crate) objects: &'s [ObjectSlot<'a>],
    pub(crate) sections: &'s [SectionSlot],
    pub(crate) symbols: &'s [SymbolSlot],
    pub(crate) options: Options,
    pub(crate) spans: Spans,
    pub(crate) found: Found,
    pub(crate) fixed: Fixed,
    pub(crate) got_entries: u32,
    /// Size of all stubs in bytes.
    pub(crate) stubs_size: u64,
    pub(crate) thread_area: Option<ThreadArea>,
    pub(crate) islands: Islands,
    arch: PhantomData<A>,
}

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
        externals: &mut dyn FnMut(Name<'_>) -> Option<External>,
    ) -> Result<Self, Error> {
        Self::plan_in(files, options, storage, &Requirements::of(files)?, externals)
    }

    /// The same, when it is known what they need.
    pub(crate) fn plan_in(
        files: &'s [File<'a>],
        options: Options,
        storage: Storage<'s, 'a>,
        needed: &Requirements,
        externals: &mut dyn FnMut(Name<'_>) -> Option<External>,
    ) -> Result<Self, Error> {
        if options.replaceable_functions && !INDIRECT_FUNCTIONS {
            let kind = elf_core::ErrorKind::FeatureOff("indirect-functions");
            return Err(Error::elf(0, 0)(elf_core::Error { at: 0, kind }));
        }
        let storage = storage.prepare(needed)?;
        let Storage { objects, sections, symbols, names } = storage;
        number::<A>(files, objects)?;
        flags::check::<A>(files)?;
        let mut names = (files.len() > 1 && !names.is_empty()).then(|| NameTable::new(names));
        if let Some(names) = &mut names {
            sections.fill(SectionSlot::default());
            for object in 0..files.len() {
                groups::drop_copies(object, files, objects, sections, names)?;
            }
        }
        let mut spans = Spans::new();
        let mut fixed = Fixed::default();
        let placed = (&mut spans, &mut fixed);
        for (number, (file, object)) in (0..usize::MAX).zip(files.iter().zip(objects.iter())) {
            let placed = (&mut *placed.0, &mut *placed.1);
            sections::place(number, file, object, sections, &options, placed, names.is_some())?;
        }
        fixed.finish(objects, sections, &options)?;
        let mut found = Found::default();
        for (object, file) in (0..usize::MAX).zip(files) {
            let replaceable =
                INDIRECT_FUNCTIONS && options.replaceable_functions && !A::STUBS.is_empty();
            let symbols = (&mut *symbols, &mut found.special);
            symbols::collect::<A>(
                object,
                file,
                objects,
                sections,
                symbols,
                &mut names,
                replaceable,
            )?;
        }
        if names.is_some() {
            symbols::link(symbols);
        }
        let common = symbols::ask(objects, symbols, &found.special, externals)?;
        found.bounds = Bounds::of::<A>(&options, &spans, symbols.len(), common);
        found.reach = islands::reach::<A>(&spans);
        for (number, (file, object)) in (0..usize::MAX).zip(files.iter().zip(objects.iter())) {
            let scan = Scan { number, file, object, objects, sections, options: &options };
            scan.run::<A>(symbols, &mut found)?;
        }
        let mut layout = Self {
            files,
            objects,
            sections: &[],
            symbols: &[],
            options,
            spans,
            found,
            fixed,
            got_entries: 0,
            stubs_size: 0,
            thread_area: None,
            islands: Islands::NONE,
            arch: PhantomData,
        };
        layout.place_additions(symbols)?;
        if cfg!(feature = "islands")
            && let Some(reach) = layout.found.reach.filter(|_| layout.stubs_size > 0)
        {
            let size = layout.stubs_size;
            let spans = &mut layout.spans;
            layout.islands =
                islands::insert::<A>(files, objects, sections, symbols, spans, (size, reach))?;
        }
        layout.sections = sections;
        layout.spans.finish(&options)?;
        if files.len() > 1 {
            copy_definitions(symbols);
        }
        layout.symbols = symbols;
        Ok(layout)
    }

    /// Counts GOT entries and stubs and gives them and common symbols their room.
    fn place_additions(&mut self, symbols: &mut [SymbolSlot]) -> Result<(), Error> {
        let too_large = |kind| Error::object(0, kind);
        let packed = matches!(self.options.mode, crate::Mode::Packed { .. });
        let group = |group| if packed { Group::Packed } else { group };
        let module = THREAD_LOCAL && self.found.tls_module;
        let (mut got, mut stubs) = (if module { 2u32 } else { 0 }, 0u64);
        let (first, slots) = self.found.special.within(symbols, 0, symbols.len());
        for (id, slot) in (first..usize::MAX).zip(slots) {
            if slot.definition as usize != id {
                continue;
            }
            if slot.is_indirect() {
                indirect::check(id as u32, slot, &self.spans, self.objects)?;
                slot.needs = slot.needs.with(Needs::STUB);
            }
            if slot.needs.has(Needs::ANY_GOT) || slot.is_indirect() {
                slot.got = got;
                let entries = got_entries(slot.needs) as u32;
                got = got.saturating_add(entries).saturating_add(slot.is_indirect().into());
            }
            if slot.value == symbols::OWN_ENTRY && slot.group == Group::Got {
                slot.value = u64::from(slot.got).saturating_mul(A::ADDRESS_SIZE);
                self.found.handle = Some(slot.value);
            }
            if slot.state == SymbolState::Common {
                slot.group = group(Group::Zero);
                let placed = self.spans.append(slot.group, slot.value, slot.extra.alignment());
                slot.value = placed.map_err(too_large)?;
            }
            if slot.needs.has(Needs::COPY) {
                let size = slot.extra.constant_size();
                let offset =
                    self.spans.append(Group::Copies, size, COPY_ALIGNMENT).map_err(too_large)?;
                slot.extra = Extra::of_copy(offset).ok_or(too_large(ErrorKind::TooLarge))?;
            } else if slot.needs.has(Needs::ANY_STUB) && !A::STUBS.is_empty() {
                slot.extra = Extra::of_stubs(stubs).ok_or(too_large(ErrorKind::TooLarge))?;
                stubs = stubs.saturating_add(stubs::size::<A>(slot.needs));
            }
        }
        (self.got_entries, self.stubs_size) = (got, stubs);
        let size = u64::from(got).saturating_mul(A::ADDRESS_SIZE);
        self.spans.append(Group::Got, size, A::ADDRESS_SIZE).map_err(too_large)?;
        if stubs > 0 {
            self.spans.append(Group::Stubs, stubs, stubs::alignment::<A>()).map_err(too_large)?;
        }
        Ok(())
    }

    /// Offset of a section from the start of the image, if it is loaded.
    #[inline]
    pub(crate) fn offset_of(&self, slot: &SectionSlot) -> Option<u64> {
        match slot.state {
            SectionState::Placed(group) => {
                Some(self.spans.group(group).offset.wrapping_add(slot.offset))
            }
            SectionState::NotLoaded | SectionState::Dropped => None,
        }
    }

    /// What the caller decided.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The objects that were laid out.
    #[must_use]
    pub const fn files(&self) -> &'s [File<'a>] {
        self.files
    }

    /// Size of the image in bytes: sections, GOT, stubs and the zeros at its end.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.spans.size
    }

    /// Alignment that the image's address must have, in bytes.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        self.spans.alignment
    }

    /// First address that the image may not reach, if its code has room for low addresses only: 2 GiB for objects that are
    /// compiled without `-fPIC`. Large data at the end of the image (`SHF_X86_64_LARGE`) may reach beyond that.
    #[must_use]
    pub const fn limit(&self) -> Option<u64> {
        match self.found.limit {
            Some(limit) => Some(limit.saturating_add(self.spans.large)),
            None => None,
        }
    }

    /// The parts of the image by permission, in order, apart and on pages of their own. Sections that carry an address are
    /// not among them.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        self.spans.segments()
    }

    /// The GOT: its offset from the start of the image and its size in bytes.
    #[must_use]
    pub fn got(&self) -> (u64, u64) {
        let span = self.spans.group(Group::Got);
        (span.offset, span.size)
    }

    /// Offset of what `__dso_handle` means from the start of the image, if the objects ask for it and none defines it: a word that
    /// holds its own address. `__cxa_atexit` knows by that address whose destructors it is given.
    #[must_use]
    pub fn dso_handle(&self) -> Option<u64> {
        let start = self.spans.group(Group::Got).offset;
        self.found.handle.map(|offset| start.wrapping_add(offset))
    }

    /// Offset of section `section` of object `object` from the start of the image; `None` if it is not loaded.
    #[must_use]
    pub fn section(&self, object: usize, section: u32) -> Option<u64> {
        let object = self.objects.get(object)?;
        let at = object
            .first_section
            .checked_add(section as usize)
            .filter(|_| section < object.section_count)?;
        self.offset_of(self.sections.get(at)?)
    }
}

/// Copies a definition to those who mean it.
fn copy_definitions(symbols: &mut [SymbolSlot]) {
    for id in 0..symbols.len() {
        let Some(&SymbolSlot { definition, needs, .. }) = symbols.get(id) else { continue };
        if definition as usize != id
            && let Some(&definition) = symbols.get(definition as usize)
            && let Some(slot) = symbols.get_mut(id)
        {
            let traits = needs.only(Needs::WEAK.with(Needs::FIRST));
            let shared = definition.needs.only(Needs::SHARED);
            *slot = SymbolSlot { needs: shared.with(traits), ..definition };
        }
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

/// Number of GOT entries that a symbol needs.
fn got_entries(needs: Needs) -> u64 {
    let needed = GOT_SLOTS.iter().filter(|(need, _)| needs.has(*need));
    needed.fold(0, |total, (_, slot)| slot.entries().saturating_add(total))
}

/// Checks that the files are what the architecture takes, and numbers their sections and symbols.
fn number<'a, A: Arch>(files: &[File<'a>], objects: &mut [ObjectSlot<'a>]) -> Result<(), Error> {
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
        if header.r#type != ET_REL && A::MACHINE != EM_CUDA {
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
    }
    Ok(())
}
