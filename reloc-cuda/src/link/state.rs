//! What is known while objects are linked.

use super::arena::Arena;
use super::calls::{Calls, defined_in, function_of};
use super::entity::{Entities, EntityId, Kind};
use super::error::{LinkError, LinkErrorKind};
use super::linked::LinkedMercury;
use super::object::{BARRIERS, Object, Role};
use super::out::{Class, Info, Out, OutId, OutRecord, Outs};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;
use elf_core::names::{SHT_NOBITS, SHT_PROGBITS, STB_WEAK, STT_FUNC, STT_SECTION};

/// A common variable.
pub(super) struct Common {
    pub(super) id: EntityId,
    alignment: u64,
    size: u64,
}

/// A link: objects, what their symbols mean, and the sections made so far.
pub(super) struct State<'a> {
    pub(super) sm: u32,
    pub(super) objects: Rc<[Object<'a>]>,
    pub(super) entities: Entities<'a>,
    pub(super) calls: Calls<'a>,
    pub(super) outs: Outs,
    /// Where the section of an object went: the output section, and the offset in it.
    pub(super) places: BTreeMap<(usize, u32), (OutId, u64)>,
    /// Functions in the order of their code.
    pub(super) texts: Vec<(EntityId, OutId)>,
    /// Values of shared variables, by variable and function that uses it.
    pub(super) shared: BTreeMap<(EntityId, EntityId), u64>,
    /// Shared memory of kernels: its section, and whether that is more than arrays of the launch at its start.
    pub(super) shared_sections: BTreeMap<EntityId, (OutId, bool)>,
    /// `.nv_debug.shared`, if there is one.
    pub(super) free_shared: Option<OutId>,
    /// Where literals of a function begin in bank 2.
    pub(super) literals: BTreeMap<EntityId, u64>,
    /// Banks with the functions whose literals are there, and where these begin.
    pub(super) literal_parts: Vec<(OutId, EntityId, u64)>,
    /// Where the words of textures are in parameter banks.
    pub(super) slots: BTreeMap<EntityId, u64>,
    /// Kernels whose banks have these words.
    pub(super) texture_users: BTreeSet<EntityId>,
    /// Of sections that were not taken whole, by object and section: the parts that were.
    pub(super) spans: BTreeMap<(usize, u32), Vec<super::span::Span>>,
    /// Records by target, those without addends and those with, in order of first appearance.
    pub(super) records: Vec<(OutId, bool, Vec<OutRecord>)>,
    /// Those that stay even if they are empty.
    pub(super) kept_lists: BTreeSet<(OutId, bool)>,
    pub(super) mercury: LinkedMercury,
}

impl<'a> State<'a> {
    pub(super) fn new(
        sm: u32,
        objects: Rc<[Object<'a>]>,
        entities: Entities<'a>,
        calls: Calls<'a>,
    ) -> Self {
        Self {
            sm,
            objects,
            entities,
            calls,
            outs: Arena::new(),
            places: BTreeMap::new(),
            texts: Vec::new(),
            shared: BTreeMap::new(),
            shared_sections: BTreeMap::new(),
            free_shared: None,
            literals: BTreeMap::new(),
            literal_parts: Vec::new(),
            slots: BTreeMap::new(),
            texture_users: BTreeSet::new(),
            spans: BTreeMap::new(),
            records: Vec::new(),
            kept_lists: BTreeSet::new(),
            mercury: LinkedMercury::None,
        }
    }

    /// Whether a function's code is that of this object, and stays.
    pub(super) fn is_here(&self, id: EntityId, object: usize) -> bool {
        defined_in(&self.entities, id, object) && self.calls.kept.contains(&id)
    }

    /// The function whose code, if it stays, is section `text` of an object.
    pub(super) fn function_here(&self, object: &Object<'a>, text: u32) -> Option<EntityId> {
        function_of(object, text).filter(|&id| self.is_here(id, object.index))
    }

    pub(super) fn is_function(&self, id: EntityId) -> bool {
        self.entities[id].kind == Kind::Function
    }

    /// Adds a record to those of its section.
    pub(super) fn keep_record(&mut self, out: OutId, record: OutRecord) {
        let list = self.record_list(out, record.addend.is_some());
        if let Some((_, _, records)) = self.records.get_mut(list) {
            records.push(record);
        }
    }

    /// The position of the list of records of a section, made if need be.
    pub(super) fn record_list(&mut self, out: OutId, with: bool) -> usize {
        let found = self.records.iter().position(|list| list.0 == out && list.1 == with);
        found.unwrap_or_else(|| {
            self.records.push((out, with, Vec::new()));
            self.records.len().saturating_sub(1)
        })
    }

    /// Takes the code of all functions that stay, in the order of their symbols.
    pub(super) fn take_code(&mut self) {
        for object in Rc::clone(&self.objects).iter() {
            for (index, (symbol, _)) in (0u32..).zip(&object.symbols) {
                let Some(id) = object.entity(index).filter(|_| symbol.r#type() == STT_FUNC) else {
                    continue;
                };
                // a function that took the place of a weak one stands where that did
                let entity = &self.entities[id];
                let here = entity.origin == Some(object.index)
                    && object.section_of(index).is_some()
                    && self.calls.kept.contains(&id)
                    && !entity.inner;
                let Some(place) = entity.place.filter(|_| here) else { continue };
                let Some((number, source)) = place.section.zip(self.objects.get(place.object))
                else {
                    continue;
                };
                let Some(section) = source.section(number) else { continue };
                let header = section.header;
                let name = section.name.as_bytes();
                let out = self.outs.push(Out {
                    flags: header.flags.bits() & !BARRIERS,
                    link: super::out::Link::Symbols,
                    info: Info::Symbol(id, header.info & !super::entity::SYMBOL_OF_TEXT),
                    data: section.data.to_vec(),
                    ..Out::new(name, Class::Text, SHT_PROGBITS, header.alignment)
                });
                self.places.insert((place.object, number), (out, 0));
                self.texts.push((id, out));
            }
        }
    }

    /// Puts variables of all objects together: each object's sections whole, in order.
    pub(super) fn take_variables(&mut self) {
        for (role, class, r#type) in [
            (Role::Initialized, Class::Initialized, SHT_PROGBITS),
            (Role::Zeroed, Class::NoBits, SHT_NOBITS),
            (Role::Constants, Class::Banks, SHT_PROGBITS),
        ] {
            let mut out = None;
            for object in Rc::clone(&self.objects).iter() {
                for (number, section) in object.with_role(role) {
                    if role == Role::Zeroed && self.is_lost(object, number) {
                        continue;
                    }
                    let header = section.header;
                    let id = *out.get_or_insert_with(|| {
                        self.outs.push(Out {
                            flags: header.flags.bits(),
                            ..Out::new(section.name.as_bytes(), class, r#type, 1)
                        })
                    });
                    let offset = match role {
                        Role::Zeroed => self.outs[id].reserve(header.size, header.alignment),
                        _ => self.outs[id].append(section.data, header.alignment),
                    };
                    self.places.insert((object.index, number), (id, offset));
                }
            }
            if role == Role::Zeroed {
                self.take_common(out);
            }
        }
        let ids: Vec<_> = self.entities.iter().map(|(id, _)| id).collect();
        for id in ids {
            let entity = &self.entities[id];
            let section = entity.place.and_then(|place| Some((place.object, place.section?)));
            if let Some((_, offset)) = section.and_then(|section| self.places.get(&section)) {
                let value = entity.symbol.value.wrapping_add(*offset);
                self.entities[id].value = value;
            }
        }
    }

    /// Where in a section of an object variables are that gave way to those of another object.
    pub(super) fn lost_variables(&self, object: &Object<'a>, section: u32) -> Vec<Range<u64>> {
        let symbols = (0u32..).zip(&object.symbols);
        let lost = symbols.filter(|(index, _)| {
            object.section_of(*index) == Some(section)
                && object.entity(*index).is_some_and(|id| {
                    let entity = &self.entities[id];
                    entity.kind == Kind::Variable
                        && entity.place.is_some_and(|place| place.object != object.index)
                })
        });
        let rooms =
            lost.map(|(_, (symbol, _))| symbol.value..symbol.value.saturating_add(symbol.size));
        rooms.collect()
    }

    /// Whether all variables of a section gave way to those of objects before it: what gives way later has its room already.
    pub(super) fn is_lost(&self, object: &Object<'a>, section: u32) -> bool {
        let variables = (0u32..).zip(&object.symbols).filter(|(index, (symbol, _))| {
            object.section_of(*index) == Some(section) && symbol.r#type() != STT_SECTION
        });
        let mut places = variables.map(|(index, _)| {
            let entity = object.entity(index).map(|id| &self.entities[id]);
            let variable = entity.filter(|entity| entity.kind == Kind::Variable);
            variable.and_then(|entity| entity.place)
        });
        let gave_way = |place: Option<super::entity::Place>| {
            place.is_some_and(|one| one.object < object.index)
        };
        places.next().is_some_and(gave_way) && places.all(gave_way)
    }

    /// Common variables as they were first defined.
    pub(super) fn commons(&self) -> Vec<Common> {
        let variables = self.entities.iter().filter(|(_, one)| one.kind == Kind::Variable);
        let common = variables.filter_map(|(id, entity)| {
            let object = self.objects.get(entity.place.and(entity.origin)?)?;
            let index = object.entities.iter().position(|&known| known == Some(id));
            let common = Common { id, alignment: entity.common?, size: entity.symbol.size };
            Some(((object.index, index), common))
        });
        let mut common: Vec<_> = common.collect();
        common.sort_by_key(|one| one.0);
        common.into_iter().map(|(_, common)| common).collect()
    }

    /// Gives common variables their room behind the others, as nvlink does: the last one defined first.
    fn take_common(&mut self, mut out: Option<OutId>) {
        for Common { id, alignment, size } in self.commons().into_iter().rev() {
            let section = *out.get_or_insert_with(|| {
                self.outs.push(Out {
                    flags: 3, // SHF_WRITE | SHF_ALLOC
                    ..Out::new(b".nv.global", Class::NoBits, SHT_NOBITS, 1)
                })
            });
            self.entities[id].value = self.outs[section].reserve(size, alignment);
        }
    }

    /// Copies the parameter banks of kernels that stay.
    ///
    /// # Errors
    /// If two weak kernels of one name have banks of different size.
    pub(super) fn take_parameters(&mut self) -> Result<(), LinkError> {
        self.check_parameters()?;
        let class = if self.sm >= 100 { Class::LateBanks } else { Class::Banks };
        for object in Rc::clone(&self.objects).iter() {
            for (number, section) in object.with_role(Role::Parameters) {
                let text = section.header.info;
                if self.function_here(object, text).is_none() {
                    continue;
                }
                let Some(&(text, _)) = self.places.get(&(object.index, text)) else { continue };
                let out = self.outs.push(Out {
                    flags: section.header.flags.bits(),
                    info: Info::Section(text),
                    data: section.data.to_vec(),
                    ..Out::new(
                        section.name.as_bytes(),
                        class,
                        SHT_PROGBITS,
                        section.header.alignment,
                    )
                });
                self.places.insert((object.index, number), (out, 0));
            }
        }
        Ok(())
    }

    /// Checks that weak kernels of one name have parameters of one size.
    fn check_parameters(&self) -> Result<(), LinkError> {
        let mut sizes = BTreeMap::new();
        for object in self.objects.iter() {
            for (_, section) in object.with_role(Role::Parameters) {
                let Some(id) = function_of(object, section.header.info) else { continue };
                let size = *sizes.entry(id).or_insert(section.header.size);
                let entity = &self.entities[id];
                if size != section.header.size && entity.symbol.binding() == STB_WEAK {
                    let kind = LinkErrorKind::Parameters(entity.name.to_string());
                    return Err(LinkError::new(object.index, kind));
                }
            }
        }
        Ok(())
    }

    /// Checks that all constants fit their bank.
    pub(super) fn check_constants(&self) -> Result<(), LinkError> {
        let limit = 0x1_0000;
        let bank = self.outs.iter().find(|(_, out)| out.name == b".nv.constant3");
        match bank.map(|(_, out)| out.size()).filter(|&size| size > limit) {
            Some(size) => Err(LinkError::new(0, LinkErrorKind::ConstantsTooLarge { size, limit })),
            None => Ok(()),
        }
    }
}
