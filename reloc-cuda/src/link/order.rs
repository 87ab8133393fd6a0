//! The symbol table of the linked file, in nvlink's order.

use super::entity::{EntityId, Kind};
use super::object::{Object, Role};
use super::out::{Class, Meaning, OutId};
use super::state::State;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use elf_core::names::{STB_GLOBAL, STT_CUDA_OBJECT, STT_FUNC, STT_OBJECT, STT_SECTION};

/// A symbol of the linked file.
#[derive(Clone)]
pub(super) struct OutSymbol {
    pub(super) meaning: Option<Meaning>,
    pub(super) name: Vec<u8>,
    pub(super) info: u8,
    pub(super) other: u8,
    pub(super) section: Option<OutId>,
    /// What stands for a section, where there is none: `SHN_UNDEF`, `SHN_COMMON`.
    pub(super) number: u16,
    pub(super) value: u64,
    pub(super) size: u64,
}

impl OutSymbol {
    /// The first symbol of every table.
    pub(super) const fn null() -> Self {
        Self {
            meaning: None,
            name: Vec::new(),
            info: 0,
            other: 0,
            section: None,
            number: 0,
            value: 0,
            size: 0,
        }
    }

    /// The symbol of a section.
    pub(super) fn of_section(id: OutId, name: &[u8]) -> Self {
        Self {
            meaning: Some(Meaning::Section(id)),
            name: name.to_vec(),
            info: STT_SECTION,
            section: Some(id),
            ..Self::null()
        }
    }
}

/// The symbols, and how many local ones come before the first that is not.
pub(super) struct Symbols {
    pub(super) all: Vec<OutSymbol>,
    pub(super) locals: u32,
    /// Sections as they are first needed, those without a symbol too.
    pub(super) needed: Vec<OutId>,
    seen: BTreeSet<Meaning>,
}

impl State<'_> {
    /// All symbols in order.
    pub(super) fn symbols(&self) -> Symbols {
        let mut symbols =
            Symbols { all: Vec::new(), locals: 0, needed: Vec::new(), seen: BTreeSet::new() };
        symbols.all.push(OutSymbol::null());
        self.sections_of(&mut symbols, &[Class::ToolNote, Class::CudaNote]);
        for object in self.objects.iter() {
            self.locals_of(object, &mut symbols);
        }
        self.sections_of(&mut symbols, &[Class::CallGraph]);
        self.sections_of(&mut symbols, &[Class::Prototypes]);
        self.sections_of(&mut symbols, &[Class::Banks]);
        self.common_section(&mut symbols);
        self.sections_of(&mut symbols, &[Class::RelocationActions]);
        symbols.locals = symbols.all.len() as u32;
        for (id, entity) in self.entities.iter() {
            if !entity.local && self.stays(id) {
                self.entity(id, &mut symbols);
            }
        }
        self.sections_of(&mut symbols, &[Class::LateBanks]);
        symbols
    }

    /// Whether a name is in the table of the linked file.
    pub(super) fn stays(&self, id: EntityId) -> bool {
        let entity = &self.entities[id];
        match entity.kind {
            Kind::Function => self.calls.kept.contains(&id) || entity.inner && self.owner_stays(id),
            Kind::Variable => entity.place.is_some() || self.is_recorded(id),
            Kind::Reserved => true,
            Kind::Shared | Kind::InBank => false,
        }
    }

    /// Whether the code that a subroutine is in stays.
    fn owner_stays(&self, id: EntityId) -> bool {
        let place = self.entities[id].place;
        place.is_some_and(|place| {
            place.section.is_some_and(|section| self.places.contains_key(&(place.object, section)))
        })
    }

    fn is_recorded(&self, id: EntityId) -> bool {
        let names = |list: &[super::out::OutRecord]| {
            list.iter().any(|record| record.symbol == Meaning::Entity(id))
        };
        self.records.iter().any(|(_, _, list)| names(list))
    }

    /// The section of zeroed variables, if common ones alone are in it.
    fn common_section(&self, symbols: &mut Symbols) {
        let found = self.outs.iter().find(|(_, out)| out.name == b".nv.global");
        found.into_iter().for_each(|(id, _)| self.section(id, symbols));
    }

    fn sections_of(&self, symbols: &mut Symbols, classes: &[Class]) {
        for (id, _) in self.outs.iter().filter(|(_, out)| classes.contains(&out.class)) {
            self.section(id, symbols);
        }
    }

    fn section(&self, id: OutId, symbols: &mut Symbols) {
        symbols.needed.push(id);
        if symbols.seen.insert(Meaning::Section(id)) {
            let name = &self.outs[id].name;
            // nvlink renames the section, not its symbol
            let renamed = name.strip_prefix(b".nv.constant2.").filter(|_| self.sm >= 100);
            let renamed = renamed.map(|kernel| [b".nv.constant.optimizer.", kernel].concat());
            symbols.all.push(OutSymbol::of_section(id, renamed.as_ref().unwrap_or(name)));
        }
    }

    /// Local symbols of one object, and those of sections that its symbols need first.
    fn locals_of(&self, object: &Object<'_>, symbols: &mut Symbols) {
        let out = |section: u32| self.places.get(&(object.index, section)).map(|place| place.0);
        for (index, (symbol, _)) in (0u32..).zip(&object.symbols) {
            let Some(id) = object.entity(index).filter(|_| symbol.r#type() == STT_FUNC) else {
                continue;
            };
            let entity = &self.entities[id];
            if !self.stays(id) || entity.origin != Some(object.index) {
                continue;
            }
            if entity.local {
                self.entity(id, symbols);
            }
            let place = entity.place.and_then(|place| Some((place.object, place.section?)));
            let text = place.and_then(|place| self.places.get(&place));
            if let Some(&(text, _)) = text.filter(|_| !entity.inner) {
                self.section(text, symbols);
            }
            let shared = self.shared_sections.get(&id);
            if let Some(&(shared, has_size)) = shared {
                symbols.needed.push(shared);
                if has_size || self.sm == 90 {
                    self.section(shared, symbols);
                }
            }
        }
        for local in [true, false] {
            for (index, (symbol, _)) in (0u32..).zip(&object.symbols) {
                let Some(id) = object.entity(index).filter(|_| symbol.r#type() != STT_FUNC) else {
                    continue;
                };
                let entity = &self.entities[id];
                if !local && entity.kind == Kind::Shared {
                    symbols.needed.extend(self.free_shared);
                }
                let here = entity.place.is_some_and(|place| place.object == object.index);
                if entity.local != local || !here {
                    continue;
                }
                self.section_before(object.section_of(index).and_then(out), symbols);
                if local && self.stays(id) {
                    self.entity(id, symbols);
                }
            }
        }
        for (index, section) in (0u32..).zip(&object.sections) {
            let is_late = matches!(section.role, Role::Text | Role::Relocations | Role::Info);
            // the unwind table of a program that never had functions has no symbol
            let is_empty = section.role == Role::Frame && section.data.is_empty();
            if !is_late && !is_empty {
                self.section_before(out(index), symbols);
            }
        }
    }

    /// The symbol of a section, unless it comes at the end.
    fn section_before(&self, section: Option<OutId>, symbols: &mut Symbols) {
        if let Some(id) = section.filter(|&id| self.outs[id].class != Class::LateBanks) {
            self.section(id, symbols);
        }
    }

    fn entity(&self, id: EntityId, symbols: &mut Symbols) {
        if !symbols.seen.insert(Meaning::Entity(id)) {
            return;
        }
        let entity = &self.entities[id];
        let place = entity.place.and_then(|place| Some((place.object, place.section?)));
        let mut section = place.and_then(|place| self.places.get(&place)).map(|place| place.0);
        if entity.common.is_some() {
            section = self.outs.iter().find(|(_, out)| out.name == b".nv.global").map(|(id, _)| id);
        }
        let r#type = match (entity.symbol.r#type(), entity.kind) {
            (_, Kind::Reserved) if self.sm >= 100 && section.is_none() => STT_CUDA_OBJECT,
            (_, Kind::Reserved) | (STT_CUDA_OBJECT, _) => STT_OBJECT,
            (other, _) => other,
        };
        let binding = match entity.kind {
            Kind::Reserved if section.is_none() => STB_GLOBAL,
            _ => entity.symbol.binding(),
        };
        let external = entity.kind == Kind::Function && section.is_none();
        let texture = entity.kind == Kind::Variable && section.is_none();
        symbols.all.push(OutSymbol {
            meaning: Some(Meaning::Entity(id)),
            name: entity.name.as_bytes().to_vec(),
            info: binding << 4 | r#type,
            other: entity.linked_other(),
            section,
            number: 0,
            value: if external || texture { 0 } else { entity.value },
            size: if texture { 0 } else { entity.symbol.size },
        });
    }
}
