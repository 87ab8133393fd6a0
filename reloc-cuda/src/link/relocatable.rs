//! Relocatable output: several objects as one, which is linked later as they would be.
//!
//! Sections of functions stay as they are; those that files have once are put together. Of several definitions one is chosen, and
//! the code of the others goes. Nothing is resolved: not even what names a place in a section is, but it counts from where that is
//! in the larger one.

use super::calls::{Calls, calls_count};
use super::entity::{Entities, EntityId, Kind};
use super::error::{LinkError, LinkErrorKind, LinkErrors};
use super::info::{Numbers, number};
use super::linked::{LinkedCubin, LinkedMercury};
use super::object::{Object, Role, Section};
use super::order::OutSymbol;
use super::out::{Class, Info, Link, Meaning, Out, OutId, OutRecord};
use super::record::{Bytes, words};
use super::state::State;
use super::strings::Strings;
use super::write::{self, Sections, Stage};
use crate::cuda::{R_CUDA_32, R_CUDA_64};
use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;
use elf_core::Record;
use elf_core::names::{
    SHN_COMMON, SHT_CUDA_CALLGRAPH, SHT_CUDA_INFO, SHT_CUDA_PROTOTYPE, SHT_RELA, SHT_STRTAB,
    SHT_SYMTAB, STT_SECTION,
};
use nvinfo::{Attributes, Call, Payload};

/// Why a relocatable file has no Mercury form.
const NO_MERCURY: &str = "relocatable output has machine code alone";

impl<'a> State<'a> {
    /// The objects as one.
    pub(super) fn relocatable(mut self) -> Result<(Vec<u8>, LinkedMercury), LinkErrors> {
        // all code stays but that of definitions that gave way
        let all = self.entities.iter();
        let code = all.filter(|(_, one)| one.kind == Kind::Function);
        self.calls.kept = code.map(|(id, _)| id).collect();
        let objects = Rc::clone(&self.objects);
        if objects.iter().any(|object| object.with_role(Role::Mercury).next().is_some()) {
            self.mercury = LinkedMercury::LeftOut { object: 0, why: NO_MERCURY };
        }
        let mut infos = Vec::new();
        for texts in [true, false] {
            for object in objects.iter() {
                for (index, section) in (0u32..).zip(&object.sections) {
                    if (section.role == Role::Text) == texts
                        && let Some(out) = self.take(object, index, section)
                        && section.role == Role::Info
                    {
                        infos.push((object.index, index, out));
                    }
                }
            }
        }
        self.move_variables();
        self.place_inlined_names()?;
        objects.iter().try_for_each(|object| self.take_records(object))?;
        Ok(self.write(&infos)?)
    }

    /// Takes a section, if what it belongs to is taken.
    fn take(&mut self, object: &Object<'a>, index: u32, section: &Section<'a>) -> Option<OutId> {
        let header = section.header;
        let (class, is_joined) = match section.role {
            Role::Text => (Class::Text, false),
            Role::Info => (Class::Info, false),
            Role::Parameters | Role::Literals => (Class::Banks, false),
            Role::Shared => (Class::NoBits, false),
            Role::Constants => (Class::Banks, true),
            Role::Initialized => (Class::Initialized, true),
            Role::Zeroed | Role::FreeShared | Role::ReservedShared => (Class::NoBits, true),
            Role::Debug | Role::Frame => (Class::Frame, true),
            _ => return None,
        };
        let name = section.name.as_bytes();
        let new = Out { flags: header.flags.bits(), ..Out::new(name, class, header.r#type, 1) };
        let new = Out { entry_size: header.entry_size, ..new };
        let (out, base) = if is_joined {
            if section.role == Role::Zeroed && self.is_lost(object, index) {
                return None;
            }
            let known = self.outs.iter().find(|(_, out)| out.name == name).map(|(id, _)| id);
            let out = known.unwrap_or_else(|| self.outs.push(new));
            let whole = &mut self.outs[out];
            let base = match section.role {
                Role::Zeroed | Role::FreeShared => whole.reserve(header.size, header.alignment),
                // what the system has, it has once
                Role::ReservedShared => {
                    whole.memory = whole.memory.max(header.size);
                    whole.alignment = whole.alignment.max(header.alignment);
                    0
                }
                _ => whole.append(section.data, header.alignment),
            };
            (out, base)
        } else {
            let info = match section.role {
                Role::Text => {
                    let id = self.function_here(object, index)?;
                    Info::Symbol(id, header.info & !super::entity::SYMBOL_OF_TEXT)
                }
                _ => Info::Section(self.places.get(&(object.index, header.info))?.0),
            };
            let is_linked = matches!(section.role, Role::Text | Role::Info);
            let link = if is_linked { Link::Symbols } else { Link::None };
            let memory = if section.role == Role::Shared { header.size } else { 0 };
            let (data, alignment) = (section.data.to_vec(), header.alignment);
            (self.outs.push(Out { link, info, memory, data, alignment, ..new }), 0)
        };
        self.places.insert((object.index, index), (out, base));
        Some(out)
    }

    /// Gives variables their places in the larger sections. Of shared ones the value is an alignment.
    fn move_variables(&mut self) {
        let ids: Vec<_> = self.entities.iter().map(|(id, _)| id).collect();
        for id in ids {
            let entity = &self.entities[id];
            let section = entity.place.and_then(|place| Some((place.object, place.section?)));
            let place = section.and_then(|section| self.places.get(&section));
            if let Some((_, base)) = place.filter(|_| entity.kind == Kind::Variable) {
                self.entities[id].value = entity.symbol.value.wrapping_add(*base);
            }
        }
    }

    /// Takes the records of an object against what is taken of it.
    fn take_records(&mut self, object: &Object<'a>) -> Result<(), LinkError> {
        for (_, section) in object.with_role(Role::Relocations) {
            let target = section.header.info;
            let Some(&(out, base)) = self.places.get(&(object.index, target)) else { continue };
            let role = object.section(target).map(|section| section.role);
            let lost = match role {
                Some(Role::Initialized | Role::Constants) => self.lost_variables(object, target),
                _ => Vec::new(),
            };
            // what describes code goes with it
            let describes = matches!(role, Some(Role::Frame | Role::Debug));
            let list = self.record_list(out, section.header.r#type == SHT_RELA);
            let rows = object.cubin.file().relocations(&section.header);
            let rows = rows.map_err(LinkError::damaged(object.index))?;
            for record in rows.into_iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()) {
                let gone = describes && self.names_what_gave_way(object, record.symbol, out);
                if gone || lost.iter().any(|room| room.contains(&record.offset)) {
                    continue;
                }
                let placed = Record { offset: record.offset.wrapping_add(base), ..record };
                let new = self.record(object, (target, out), placed)?;
                if let Some((_, _, records)) = self.records.get_mut(list) {
                    records.extend(new);
                }
            }
        }
        Ok(())
    }

    /// Whether a record names a function whose code here gave way to another object's, and goes with that.
    fn names_what_gave_way(&self, object: &Object<'_>, symbol: u32, out: OutId) -> bool {
        let had = object.section_of(symbol).is_some();
        let gave_way = |id| self.is_function(id) && !self.is_unwound(id, object.index);
        had && object.entity(symbol).is_some_and(gave_way) && self.outs[out].name != b".debug_info"
    }

    /// A record with its symbol as it is in the larger file.
    fn record(
        &mut self,
        object: &Object<'a>,
        (target, out): (u32, OutId),
        record: Record,
    ) -> Result<Option<OutRecord>, LinkError> {
        let of_section = || object.section_of(record.symbol);
        let start = match object.entity(record.symbol) {
            Some(_) => None,
            None => of_section().and_then(|section| self.places.get(&(object.index, section))),
        };
        let start = start.copied().filter(|(_, start)| *start != 0 && record.addend.is_none());
        let found = if let Some((named, start)) = start {
            // the field has the addend
            self.add_to_field(out, &record, start).ok_or_else(|| {
                let section = object.section(target).map(|section| section.name.to_string());
                let (offset, r#type) = (record.offset, record.r#type);
                let section = section.unwrap_or_default();
                let kind = LinkErrorKind::Relocation { section, offset, r#type };
                LinkError::new(object.index, kind)
            })?;
            Some((Meaning::Section(named), None))
        } else {
            self.meaning(object, target, &record)?
        };
        let Record { offset, r#type, .. } = record;
        Ok(found.map(|(symbol, addend)| OutRecord { offset, r#type, symbol, addend }))
    }

    /// Adds to the word that a record is about. Nothing, if it is about something else than a word.
    fn add_to_field(&mut self, out: OutId, record: &Record, more: u64) -> Option<()> {
        let at = usize::try_from(record.offset).ok()?;
        let field = self.outs[out].data.get_mut(at..)?;
        match record.r#type {
            R_CUDA_32 => {
                let word = field.first_chunk_mut()?;
                *word = u32::from_le_bytes(*word).wrapping_add(more as u32).to_le_bytes();
            }
            R_CUDA_64 => {
                let word = field.first_chunk_mut()?;
                *word = u64::from_le_bytes(*word).wrapping_add(more).to_le_bytes();
            }
            _ => return None,
        }
        Some(())
    }

    /// Makes the tables and the file.
    fn write(
        mut self,
        infos: &[(usize, u32, OutId)],
    ) -> Result<(Vec<u8>, LinkedMercury), LinkError> {
        let outs = &mut self.outs;
        outs.push(Out::new(b".shstrtab", Class::SectionNames, SHT_STRTAB, 1));
        let strings = outs.push(Out::new(b".strtab", Class::Strings, SHT_STRTAB, 1));
        let table = Out::new(b".symtab", Class::Symbols, SHT_SYMTAB, 8);
        let table = Out { link: Link::Strings, info: Info::Symbols, entry_size: 24, ..table };
        let symbols = outs.push(table);
        let mut add = |name: &[u8], class, r#type, entry_size| {
            let out = Out { entry_size, ..Out::new(name, class, r#type, 4) };
            outs.push(Out { link: Link::Symbols, ..out })
        };
        let module = add(b".nv.info", Class::ModuleInfo, SHT_CUDA_INFO, 0);
        let calls = add(b".nv.callgraph", Class::CallGraph, SHT_CUDA_CALLGRAPH, 8);
        let prototypes = add(b".nv.prototype", Class::Prototypes, SHT_CUDA_PROTOTYPE, 8);
        self.notes()?;
        self.records.retain(|(_, _, list)| !list.is_empty());
        let records = self.record_sections();
        let (all, locals) = self.relocatable_symbols();
        let numbers: Numbers =
            (0u32..).zip(&all).filter_map(|(at, one)| Some((one.meaning?, at))).collect();
        let sections = Sections::of(&self.outs, &[]);
        let mut names = Strings::new();
        self.outs[module].data = self.all_module_records(&numbers)?;
        for &(object, section, out) in infos {
            self.outs[out].data = self.function_records(object, section, &numbers)?;
        }
        self.outs[calls].data = self.all_calls(&numbers, &mut names)?;
        let texts: Vec<_> =
            self.calls.prototypes.iter().map(|(id, text)| (*id, text.as_bytes())).collect();
        self.outs[prototypes].data = super::graph::prototype_rows(texts, &numbers, &mut names);
        for (&out, &list) in &records {
            if let Some((_, _, list)) = self.records.get(list) {
                self.outs[out].data = write::records(list, &numbers);
            }
        }
        self.outs[symbols].data = write::symbol_table(&all, &sections, &mut names);
        self.outs[strings].data = names.into_bytes();
        let counts = (self.flags(), [locals; 2], Stage::Relocatable);
        Ok((write::file(&self.outs, &sections, &numbers, counts), self.mercury))
    }

    /// Symbols: of sections, local ones, the others; and how many come before these.
    fn relocatable_symbols(&self) -> (Vec<OutSymbol>, u32) {
        let (mut all, mut seen) = (Vec::from([OutSymbol::null()]), BTreeSet::new());
        for object in self.objects.iter() {
            for (index, (symbol, _)) in (0u32..).zip(&object.symbols) {
                let section = object.section_of(index);
                let place = section.and_then(|section| self.places.get(&(object.index, section)));
                if let Some(&(id, _)) = place.filter(|_| symbol.r#type() == STT_SECTION)
                    && seen.insert(id)
                {
                    all.push(OutSymbol::of_section(id, &self.outs[id].name));
                }
            }
        }
        // among themselves they stand as they were first defined: by that they get their places
        let mut commons = self.commons().into_iter().map(|common| common.id);
        let mut locals = 0;
        for local in [true, false] {
            for (id, entity) in self.entities.iter().filter(|(_, one)| one.local == local) {
                let common = entity.common.and_then(|_| commons.next());
                all.extend(self.relocatable_symbol(common.unwrap_or(id), common.is_some()));
            }
            if local {
                locals = all.len() as u32;
            }
        }
        (all, locals)
    }

    /// The symbol of an entity, unless what it is in gave way.
    fn relocatable_symbol(&self, id: EntityId, is_common: bool) -> Option<OutSymbol> {
        let entity = &self.entities[id];
        let place = entity.place.and_then(|place| Some((place.object, place.section?)));
        let section = match place {
            Some(place) => Some(self.places.get(&place)?.0),
            None => None,
        };
        Some(OutSymbol {
            meaning: Some(Meaning::Entity(id)),
            name: entity.name.as_bytes().to_vec(),
            info: entity.symbol.info,
            other: entity.symbol.other,
            section,
            number: if is_common { SHN_COMMON } else { 0 },
            value: entity.common.unwrap_or(entity.value),
            size: entity.symbol.size,
        })
    }

    /// `.nv.info` of all objects, of functions that are taken.
    fn all_module_records(&self, numbers: &Numbers) -> Result<Vec<u8>, LinkError> {
        let mut records: Vec<Bytes> = Vec::new();
        for object in self.objects.iter() {
            for (_, section) in object.with_role(Role::ModuleInfo) {
                for row in Attributes::new(section.data, section.header.offset) {
                    let row = row.map_err(LinkError::damaged(object.index))?;
                    match row.payload() {
                        Payload::OfSymbol { symbol, value } => {
                            let id = object.entity(symbol);
                            let here = id.filter(|&id| self.is_here(id, object.index));
                            let symbol = here.map(|id| number(numbers, Meaning::Entity(id)));
                            records.extend(symbol.map(|one| words(row.number, &[one, value])));
                        }
                        _ => records.push(self.renumbered(object, &row, numbers)),
                    }
                }
            }
        }
        Ok(records.concat())
    }

    /// `.nv.info.F` as it was, with other numbers.
    fn function_records(
        &self,
        object: usize,
        section: u32,
        numbers: &Numbers,
    ) -> Result<Vec<u8>, LinkError> {
        let Some(object) = self.objects.get(object) else { return Ok(Vec::new()) };
        let Some(section) = object.section(section) else { return Ok(Vec::new()) };
        let mut bytes = Vec::new();
        for row in Attributes::new(section.data, section.header.offset) {
            let row = row.map_err(LinkError::damaged(object.index))?;
            bytes.extend(self.renumbered(object, &row, numbers));
        }
        Ok(bytes)
    }

    /// `.nv.callgraph` of all objects, list by list.
    fn all_calls(&self, numbers: &Numbers, names: &mut Strings) -> Result<Vec<u8>, LinkError> {
        let (mut lists, mut seen) = (<[Vec<[u32; 2]>; 4]>::default(), BTreeSet::new());
        for object in self.objects.iter() {
            let damaged = LinkError::damaged::<nvinfo::Error>(object.index);
            let of =
                |symbol| object.entity(symbol).map_or(0, |id| number(numbers, Meaning::Entity(id)));
            let gave_way = |symbol| {
                object.entity(symbol).is_none_or(|id| !calls_count(&self.entities, id, object))
            };
            let mut text = |prototype| {
                let text = object.cubin.prototype(prototype).map_err(&damaged)?;
                Ok(names.add(text.as_bytes()))
            };
            for call in object.cubin.calls().map_err(&damaged)? {
                let (list, row) = match call {
                    Call::Direct { caller, .. }
                    | Call::Indirect { caller, .. }
                    | Call::MayReach { caller, .. }
                        if gave_way(caller) =>
                    {
                        continue;
                    }
                    Call::Direct { caller, callee } => (0, [of(caller), of(callee)]),
                    Call::AddressTaken { function, prototype } => {
                        (1, [of(function), text(prototype)?])
                    }
                    Call::Indirect { caller, prototype } => (2, [of(caller), text(prototype)?]),
                    Call::MayReach { caller, callee } => (3, [of(caller), of(callee)]),
                    _ => continue,
                };
                // of several calls each counts
                if seen.insert((list, row)) || list % 2 == 0 {
                    lists.get_mut(list).into_iter().for_each(|list| list.push(row));
                }
            }
        }
        Ok(super::graph::lists(&lists))
    }
}

/// Puts objects together that were read and whose symbols are resolved.
pub(super) fn join(
    sm: u32,
    objects: Vec<Object<'_>>,
    entities: Entities<'_>,
) -> Result<LinkedCubin, LinkErrors> {
    let calls = Calls::read(&objects, &entities, sm, &[])?;
    let state = State::new(sm, Rc::from(objects), entities, calls);
    let (bytes, mercury) = state.relocatable()?;
    Ok(LinkedCubin { bytes, unbounded: Vec::new(), mercury, functions: Vec::new() })
}
