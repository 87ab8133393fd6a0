//! Relocations: those that a linker resolves are written into the code, the others go on to the driver.

use super::entity::{EntityId, Kind};
use super::error::{LinkError, LinkErrorKind, LinkErrors};
use super::object::{Object, Role};
use super::out::{Meaning, OutId, OutRecord};
use super::state::State;
use crate::cuda::{R_CUDA_ABS56_16_34, R_CUDA_YIELD_CLEAR_PRED4_87, R_CUDA_YIELD_OPCODE9_0};
use crate::{Cuda, Resolver, row, without_unified_table};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use elf_core::names::{SHT_RELA, STT_SECTION};
use elf_core::{Query, Record, SectionMut, apply};

/// The address of an array of the launch in a function that no kernel is known to reach, and the size of a bank that is
/// not known.
const NOWHERE: u64 = u64::MAX;

/// What becomes of a relocation.
pub(super) enum Fate {
    /// It is resolved here.
    Apply,
    /// It goes without a trace.
    Drop,
    /// It stays, with this type.
    Keep(u32),
}

impl State<'_> {
    /// Resolves or takes over the relocations of code, banks and variables.
    pub(super) fn relocate(&mut self) -> Result<(), LinkErrors> {
        self.check_undefined()?;
        let objects = Rc::clone(&self.objects);
        objects.iter().try_for_each(|object| self.relocate_object(object))?;
        // those of literals stand behind all others
        for (out, with) in self.kept_lists.clone() {
            self.record_list(out, with);
        }
        let kept = &self.kept_lists;
        self.records.retain(|(out, with, list)| !list.is_empty() || kept.contains(&(*out, *with)));
        // the last object's records come first
        for (out, _, records) in &mut self.records {
            records.reverse();
            if self.sm >= 100 && super::lines::is_lines(&self.outs[*out].name) {
                records.sort_by_key(|record| record.offset);
            }
        }
        Ok(())
    }

    fn relocate_object(&mut self, object: &Object<'_>) -> Result<(), LinkError> {
        for (_, section) in object.with_role(Role::Relocations) {
            let target = section.header.info;
            let role = object.section(target).map(|section| section.role);
            if let Some(&(out, _)) = self.places.get(&(object.index, target)) {
                self.record_list(out, section.header.r#type == SHT_RELA);
            }
            if role == Some(Role::Frame) {
                self.relocate_frame(object, section)?;
                continue;
            }
            if role == Some(Role::Debug) {
                self.relocate_debug(object, section)?;
                continue;
            }
            let rows = object.cubin.file().relocations(&section.header);
            let rows = rows.map_err(LinkError::damaged(object.index))?;
            let Some(&(out, base)) = self.places.get(&(object.index, target)) else {
                // literals of device functions are in several banks
                let first = rows.and_then(|rows| rows.iter().next());
                match first.filter(|_| role == Some(Role::Literals)) {
                    Some(record) => return Err(refused(object, target, &record)),
                    None => continue,
                }
            };
            let lost = match role {
                Some(Role::Initialized | Role::Constants) => self.lost_variables(object, target),
                _ => Vec::new(),
            };
            for record in rows.into_iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()) {
                if !lost.iter().any(|room| room.contains(&record.offset)) {
                    self.relocate_record(object, target, (out, base), record)?;
                }
            }
        }
        Ok(())
    }

    fn relocate_record(
        &mut self,
        object: &Object<'_>,
        target: u32,
        (out, base): (OutId, u64),
        record: Record,
    ) -> Result<(), LinkError> {
        let function = super::calls::function_of(object, target);
        let placed = Record { offset: record.offset.wrapping_add(base), ..record };
        match self.fate(object, target, &record)? {
            Fate::Drop => {}
            Fate::Apply => {
                self.apply_to(object, out, function, &placed)?;
                let entity = object.entity(record.symbol).map(|id| self.entities[id].kind);
                // nvlink keeps the section, if only empty
                if self.sm >= 100 && entity == Some(Kind::Shared) {
                    self.kept_lists.insert((out, record.addend.is_some()));
                }
            }
            Fate::Keep(r#type) => {
                let Some((symbol, addend)) = self.meaning(object, target, &placed)? else {
                    return Ok(());
                };
                let record = OutRecord { offset: placed.offset, r#type, symbol, addend };
                self.keep_record(out, record);
            }
        }
        Ok(())
    }

    /// What becomes of a relocation, by its type and by what it names.
    pub(super) fn fate(
        &self,
        object: &Object<'_>,
        target: u32,
        record: &Record,
    ) -> Result<Fate, LinkError> {
        if matches!(record.r#type, R_CUDA_YIELD_OPCODE9_0 | R_CUDA_YIELD_CLEAR_PRED4_87) {
            return Ok(Fate::Drop);
        }
        let Some(kind) = row(record.r#type) else {
            return Err(refused(object, target, record));
        };
        if let Some(id) = object.entity(record.symbol) {
            let entity = &self.entities[id];
            if self.is_gone(id) {
                return Ok(Fate::Drop);
            }
            if record.r#type == R_CUDA_ABS56_16_34 && entity.name == "__UFT_OFFSET" {
                return Ok(Fate::Drop);
            }
            // a generic pointer to a constant is the driver's, its place in the bank is known here
            if self.is_placed(id) && kind.resolver != Resolver::Driver {
                return Ok(Fate::Apply);
            }
        }
        if kind.resolver == Resolver::Linker {
            return Ok(Fate::Apply);
        }
        Ok(Fate::Keep(without_unified_table(record.r#type).unwrap_or(record.r#type)))
    }

    /// Whether a function is dropped.
    pub(super) fn is_gone(&self, id: EntityId) -> bool {
        let entity = &self.entities[id];
        self.is_function(id) && entity.place.is_some() && !self.calls.kept.contains(&id)
    }

    fn is_shared(&self, id: EntityId) -> bool {
        let entity = &self.entities[id];
        match entity.kind {
            Kind::Shared => true,
            Kind::Reserved => entity.place.is_some(),
            _ => false,
        }
    }

    /// Whether a linker knows what a name is worth: in shared memory, or in a bank, or a bank's size.
    pub(super) fn is_placed(&self, id: EntityId) -> bool {
        let entity = &self.entities[id];
        let in_bank = entity.place.is_some_and(|place| self.is_bank(&place));
        self.is_shared(id) || entity.kind == Kind::InBank || in_bank || entity.is_bank_size()
    }

    /// Whether a place is in bank 3.
    fn is_bank(&self, place: &super::entity::Place) -> bool {
        let object = self.objects.get(place.object);
        let section = place.section.and_then(|section| object?.section(section));
        section.is_some_and(|section| section.role == Role::Constants)
    }

    /// Looks for what nobody defines: variables, used or not, functions whose address is taken, and what relocations
    /// name. Code that is dropped may call what does not exist, no more.
    fn check_undefined(&self) -> Result<(), LinkErrors> {
        let (mut errors, mut seen) = (Vec::new(), BTreeSet::new());
        for object in self.objects.iter() {
            for (_, section) in object.with_role(Role::Relocations) {
                let target = section.header.info;
                let role = object.section(target).map(|section| section.role);
                if matches!(role, Some(Role::Frame | Role::Debug)) {
                    continue;
                }
                let function = super::calls::function_of(object, target);
                let dropped = function.is_some_and(|id| !self.is_here(id, object.index));
                let rows = object.cubin.file().relocations(&section.header);
                let rows = rows.map_err(LinkError::damaged(object.index))?;
                for record in rows.into_iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()) {
                    let Some(id) = object.entity(record.symbol) else { continue };
                    let entity = &self.entities[id];
                    let missing = entity.place.is_none() && !self.may_stay_undefined(id);
                    // what the compiler names for itself is as a call
                    let is_excused =
                        self.is_function(id) || entity.name.as_bytes().starts_with(b".nv.");
                    if missing && !(dropped && is_excused) && seen.insert(id) {
                        let kind = LinkErrorKind::Undefined(entity.name.to_string());
                        errors.push(LinkError::new(object.index, kind));
                    }
                }
            }
        }
        let taken: BTreeSet<_> = self.calls.taken.iter().map(|row| row.0).collect();
        for (id, entity) in self.entities.iter().filter(|(_, entity)| entity.place.is_none()) {
            let is_asked = taken.contains(&id) || entity.is_object();
            if is_asked && !self.may_stay_undefined(id) && seen.insert(id) {
                let kind = LinkErrorKind::Undefined(entity.name.to_string());
                errors.push(LinkError::new(entity.first, kind));
            }
        }
        LinkErrors::none_of(errors)
    }

    /// Functions of the driver have no definition; weak variables need none, nor names of the tables of unified
    /// functions and data, which are not weak any more behind `nvlink -r`.
    fn may_stay_undefined(&self, id: EntityId) -> bool {
        let entity = &self.entities[id];
        match entity.kind {
            // the launch gives the size of an array without one
            Kind::Shared => entity.symbol.size == 0,
            Kind::Reserved => true,
            Kind::Function => super::driver::has(entity.name.as_bytes()),
            _ => {
                entity.symbol.binding() == elf_core::names::STB_WEAK
                    || [&b"__UFT"[..], b"__UDT"]
                        .iter()
                        .any(|table| entity.name.as_bytes().starts_with(table))
                    || entity.is_bank_size()
            }
        }
    }

    /// Writes a resolved field.
    fn apply_to(
        &mut self,
        object: &Object<'_>,
        out: OutId,
        function: Option<EntityId>,
        record: &Record,
    ) -> Result<(), LinkError> {
        let mut bytes = core::mem::take(&mut self.outs[out].data);
        let mut place = SectionMut { bytes: &mut bytes, address: 0, big_endian: false };
        let answer = |query: &Query| self.answer(object, function, query);
        let done = apply::<Cuda>(record, &mut place, &answer);
        self.outs[out].data = bytes;
        done.map_err(|error| {
            let section = String::from_utf8_lossy(&self.outs[out].name).into_owned();
            LinkError::new(object.index, LinkErrorKind::Apply { section, error })
        })
    }

    /// What a symbol is worth: its place in shared memory or in a bank, and the bank's number.
    ///
    /// An array of the launch begins where a kernel's variables end: that is nowhere for a function that no kernel is
    /// known to reach, as nvlink has it, so that a use of it is a fault. A field gets all ones and its addend, as wide
    /// as it is.
    pub(super) fn answer(
        &self,
        object: &Object<'_>,
        user: Option<EntityId>,
        query: &Query,
    ) -> Option<u64> {
        let id = object.entity(query.symbol);
        if let Some(slot) = id.and_then(|id| self.slots.get(&id)) {
            return match query.role {
                elf_core::Role::Address => Some(*slot),
                elf_core::Role::Bank => Some(0),
                _ => None,
            };
        }
        let entity = id.map(|id| &self.entities[id]);
        let section = match entity {
            Some(entity) => entity
                .place
                .and_then(|place| self.objects.get(place.object)?.section(place.section?)),
            None => object.section(object.section_of(query.symbol)?),
        };
        let role = section.map(|section| section.role);
        match query.role {
            elf_core::Role::Address => match (entity, role) {
                (Some(entity), _) if entity.kind == Kind::Shared => {
                    let placed = self.shared.get(&(id?, user?)).copied();
                    Some(placed.unwrap_or(if entity.place.is_none() { NOWHERE } else { 0 }))
                }
                (_, Some(Role::Literals)) => {
                    let owner = super::calls::function_of(object, section?.header.info)?;
                    let offset = self.literals.get(&owner)?;
                    Some(offset.wrapping_add(entity.map_or(0, |entity| entity.symbol.value)))
                }
                (Some(entity), _) if entity.is_bank_size() => Some(NOWHERE),
                (Some(entity), _) => Some(entity.value),
                (None, _) => {
                    let section = object.section_of(query.symbol)?;
                    self.places.get(&(object.index, section)).map(|place| place.1)
                }
            },
            elf_core::Role::Bank => match role? {
                Role::Parameters => Some(0),
                Role::Literals => Some(2),
                Role::Constants => Some(3),
                _ => None,
            },
            elf_core::Role::Size => entity.map(|entity| entity.symbol.size),
            _ => None,
        }
    }

    /// The function that has the code: of a second name the first, which records of linked files name, as nvlink's do.
    fn real_name(&self, id: EntityId) -> EntityId {
        let entity = &self.entities[id];
        let is_second = entity.is_alias() && entity.symbol.value == 0;
        let owner = is_second.then(|| super::calls::owner_of(&self.objects, entity)).flatten();
        owner.unwrap_or(id)
    }

    /// What a relocation that stays names, and its addend. Symbols of sections that are put together with others' count from
    /// where theirs begins.
    pub(super) fn meaning(
        &self,
        object: &Object<'_>,
        target: u32,
        record: &Record,
    ) -> Result<Option<(Meaning, Option<i64>)>, LinkError> {
        if let Some(id) = object.entity(record.symbol) {
            return Ok(Some((Meaning::Entity(self.real_name(id)), record.addend)));
        }
        let is_section = object
            .symbols
            .get(record.symbol as usize)
            .is_some_and(|(symbol, _)| symbol.r#type() == STT_SECTION);
        let section = object.section_of(record.symbol).filter(|_| is_section);
        let Some(&(out, base)) =
            section.and_then(|section| self.places.get(&(object.index, section)))
        else {
            return Ok(None);
        };
        let addend = match record.addend {
            Some(addend) => Some(addend.wrapping_add(base.cast_signed())),
            None if base == 0 => None,
            None => return Err(refused(object, target, record)),
        };
        Ok(Some((Meaning::Section(out), addend)))
    }

    /// Makes the sections of records.
    pub(super) fn record_sections(&mut self) -> BTreeMap<super::out::OutId, usize> {
        use super::out::{Class, Info, Link, Out};
        use elf_core::names::SHT_REL;
        let mut made = BTreeMap::new();
        for (index, (target, with, list)) in self.records.iter().enumerate() {
            let (prefix, r#type, entry_size) = match with {
                true => (&b".rela"[..], SHT_RELA, 24),
                false => (&b".rel"[..], SHT_REL, 16),
            };
            let name = [prefix, &self.outs[*target].name].concat();
            let out = self.outs.push(Out {
                // nvlink sets SHF_INFO_LINK for all but the slots of textures, and from Mercury for these too
                flags: if self.sm < 100
                    && !list.is_empty()
                    && list.iter().all(|row| self.is_slot(row))
                {
                    0
                } else {
                    0x40
                },
                entry_size,
                link: Link::Symbols,
                info: Info::Section(*target),
                ..Out::new(&name, Class::Relocations, r#type, 8)
            });
            made.insert(out, index);
        }
        made
    }
}

fn refused(object: &Object<'_>, target: u32, record: &Record) -> LinkError {
    let section = object.section(target).map_or_else(Default::default, |one| one.name.to_string());
    let (offset, r#type) = (record.offset, record.r#type);
    LinkError::new(object.index, LinkErrorKind::Relocation { section, offset, r#type })
}
