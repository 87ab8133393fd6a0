//! Relocations of the Mercury form of code, variables and unwind tables: resolved or taken over as those of the program are.

use super::calls;
use super::entity::{Kind, SYMBOL_OF_TEXT};
use super::error::LinkError;
use super::mercury_object::{literals_of, mercury_symbols};
use super::object::{Object, Role, Section};
use super::out::{Class, Info, Link, Meaning, Out, OutId, OutRecord};
use super::state::State;
use crate::mercury::{
    R_MERCURY_8_0, R_MERCURY_ABS_PROG_REL64, R_MERCURY_ABS32, R_MERCURY_ABS32_HI,
    R_MERCURY_ABS32_LO, R_MERCURY_ABS64, R_MERCURY_G64, R_MERCURY_UNIFIED, R_MERCURY_UNIFIED_8_0,
    R_MERCURY_UNIFIED_8_56, R_MERCURY_UNIFIED_32, R_MERCURY_UNIFIED32_HI, R_MERCURY_UNIFIED32_LO,
    R_MERCURY_UNUSED_CLEAR64,
};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use elf_core::names::{
    SHF_CUDA_MERCURY, SHT_CUDA_CAPMERC, SHT_CUDA_GLOBAL_INIT, SHT_CUDA_MERCURY_CONSTANT_OPT,
    SHT_CUDA_MERCURY_RELA, SHT_PROGBITS, SHT_RELA,
};
use elf_core::{Record, SectionHeader};

/// The unwind table.
pub(super) const FRAME: &[u8] = b".nv.merc.debug_frame";
/// `SHF_INFO_LINK` and Mercury.
pub(super) const FLAGS_WITH_INFO: u64 = 0x40 | SHF_CUDA_MERCURY;

/// Sections of the program and what stands for them in Mercury.
pub(super) type Forms = BTreeMap<OutId, OutId>;

/// Where an object's section of debug information in the Mercury form is put.
pub(super) type Debug = BTreeMap<(usize, u32), (OutId, u64)>;

/// Debug information in the Mercury form that is linked: unwind tables and line numbers; text of PTX, and names of functions that
/// were inlined, have the bytes of the program's.
const TABLES: [&[u8]; 3] = [FRAME, b".nv.merc.debug_line", b".nv.merc.nv_debug_line_sass"];
const PTX_TEXT: &[u8] = b".nv.merc.nv_debug_ptx_txt.";
const STRINGS: &[u8] = b".nv.merc.debug_str";

/// Whether a section of debug information of this name is linked.
pub(super) fn is_linked(name: &[u8]) -> bool {
    TABLES.contains(&name) || has_the_programs(name)
}

/// Whether a section has the bytes of the program's.
fn has_the_programs(name: &[u8]) -> bool {
    name.starts_with(PTX_TEXT) || name == STRINGS
}

impl State<'_> {
    /// Takes unwind tables and line numbers of all objects whole, those of functions that are dropped too.
    pub(super) fn take_mercury_debug(&mut self, forms: &mut Forms) -> Debug {
        let mut places = Debug::new();
        for object in Rc::clone(&self.objects).iter() {
            for (number, section) in object.with_type(SHT_PROGBITS) {
                let name = section.name.as_bytes();
                let own = self.out_of(name.strip_prefix(b".nv.merc").unwrap_or_default());
                let known = self.out_of(name);
                let out = known.unwrap_or_else(|| {
                    let shares = own.filter(|_| has_the_programs(name));
                    let out = Out::new(name, Class::Mercury, SHT_PROGBITS, 1);
                    self.outs.push(Out { flags: SHF_CUDA_MERCURY, shares, ..out })
                });
                forms.extend(own.map(|own| (own, out)));
                if self.outs[out].shares.is_none() {
                    let base = self.outs[out].append(section.data, section.header.alignment);
                    places.insert((object.index, number), (out, base));
                }
            }
        }
        places
    }

    fn out_of(&self, name: &[u8]) -> Option<OutId> {
        self.outs.iter().find(|(_, out)| out.name == name).map(|(id, _)| id)
    }

    /// Resolves or takes over the records of all objects: for each section of the program's records one.
    pub(super) fn take_mercury_records(
        &mut self,
        forms: &Forms,
        debug: &Debug,
    ) -> Result<Vec<(OutId, Vec<OutRecord>)>, LinkError> {
        let mut lists: BTreeMap<OutId, Vec<OutRecord>> = BTreeMap::new();
        for object in Rc::clone(&self.objects).iter() {
            for (_, section) in object.with_type(SHT_CUDA_MERCURY_RELA) {
                let header = SectionHeader { r#type: SHT_RELA, ..section.header };
                let rows = object.cubin.file().relocations(&header);
                let rows = rows.map_err(LinkError::damaged(object.index))?;
                let rows: Vec<_> = rows.into_iter().flat_map(|rows| rows.iter()).collect();
                let Some(target) = object.section(section.header.info) else { continue };
                if target.header.r#type == SHT_CUDA_MERCURY_CONSTANT_OPT {
                    let target = section.header.info;
                    self.mercury_literal_records(object, target, forms, &rows, &mut lists)?;
                } else if target.header.r#type != SHT_PROGBITS {
                    self.mercury_records_of(object, target, forms, &rows, &mut lists)?;
                } else if let Some(&place) = debug.get(&(object.index, section.header.info)) {
                    let list = lists.entry(place.0).or_default();
                    for record in rows {
                        list.extend(self.mercury_debug_record(object, place, &record));
                    }
                }
            }
        }
        let mut made = Vec::new();
        for (own, _, _) in &self.records {
            let Some(&form) = forms.get(own) else { continue };
            let mut list = lists.remove(&form).unwrap_or_default();
            list.reverse(); // the last object's come first
            // of code, which is `.nv.capmerc.text.F` there, as the records of machine code
            let form_name = self.outs[form].name.strip_prefix(b".nv.merc");
            let name = form_name.unwrap_or(&self.outs[*own].name);
            let name = [b".nv.merc.rela", name].concat();
            let out = self.outs.push(Out {
                flags: FLAGS_WITH_INFO,
                entry_size: 24,
                link: Link::MercurySymbols,
                info: Info::Section(form),
                ..Out::new(&name, Class::Mercury, SHT_CUDA_MERCURY_RELA, 8)
            });
            made.push((out, list));
        }
        Ok(made)
    }

    /// Those of the code or variables in section `target` of an object, for the section of the program that these go to.
    fn mercury_records_of(
        &self,
        object: &Object<'_>,
        target: &Section<'_>,
        forms: &Forms,
        rows: &[Record],
        lists: &mut BTreeMap<OutId, Vec<OutRecord>>,
    ) -> Result<(), LinkError> {
        let first = |role| object.with_role(role).next().map(|(number, _)| number);
        let own = match target.header.r#type {
            SHT_CUDA_CAPMERC => {
                let id = object.entity(target.header.info & SYMBOL_OF_TEXT);
                let id = id.filter(|&id| self.is_here(id, object.index));
                id.and_then(|id| self.entities[id].place?.section)
            }
            SHT_CUDA_GLOBAL_INIT => first(Role::Initialized),
            _ => first(Role::Constants),
        };
        let Some(own) = own else { return Ok(()) };
        let Some(&(out, start)) = self.places.get(&(object.index, own)) else { return Ok(()) };
        let Some(&form) = forms.get(&out) else { return Ok(()) };
        let lost = self.lost_variables(object, own);
        let list = lists.entry(form).or_default();
        for record in rows.iter().filter(|row| !lost.iter().any(|room| room.contains(&row.offset)))
        {
            let Some(r#type) = self.mercury_fate(object, record) else { continue };
            if let Some((symbol, addend)) = self.meaning(object, own, record)? {
                let offset = record.offset.wrapping_add(start);
                list.push(OutRecord { offset, r#type, symbol, addend });
            }
        }
        Ok(())
    }

    /// Takes the records of a function's literals for all banks that these are in.
    fn mercury_literal_records(
        &self,
        object: &Object<'_>,
        target: u32,
        forms: &Forms,
        rows: &[Record],
        lists: &mut BTreeMap<OutId, Vec<OutRecord>>,
    ) -> Result<(), LinkError> {
        let number = |function| Some(literals_of(object, function)?.0);
        let parts = self.literal_parts.iter().filter(|(_, function, _)| {
            self.is_here(*function, object.index) && number(*function) == Some(target)
        });
        let tables = mercury_symbols(object).unwrap_or_default().into_iter();
        let tables = tables.filter(|one| u32::from(one.shndx) == target);
        let starts: Vec<_> = tables.map(|one| one.value).collect();
        let table_of = |offset| starts.iter().filter(|start| **start <= offset).max();
        let mut rows = rows.to_vec();
        // nvlink has the last table first, and turns each around
        rows.sort_by_key(|row| (table_of(row.offset), Reverse(row.offset)));
        for (bank, _, start) in parts {
            let Some(form) = forms.get(bank) else { continue };
            for record in &rows {
                let Some(r#type) = self.mercury_fate(object, record) else { continue };
                if let Some((symbol, addend)) = self.meaning(object, target, record)? {
                    let offset = record.offset.wrapping_add(*start);
                    let record = OutRecord { offset, r#type, symbol, addend };
                    lists.entry(*form).or_default().push(record);
                }
            }
        }
        Ok(())
    }

    /// Resolves a record of an unwind table or of line numbers, or gives it as it stays.
    fn mercury_debug_record(
        &mut self,
        object: &Object<'_>,
        (table, base): (OutId, u64),
        record: &Record,
    ) -> Option<OutRecord> {
        let offset = record.offset.wrapping_add(base);
        match (record.r#type, object.entity(record.symbol)) {
            (R_MERCURY_UNUSED_CLEAR64, Some(id)) => {
                let own = calls::defined_in(&self.entities, id, object.index);
                if own && !self.is_here(id, object.index) {
                    self.put(table, offset, 0);
                }
                None
            }
            (R_MERCURY_ABS64 | R_MERCURY_ABS_PROG_REL64, Some(id))
                if self.is_unwound(id, object.index) =>
            {
                let (symbol, addend) = (Meaning::Entity(id), record.addend);
                Some(OutRecord { offset, r#type: record.r#type, symbol, addend })
            }
            // the place of another entry
            (R_MERCURY_ABS64, None) => {
                let addend = record.addend.unwrap_or(0).cast_unsigned();
                self.put(table, offset, addend.wrapping_add(base));
                None
            }
            // names of inlined functions
            (R_MERCURY_ABS32, None) => {
                let place = object.section_of(record.symbol);
                let place = place.and_then(|section| self.places.get(&(object.index, section)));
                let start = place.map_or(0, |place| place.1);
                let value = record.addend.unwrap_or(0).cast_unsigned().wrapping_add(start);
                let at = usize::try_from(offset).ok();
                let field = at.and_then(|at| self.outs[table].data.get_mut(at..));
                *field?.first_chunk_mut()? = (value as u32).to_le_bytes();
                None
            }
            _ => None,
        }
    }

    /// The type of a record that stays.
    fn mercury_fate(&self, object: &Object<'_>, record: &Record) -> Option<u32> {
        let r#type = record.r#type;
        if let Some(id) = object.entity(record.symbol) {
            let is_offset = self.entities[id].name == "__UFT_OFFSET" && r#type == R_MERCURY_ABS64;
            let is_drivers =
                matches!(r#type, R_MERCURY_G64 | R_MERCURY_ABS32_LO | R_MERCURY_ABS32_HI);
            // what the system has of shared memory a driver knows the places of
            let is_placed = self.is_placed(id) && self.entities[id].kind != Kind::Reserved;
            if self.is_gone(id) || is_offset || is_placed && !is_drivers {
                return None;
            }
        }
        Some(match r#type {
            R_MERCURY_UNIFIED => R_MERCURY_ABS64,
            R_MERCURY_UNIFIED_32 => R_MERCURY_ABS32,
            R_MERCURY_UNIFIED_8_0..=R_MERCURY_UNIFIED_8_56 => {
                R_MERCURY_8_0.wrapping_add(r#type.wrapping_sub(R_MERCURY_UNIFIED_8_0))
            }
            R_MERCURY_UNIFIED32_LO => R_MERCURY_ABS32_LO,
            R_MERCURY_UNIFIED32_HI => R_MERCURY_ABS32_HI,
            other => other,
        })
    }
}
