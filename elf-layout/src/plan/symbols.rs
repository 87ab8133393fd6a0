//! Which symbol means which: definitions across objects, and the caller's answers.

use crate::error::{Error, ErrorKind};
use crate::model::external::{ExternalKind, ExternalSymbol, Variable};
use crate::model::features::{COPY_RELOCATIONS, THREAD_LOCAL};
use crate::model::names::Names;
use crate::model::options::Options;
use crate::model::owner::{has_name, owner};
use crate::model::scan_result::ScanResult;
use crate::model::spans::{Group, Spans};
use crate::model::storage::{
    Extra, Needs, ObjectSlot, SectionSlot, SectionState, SymbolRange, SymbolSlot, SymbolState,
};
use crate::plan::linker_defined;
use elf_core::names::SHN_LORESERVE;
use elf_core::names::{
    SHN_X86_64_LCOMMON, STB_LOCAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_TLS, STV_DEFAULT,
};
use elf_core::{Arch, Definition, File, Name, Symbol, Table};

/// The name that means the base of the GOT.
const GOT_BASE: &str = "_GLOBAL_OFFSET_TABLE_";
/// The name that means these objects and no others (Itanium C++ ABI 3.3.6): a word that holds its own address.
const DSO_HANDLE: &str = "__dso_handle";
/// The name that means the start of the block of thread-local variables.
const TLS_BASE: &str = "_TLS_MODULE_BASE_";
/// Stands for the value of a symbol that is its own GOT entry, until that is placed.
pub(crate) const OWN_ENTRY: u64 = u64::MAX;

/// Stands for an error that [`File::section`] gives.
const UNREACHABLE: elf_core::Error = elf_core::Error { at: 0, kind: elf_core::ErrorKind::NotElf };

/// Whether a layout defines this name itself where nobody else does.
#[cfg(feature = "alloc")]
pub(crate) fn is_of_layout(name: Name<'_>) -> bool {
    name == GOT_BASE || name == DSO_HANDLE || THREAD_LOCAL && name == TLS_BASE
}

/// Gives every symbol of one object its state and, unless it is local, its place among those of the same name.
pub(crate) fn collect<A: Arch>(
    number: usize,
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    sections: &[SectionSlot],
    (symbols, special): (&mut [SymbolSlot], &mut SymbolRange),
    names: &mut Option<Names<'_, '_>>,
    replaceable: bool,
) -> Result<(), Error> {
    let (Some(file), Some(object)) = (files.get(number), objects.get(number)) else {
        return Ok(());
    };
    let first = object.first_symbol;
    let elf = Error::elf(number, object.symbol_table);
    if let Some(null) = symbols.get_mut(first) {
        // all mean the same, which is that of the first object
        *null = SymbolSlot { state: SymbolState::Defined, ..SymbolSlot::default() };
    }
    let Some(table) = &object.symbols else { return Ok(()) };
    let own = names.as_ref().and_then(|names| names.known(number));
    let rest = table.symbols().slice(1, table.len()).unwrap_or(Table::empty());
    let mut index = 0u32;
    rest.try_for_each(|symbol| {
        index = index.wrapping_add(1);
        let id = first.saturating_add(index as usize);
        let mut slot = SymbolSlot { definition: id as u32, ..SymbolSlot::default() };
        slot.needs.set(Needs::WEAK, symbol.binding() == STB_WEAK);
        // most symbols, without the detour of an error
        let definition = match symbol.shndx {
            section @ 1..SHN_LORESERVE => Definition::Section(section.into()),
            _ => table.section_of(index, &symbol).map_err(&elf)?,
        };
        match definition {
            Definition::Undefined => {
                slot.needs.set(Needs::HIDDEN, symbol.visibility() != STV_DEFAULT);
            }
            Definition::Absolute => {
                let (value, attributes) = A::symbol(&symbol);
                slot.needs = slot.needs.with(Needs::thumb(A::HAS_STATES && attributes.is_thumb));
                slot.state = SymbolState::Defined;
                slot.value = value;
            }
            Definition::Common | Definition::Reserved(SHN_X86_64_LCOMMON) => {
                slot.state = SymbolState::Common;
                slot.value = symbol.size;
                slot.extra = Extra::of_common(symbol.value);
            }
            Definition::Section(section) => {
                let at = object
                    .first_section
                    .checked_add(section as usize)
                    .filter(|_| section < object.section_count);
                let Some(section) = at.and_then(|at| sections.get(at)) else {
                    return Err(elf(file.section(section).err().unwrap_or(UNREACHABLE)));
                };
                let (value, attributes) = A::symbol(&symbol);
                slot.needs = slot.needs.with(Needs::thumb(A::HAS_STATES && attributes.is_thumb));
                slot.value = value.wrapping_add(section.offset);
                slot.state = match section.state {
                    SectionState::NotLoaded => SymbolState::NotLoaded,
                    SectionState::Discarded if symbol.binding() == STB_LOCAL => {
                        SymbolState::Discarded
                    }
                    SectionState::Discarded => SymbolState::Undefined,
                    SectionState::Placed(group) => {
                        slot.group = group;
                        placed(&symbol, group, replaceable)
                    }
                };
            }
            Definition::Reserved(shndx) => {
                let kind = elf_core::ErrorKind::Invalid { what: "st_shndx", value: shndx.into() };
                return Err(elf(elf_core::Error { at: 0, kind }));
            }
        }
        if slot.state.is_special() {
            special.include(id);
        }
        let earlier = if symbol.binding() == STB_LOCAL { None } else { names.as_mut() };
        if let Some(names) = earlier {
            let table_of_names = &mut names.table;
            let canonical = match &own {
                Some(own) => own
                    .number(index)
                    .and_then(|number| table_of_names.at_or_insert(number as usize, id as u32)),
                None => {
                    let name = table.name_of(&symbol).map_err(&elf)?;
                    let same = |other| has_name(objects, other, name);
                    table_of_names.find_or_insert(name, id as u32, same)
                }
            };
            let full =
                Error::object(number, ErrorKind::Storage { what: "names", needed: usize::MAX });
            let canonical = canonical.ok_or(full)?;
            slot.needs.set(Needs::FIRST, canonical == id as u32);
            // a copy, that the slot of most symbols stays in registers
            let slot = SymbolSlot { ..slot };
            merge(number, index, slot, id as u32, canonical, objects, symbols)?;
        } else if let Some(place) = symbols.get_mut(id) {
            *place = slot;
        }
        Ok(())
    })
}

/// What a symbol in a loaded section is worth, by its type and what the section is for.
const fn placed(symbol: &Symbol, group: Group, replaceable: bool) -> SymbolState {
    match symbol.r#type() {
        _ if THREAD_LOCAL && matches!(group, Group::TlsData | Group::TlsZero) => {
            SymbolState::ThreadLocal
        }
        STT_TLS => SymbolState::ThreadLocal,
        STT_GNU_IFUNC => SymbolState::Indirect,
        STT_FUNC
            if replaceable && symbol.binding() != STB_LOCAL && matches!(group, Group::Text) =>
        {
            SymbolState::Replaceable
        }
        _ => SymbolState::Defined,
    }
}

/// Which of two definitions wins: strong over common over weak over none.
const fn rank(slot: &SymbolSlot) -> u8 {
    match slot.state {
        SymbolState::Undefined => 0,
        _ if slot.needs.is_weak() => 1,
        SymbolState::Common => 2,
        _ => 3,
    }
}

/// Enters symbol `id` under the first one of its name and decides which of them defines it.
fn merge(
    object: usize,
    symbol: u32,
    mut slot: SymbolSlot,
    id: u32,
    canonical: u32,
    objects: &[ObjectSlot<'_>],
    symbols: &mut [SymbolSlot],
) -> Result<(), Error> {
    if canonical != id {
        let best = symbols.get(canonical as usize).map_or(canonical, |first| first.definition);
        slot.definition = canonical;
        let wins = match symbols.get_mut(best as usize) {
            None => false,
            Some(old) => match (rank(old), rank(&slot)) {
                (3, 3) => {
                    let first = owner(objects, best).map_or(0, |(owner, _)| owner);
                    return Err(Error::object(object, ErrorKind::Duplicate { symbol, first }));
                }
                (0, 0) => {
                    // one reference that insists is enough
                    old.needs.set(Needs::WEAK, old.needs.is_weak() && slot.needs.is_weak());
                    old.needs = old.needs.with(slot.needs.only(Needs::HIDDEN));
                    false
                }
                (2, 2) => {
                    let alignment = old.extra.alignment().max(slot.extra.alignment());
                    old.extra = Extra::of_common(alignment);
                    slot.extra = old.extra;
                    slot.value > old.value
                }
                (old, new) => new > old,
            },
        };
        if wins && let Some(first) = symbols.get_mut(canonical as usize) {
            first.definition = id;
        }
    }
    if let Some(place) = symbols.get_mut(id as usize) {
        *place = slot;
    }
    Ok(())
}

/// Makes every symbol point at the one that defines it, now that all objects are collected.
pub(crate) fn link(symbols: &mut [SymbolSlot]) {
    for id in 0..symbols.len() {
        let Some(&slot) = symbols.get(id) else { continue };
        if slot.needs.has(Needs::FIRST) || slot.definition as usize == id {
            continue;
        }
        let definition = symbols.get(slot.definition as usize).map(|first| first.definition);
        if let (Some(definition), Some(slot)) = (definition, symbols.get_mut(id)) {
            slot.definition = definition;
        }
    }
}

/// Asks the caller for what no object defines, and defines what linkers do. Gives the bytes that common symbols take.
pub(crate) fn ask<A: Arch>(
    objects: &[ObjectSlot<'_>],
    symbols: &mut [SymbolSlot],
    (spans, found): (&mut Spans, &mut ScanResult),
    options: &Options,
    externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
) -> Result<u64, Error> {
    let mut common = 0u64;
    let special = found.special;
    for (number, object) in (0..usize::MAX).zip(objects) {
        let Some(table) = &object.symbols else { continue };
        let (first, slots) = special.within(symbols, object.first_symbol, object.symbol_count);
        for (index, slot) in (first as u32..u32::MAX).zip(slots) {
            let id = object.first_symbol.saturating_add(index as usize);
            if cfg!(feature = "relax") && slot.state == SymbolState::Common {
                let room = slot.value.saturating_add(slot.extra.alignment());
                common = common.saturating_add(room);
            }
            if slot.state != SymbolState::Undefined || slot.definition as usize != id {
                continue;
            }
            let elf = Error::elf(number, object.symbol_table);
            let symbol = table.get(index).map_err(&elf)?;
            let name = table.name_of(&symbol).map_err(&elf)?;
            if name == GOT_BASE || name == DSO_HANDLE {
                (slot.state, slot.group) = (SymbolState::Defined, Group::Got);
                if name == DSO_HANDLE {
                    slot.value = OWN_ENTRY;
                    slot.needs = slot.needs.with(Needs::GOT);
                }
                continue;
            }
            if THREAD_LOCAL && name == TLS_BASE {
                (slot.state, slot.group) = (SymbolState::TlsBase, Group::TlsData);
                continue;
            }
            // another component's definition is not what a hidden reference means (gABI ch. 5, "Symbol Visibility")
            let is_own = slot.needs.is_weak() && slot.needs.has(Needs::HIDDEN);
            let external = if is_own && !options.hidden_externals { None } else { externals(name) };
            slot.state = match external {
                Some(ExternalSymbol { address, kind }) => {
                    slot.value = address;
                    match kind {
                        ExternalKind::ThreadLocal { module, tp_offset } if THREAD_LOCAL => {
                            variable(slot, module, tp_offset)
                        }
                        // nobody can use it
                        ExternalKind::ThreadLocal { .. } => SymbolState::ThreadLocal,
                        ExternalKind::Unknown => SymbolState::External,
                        ExternalKind::Function => {
                            let is_thumb = A::HAS_STATES && address & 1 != 0;
                            slot.value ^= u64::from(is_thumb);
                            slot.needs = slot.needs.with(Needs::thumb(is_thumb));
                            SymbolState::ExternalFunction
                        }
                        ExternalKind::Constant { .. } if !COPY_RELOCATIONS => SymbolState::External,
                        ExternalKind::Constant { size } => match u32::try_from(size) {
                            Ok(size @ 1..) => {
                                slot.extra = Extra::of_constant(size);
                                SymbolState::ExternalConstant
                            }
                            // nothing that could be copied, or too much
                            Ok(0) | Err(_) => SymbolState::External,
                        },
                    }
                }
                None => {
                    let image = (&mut *spans, &mut *found);
                    let machine = (A::MACHINE, A::ADDRESS_SIZE);
                    if linker_defined::define(name, slot, image, options, machine)? {
                        continue;
                    }
                    match slot.needs.is_weak() {
                        true => SymbolState::UndefinedWeak,
                        false => SymbolState::Undefined,
                    }
                }
            };
        }
    }
    Ok(common)
}

/// Enters a thread-local variable of the caller's, of which the value is the offset in the block. It stays undefined if its numbers
/// are beyond what a process can have.
fn variable(slot: &mut SymbolSlot, module: u64, tp_offset: Option<i64>) -> SymbolState {
    match (u32::try_from(module), Variable::new(slot.value, tp_offset)) {
        (Ok(module), Some(external)) => {
            (slot.extra, slot.value) = (Extra::of_variable(module), external.pack());
            SymbolState::ExternalThreadLocal
        }
        _ => SymbolState::Undefined,
    }
}
