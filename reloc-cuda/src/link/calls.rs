//! Who calls whom over all objects: which functions are kept, and what a kernel needs with all that it calls.

use super::aliases::add_unknown_masks;
use super::carried::Carried;
use super::entity::{Entities, Entity, EntityId, Kind};
use super::error::{LinkError, LinkErrorKind, LinkErrors};
use super::object::{BARRIERS, Object, Role};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use elf_core::Name;
use nvinfo::{Attributes, Call, Payload, eiattr};

/// What the objects say of one function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    pub(super) registers: u32,
    pub(super) frame: u32,
    /// Call and return stack.
    pub(super) returns: u32,
    /// Registers that a kernel may have, 0 if it does not say.
    most_registers: u32,
}

/// The calls of all functions that were taken.
#[derive(Default)]
pub(super) struct Calls<'a> {
    /// Direct calls by caller; of each, the callees in reverse order of its object.
    pub(super) direct: BTreeMap<EntityId, Vec<EntityId>>,
    /// Functions with what their code names of functions that nobody defines.
    pub(super) external: BTreeSet<(EntityId, EntityId)>,
    /// Functions whose address is taken, with the text of their prototype.
    pub(super) taken: Vec<(EntityId, Name<'a>)>,
    /// Functions that call through an address, with the text of the prototype that they call.
    pub(super) indirect: Vec<(EntityId, Name<'a>)>,
    /// Pairs of list -4, in the same form as direct calls.
    pub(super) may_reach: BTreeMap<EntityId, Vec<EntityId>>,
    /// Prototypes of functions, by first appearance.
    pub(super) prototypes: Vec<(EntityId, Name<'a>)>,
    pub(super) needs: BTreeMap<EntityId, Needs>,
    /// Attributes that kernels take over, of all functions.
    pub(super) carried: BTreeMap<EntityId, Carried>,
    /// Functions with a second name, which has a mask, too.
    pub(super) second_names: BTreeSet<EntityId>,
    /// Functions that the objects list as external to one (`EIATTR_EXTERNS`).
    pub(super) listed: BTreeMap<EntityId, Vec<EntityId>>,
    /// What each kernel reaches, itself included.
    pub(super) trees: BTreeMap<EntityId, BTreeSet<EntityId>>,
    /// Functions that stay.
    pub(super) kept: BTreeSet<EntityId>,
    /// Whether all functions of all objects stay, and none is undefined.
    is_whole: bool,
}

impl<'a> Calls<'a> {
    pub(super) fn read(
        objects: &[Object<'a>],
        entities: &Entities<'a>,
        sm: u32,
        kernels: &[&str],
    ) -> Result<Self, LinkErrors> {
        let (mut calls, mut errors) = (Self::default(), Vec::new());
        for object in objects {
            calls.graph(object, entities)?;
            calls.prototypes_of(object, entities, &mut errors)?;
            calls.needs_of(object, entities, sm)?;
            calls.external_of(object, entities)?;
        }
        LinkErrors::none_of(errors)?;
        calls.taken.sort_by_key(|row| row.0);
        calls.indirect.sort_by_key(|row| row.0);
        calls.second_names =
            add_unknown_masks(|one| owner_of(objects, one), entities, &mut calls.carried);
        calls.keep(objects, entities, kernels);
        Ok(calls)
    }

    fn graph(&mut self, object: &Object<'a>, entities: &Entities<'a>) -> Result<(), LinkError> {
        let damaged = LinkError::damaged::<nvinfo::Error>(object.index);
        let own = |symbol| object.entity(symbol).filter(|&id| calls_count(entities, id, object));
        let (mut direct, mut may_reach) = (Vec::new(), Vec::new());
        for call in object.cubin.calls().map_err(&damaged)? {
            match call {
                Call::Direct { caller, callee } => {
                    direct.extend(own(caller).zip(object.entity(callee)));
                }
                Call::AddressTaken { function, prototype } => {
                    let text = object.cubin.prototype(prototype).map_err(&damaged)?;
                    let Some(id) = object.entity(function) else { continue };
                    // objects that disagree are wrong: nvlink believes the last
                    match self.taken.iter_mut().find(|known| known.0 == id) {
                        Some(known) => known.1 = text,
                        None => self.taken.push((id, text)),
                    }
                }
                Call::Indirect { caller, prototype } => {
                    let text = object.cubin.prototype(prototype).map_err(&damaged)?;
                    self.indirect.extend(own(caller).map(|id| (id, text)));
                }
                Call::MayReach { caller, callee } => {
                    push_new(&mut may_reach, own(caller).zip(object.entity(callee)));
                }
                _ => {}
            }
        }
        for (caller, callee) in direct.into_iter().rev() {
            self.direct.entry(caller).or_default().push(callee);
        }
        for (caller, callee) in may_reach.into_iter().rev() {
            self.may_reach.entry(caller).or_default().push(callee);
        }
        Ok(())
    }

    /// Takes the prototypes that an object knows; `errors` gets those that another object has otherwise.
    fn prototypes_of(
        &mut self,
        object: &Object<'a>,
        entities: &Entities<'a>,
        errors: &mut Vec<LinkError>,
    ) -> Result<(), LinkError> {
        let found = object.sections.iter().find(|section| section.name == ".nv.prototype");
        let Some(section) = found else { return Ok(()) };
        let damaged = LinkError::damaged::<elf_core::Error>(object.index);
        let data = object.cubin.file().section_data(&section.header).map_err(damaged)?;
        for row in data.as_chunks::<8>().0 {
            let row = u64::from_le_bytes(*row);
            let damaged = LinkError::damaged::<nvinfo::Error>(object.index);
            let text = object.cubin.prototype((row >> 32) as u32).map_err(damaged)?;
            let Some(id) = object.entity(row as u32) else { continue };
            // what took its address before knows it, too
            let known = self.prototypes.iter().chain(&self.taken).find(|known| known.0 == id);
            if known.is_some_and(|known| types_of(known.1) != types_of(text)) {
                let (symbol, first) = (entities[id].name.to_string(), entities[id].first);
                let kind = LinkErrorKind::Prototype { symbol, first };
                errors.push(LinkError::new(object.index, kind));
            }
            match self.prototypes.iter_mut().find(|known| known.0 == id) {
                Some(known) => known.1 = text,
                None => self.prototypes.push((id, text)),
            }
        }
        Ok(())
    }

    fn needs_of(
        &mut self,
        object: &Object<'a>,
        entities: &Entities<'a>,
        sm: u32,
    ) -> Result<(), LinkError> {
        let damaged = LinkError::damaged::<nvinfo::Error>(object.index);
        for row in object.cubin.attributes().map_err(&damaged)? {
            let row = row.map_err(&damaged)?;
            let Payload::OfSymbol { symbol, value } = row.payload() else { continue };
            let own = object.entity(symbol);
            let Some(id) = own.filter(|&id| defined_in(entities, id, object.index)) else {
                continue;
            };
            let needs = self.needs.entry(id).or_default();
            match row.number {
                eiattr::REGCOUNT => needs.registers = value,
                eiattr::FRAME_SIZE => needs.frame = value,
                _ => {}
            }
        }
        for (_, section) in object.with_role(Role::Info) {
            let Some(id) = function_of(object, section.header.info) else { continue };
            if !defined_in(entities, id, object.index) {
                continue;
            }
            let needs = self.needs.entry(id).or_default();
            let listed = self.listed.entry(id).or_default();
            let carried = self.carried.entry(id).or_default();
            for row in Attributes::new(section.data, section.header.offset) {
                let row = row.map_err(&damaged)?;
                if let (eiattr::EXTERNS, Payload::Symbols(symbols)) = (row.number, row.payload()) {
                    listed.extend(symbols.into_iter().filter_map(|symbol| object.entity(symbol)));
                }
                carried.add(&row, sm);
                match (row.number, row.number_value()) {
                    (eiattr::CRS_STACK_SIZE, Some(size)) => needs.returns = size,
                    (eiattr::MAXREG_COUNT, Some(most)) => needs.most_registers = most,
                    _ => {}
                }
            }
        }
        // toolkits up to 12 have barriers in flags of the code
        for (text, section) in object.with_role(Role::Text) {
            let own = function_of(object, text);
            if let Some(id) = own.filter(|&id| defined_in(entities, id, object.index)) {
                let barriers = section.header.flags.bits() & BARRIERS;
                let barriers = (barriers >> BARRIERS.trailing_zeros()) as u32;
                self.carried.entry(id).or_default().add_barriers(barriers);
            }
        }
        Ok(())
    }

    /// Takes what the code of an object names of functions that nobody defines.
    fn external_of(
        &mut self,
        object: &Object<'a>,
        entities: &Entities<'a>,
    ) -> Result<(), LinkError> {
        for (_, section) in object.with_role(Role::Relocations) {
            let function = function_of(object, section.header.info);
            let own = function.filter(|&id| defined_in(entities, id, object.index));
            let Some(function) = own else { continue };
            let rows = object.cubin.file().relocations(&section.header);
            let rows = rows.map_err(LinkError::damaged(object.index))?;
            let named = rows.into_iter().flat_map(|rows| rows.iter().collect::<Vec<_>>());
            let named = named.filter_map(|record| object.entity(record.symbol));
            let external = named.filter(|&id| is_external(entities, id));
            self.external.extend(external.map(|id| (function, id)));
        }
        Ok(())
    }

    /// Checks what kernels take over from what they call.
    pub(super) fn check_carried(&self, entities: &Entities<'_>) -> Result<(), LinkErrors> {
        let object = |id: EntityId| entities[id].place.map_or(0, |place| place.object);
        let mut errors = Vec::new();
        let mut first = None;
        for (&id, carried) in &self.carried {
            for (toolkit, found) in [12, 13].into_iter().zip(carried.tensor_memory()) {
                if found && *first.get_or_insert(toolkit) != toolkit {
                    let symbol = entities[id].name.to_string();
                    let kind = LinkErrorKind::TensorMemory(symbol);
                    return Err(LinkError::new(object(id), kind).into());
                }
            }
        }
        for &kernel in self.trees.keys() {
            let all = self.carried_by(kernel);
            errors.extend(all.check(object(kernel), entities[kernel].name).err());
        }
        LinkErrors::none_of(errors)
    }

    /// Attributes that a kernel has with those of all that it calls.
    pub(super) fn carried_by(&self, kernel: EntityId) -> Carried {
        let own = self.carried.get(&kernel).cloned().unwrap_or_default();
        let mut all = own.clone();
        let is_alone = self.trees.len() == 1;
        let kept = Carried::kept_numbers(is_alone, self.is_whole);
        let charged = self.charged(kernel);
        let order = self.reached(kernel);
        let others = charged.iter().filter(|id| !order.contains(id));
        for id in order.iter().chain(others).filter(|&&id| id != kernel) {
            if let Some(callee) = self.carried.get(id) {
                all.merge(callee, &own, kept);
            }
            if self.second_names.contains(id) {
                all.merge(&Carried::of_unknown_mask(), &own, kept);
            }
        }
        if is_alone {
            all.fragments_last();
        }
        all
    }

    /// Finds the functions that stay: kernels with one of these texts in their name, all if there is none, what they reach, and
    /// functions whose address is taken, by whichever of their names.
    fn keep(&mut self, objects: &[Object<'a>], entities: &Entities<'a>, kernels: &[&str]) {
        let is_used = |name: &[u8]| {
            let has = |part: &&str| name.windows(part.len().max(1)).any(|at| at == part.as_bytes());
            kernels.is_empty() || kernels.iter().any(has)
        };
        let used = entities
            .iter()
            .filter(|(_, entity)| entity.is_kernel() && is_used(entity.name.as_bytes()));
        for (id, _) in used {
            let tree: BTreeSet<_> = self.reached(id).into_iter().collect();
            self.kept.extend(&tree);
            self.trees.insert(id, tree);
        }
        self.kept.extend(self.taken.iter().map(|taken| taken.0));
        let owners = self.taken.iter().filter_map(|(id, _)| owner_of(objects, &entities[*id]));
        self.kept.extend(owners);
        // functions of the driver stay for whoever calls them
        let kept: Vec<_> = self.kept.iter().copied().collect();
        for callee in kept.iter().filter_map(|id| self.direct.get(id)).flatten() {
            if is_external(entities, *callee) {
                self.kept.insert(*callee);
            }
        }
        let mut functions =
            entities.iter().filter(|(_, entity)| entity.kind == Kind::Function && !entity.inner);
        self.is_whole =
            functions.all(|(id, entity)| entity.place.is_some() && self.kept.contains(&id));
    }

    /// What a function reaches, callees before their caller, itself last.
    fn reached(&self, id: EntityId) -> Vec<EntityId> {
        let (mut order, mut seen) = (Vec::new(), BTreeSet::from([id]));
        let mut path = Vec::from([(id, self.callees(id).into_iter())]);
        while let Some((function, rest)) = path.last_mut() {
            match rest.next() {
                Some(callee) if seen.insert(callee) => {
                    path.push((callee, self.callees(callee).into_iter()));
                }
                Some(_) => {}
                None => {
                    order.push(*function);
                    path.pop();
                }
            }
        }
        order
    }

    /// Whether a function reaches one that is external by direct calls alone.
    pub(super) fn reaches_directly(&self, id: EntityId, entities: &Entities<'_>) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), Vec::from([id]));
        while let Some(function) = open.pop() {
            if is_external(entities, function) {
                return true;
            }
            if seen.insert(function) {
                open.extend(self.direct.get(&function).into_iter().flatten());
            }
        }
        false
    }

    /// The functions whose barriers and undefined functions are those of a function too: for a kernel what it reaches. An only
    /// kernel has those of all functions that stay.
    pub(super) fn charged(&self, id: EntityId) -> BTreeSet<EntityId> {
        match self.trees.get(&id) {
            Some(_) if self.trees.len() == 1 => self.kept.clone(),
            Some(tree) => tree.clone(),
            None => [id].into(),
        }
    }

    /// Checks that no kernel reaches a function of more registers than it may have.
    pub(super) fn check_registers(&self, entities: &Entities<'_>) -> Result<(), LinkErrors> {
        let needs = |id: &EntityId| self.needs.get(id).copied().unwrap_or_default();
        let mut errors = Vec::new();
        for (kernel, tree) in &self.trees {
            let most = needs(kernel).most_registers;
            let over = |id: &&EntityId| most > 0 && needs(id).registers > most && *id != kernel;
            errors.extend(tree.iter().filter(over).map(|function| {
                let kind = LinkErrorKind::Registers {
                    kernel: entities[*kernel].name.to_string(),
                    most,
                    function: entities[*function].name.to_string(),
                    needs: needs(function).registers,
                };
                LinkError::new(entities[*kernel].place.map_or(0, |place| place.object), kind)
            }));
        }
        LinkErrors::none_of(errors)
    }

    /// Everything that a function may call, by its name or through an address.
    pub(super) fn callees(&self, function: EntityId) -> Vec<EntityId> {
        let direct = self.direct.get(&function).into_iter().flatten().copied();
        let texts = self.indirect.iter().filter(|caller| caller.0 == function);
        let through =
            texts.flat_map(|(_, text)| self.taken.iter().filter(move |taken| taken.1 == *text));
        through.map(|taken| taken.0).chain(direct).collect()
    }
}

/// Whether the definition that was taken is that of this object.
pub(super) fn defined_in(entities: &Entities<'_>, id: EntityId, object: usize) -> bool {
    entities[id].place.is_some_and(|place| place.object == object)
}

/// Whether calls of an object's function are in the graph: those of the definition that was taken, and of each that was
/// taken until a later object replaced it, as with nvlink.
pub(super) fn calls_count(entities: &Entities<'_>, id: EntityId, object: &Object<'_>) -> bool {
    defined_in(entities, id, object.index) || entities[id].former.contains(&object.index)
}

/// The function whose code is section `text` of an object.
pub(super) fn function_of(object: &Object<'_>, text: u32) -> Option<EntityId> {
    let section = object.section(text).filter(|section| section.role == Role::Text)?;
    object.entity(section.header.info & super::entity::SYMBOL_OF_TEXT)
}

/// The function that has the code of a defined one: of a second name, or one inside the code, another one.
pub(super) fn owner_of(objects: &[Object<'_>], entity: &Entity<'_>) -> Option<EntityId> {
    let place = entity.place?;
    function_of(objects.get(place.object)?, place.section?)
}

/// Whether an entity is a function that somebody is to call by its name, and nobody defines: of the driver.
pub(super) fn is_external(entities: &Entities<'_>, id: EntityId) -> bool {
    entities[id].kind == Kind::Function && entities[id].place.is_none()
}

/// The types of a prototype: behind them is how a toolkit calls, of which those that are linked together may differ.
fn types_of(prototype: Name<'_>) -> Option<&[u8]> {
    prototype.as_bytes().split(|&byte| byte == b'|').next()
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: Option<T>) {
    if let Some(item) = item.filter(|item| !list.contains(item)) {
        list.push(item);
    }
}
