//! Shared memory: one address for every variable, since no function's code is there twice.

use super::entity::{EntityId, Kind};
use super::error::{LinkError, LinkErrorKind};
use super::object::Role;
use super::out::{Class, Info, Out, align};
use super::sort::sort;
use super::state::State;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Reverse;
use elf_core::names::SHT_NOBITS;
use nvinfo::HeaderForm;

/// Shared memory of a block that a kernel may have without asking for more.
const LIMIT: u64 = 0xc000;
/// What the system has of the section from `sm_90` on.
const RESERVED: u64 = 0x400;
/// `SHF_WRITE`, `SHF_ALLOC`, `SHF_INFO_LINK`.
const FLAGS: u64 = 0x43;
/// Least alignment of an array whose size the launch gives.
const DYNAMIC_ALIGNMENT: u64 = 16;

type Kernels = BTreeSet<EntityId>;

/// A variable of known size.
struct Static {
    id: EntityId,
    size: u64,
    alignment: u64,
    kernels: Kernels,
}

impl State<'_> {
    /// The address of a shared variable, for whatever function: 0 where none uses it, all ones for arrays whose size the launch
    /// gives, which may have several.
    pub(super) fn shared_value(&self, id: EntityId) -> u64 {
        if self.entities[id].place.is_none() {
            return u64::MAX;
        }
        let found = self.shared.iter().find(|((variable, _), _)| *variable == id);
        found.map_or(0, |(_, value)| *value)
    }

    /// Finds the place of every shared variable, and makes the sections of kernels.
    pub(super) fn place_shared(&mut self) -> Result<(), LinkError> {
        let uses = self.shared_uses()?;
        let mut placed = self.place_static(&uses);
        let ends = |placed: &[(u64, Static)], kernel: EntityId| {
            let ours = placed.iter().filter(|(_, one)| one.kernels.contains(&kernel));
            ours.map(|(at, one)| at.saturating_add(one.size)).max()
        };
        let kernels: Vec<_> = self.calls.trees.keys().copied().collect();
        // where arrays of a kernel begin, and the largest of their alignments
        let mut dynamic: BTreeMap<EntityId, (u64, u64)> = BTreeMap::new();
        let arrays: Vec<_> =
            uses.iter().filter(|(id, _)| self.entities[**id].place.is_none()).collect();
        // kernels that reach a function in common have their arrays at one place, whichever arrays these are
        let users = arrays.iter().flat_map(|(_, functions)| functions.iter().copied()).collect();
        for group in self.connected(&users) {
            let ours: Vec<_> = arrays
                .iter()
                .flat_map(|(array, functions)| {
                    functions.iter().map(|&function| (**array, function))
                })
                .map(|(array, function)| (array, function, self.kernels_of(function)))
                .filter(|(_, _, kernels)| !kernels.is_disjoint(&group))
                .collect();
            let alignment_of = |array| self.entities[array].symbol.value.max(DYNAMIC_ALIGNMENT);
            let most = ours.iter().map(|&(array, ..)| alignment_of(array)).max();
            let end = group.iter().map(|&kernel| ends(&placed, kernel).unwrap_or(0)).max();
            let start = align(end.unwrap_or(0), most.unwrap_or(DYNAMIC_ALIGNMENT));
            for (array, function, kernels) in ours {
                self.shared.insert((array, function), start);
                for kernel in kernels {
                    let known = dynamic.entry(kernel).or_insert((start, DYNAMIC_ALIGNMENT));
                    known.1 = known.1.max(alignment_of(array));
                }
            }
        }
        placed.sort_by_key(|(_, one)| one.id);
        for (at, one) in &placed {
            for &function in uses.get(&one.id).into_iter().flatten() {
                self.shared.insert((one.id, function), *at);
            }
        }
        let pool = placed.iter().any(|(_, one)| one.kernels.len() != 1);
        let texts: Vec<_> = self.texts.clone();
        for (kernel, text) in texts.into_iter().filter(|(id, _)| kernels.contains(id)) {
            let end = ends(&placed, kernel);
            // with a pool and an array, used or not, kernels of the newer form that have neither get an empty section,
            // where that is not left out
            let place = self.entities[kernel].place;
            let object = place.and_then(|place| self.objects.get(place.object));
            let newer = object.is_some_and(|object| object.cubin.target().form == HeaderForm::V8);
            let always = (newer && pool && self.has_arrays()).then_some(0);
            if let Some(end) =
                end.into_iter().chain(dynamic.get(&kernel).map(|one| one.0)).chain(always).max()
            {
                let dynamic = dynamic.get(&kernel).map(|one| one.1);
                self.shared_section((kernel, text), end, &placed, dynamic)?;
            }
        }
        // nvlink leaves it out where a pool has taken its place
        if self.has_arrays() && !(pool && self.pool_alignment() > DYNAMIC_ALIGNMENT) {
            let out = self.outs.push(Out {
                flags: 3, // SHF_WRITE | SHF_ALLOC
                memory: if self.sm >= 100 { RESERVED } else { 0 },
                ..Out::new(b".nv_debug.shared", Class::NoBits, SHT_NOBITS, DYNAMIC_ALIGNMENT)
            });
            self.free_shared = Some(out);
        }
        Ok(())
    }

    /// The functions that use each shared variable, by their relocations.
    fn shared_uses(&self) -> Result<BTreeMap<EntityId, BTreeSet<EntityId>>, LinkError> {
        let mut uses: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for object in self.objects.iter() {
            for (text, _) in object.with_role(Role::Text) {
                let Some(function) = super::calls::function_of(object, text) else { continue };
                if !super::calls::defined_in(&self.entities, function, object.index) {
                    continue;
                }
                for record in object.records(text)? {
                    let variable = object.entity(record.symbol);
                    let shared = variable.filter(|&id| self.entities[id].kind == Kind::Shared);
                    if let Some(id) = shared {
                        uses.entry(id).or_default().insert(function);
                    }
                }
            }
        }
        Ok(uses)
    }

    /// Whether an object names an array whose size the launch gives.
    fn has_arrays(&self) -> bool {
        let arrays = self.entities.iter().filter(|(_, entity)| entity.kind == Kind::Shared);
        arrays.into_iter().any(|(_, entity)| entity.place.is_none())
    }

    /// The alignment that variables of device functions and arrays whose size the launch gives have together, used or not.
    fn pool_alignment(&self) -> u64 {
        let free = self.objects.iter().flat_map(|object| object.with_role(Role::FreeShared));
        let free = free.map(|(_, section)| section.header.alignment);
        let shared = self.entities.iter().filter(|(_, entity)| entity.kind == Kind::Shared);
        let arrays = shared.filter(|(_, entity)| entity.place.is_none());
        let arrays = arrays.map(|(_, array)| array.symbol.value.max(DYNAMIC_ALIGNMENT));
        free.chain(arrays).max().unwrap_or(1)
    }

    /// Shared variables in the order in which nvlink gets to know them, used or not: those of known size where an object has
    /// them, arrays whose size the launch gives where an object first names them.
    fn shared_in_order(&self) -> Vec<EntityId> {
        let (mut all, mut known) = (Vec::new(), BTreeSet::new());
        for object in self.objects.iter() {
            for index in 0..object.symbols.len() as u32 {
                let found = object.entity(index);
                let Some(id) = found.filter(|&id| self.entities[id].kind == Kind::Shared) else {
                    continue;
                };
                let is_here = object.section_of(index).is_some();
                if (is_here || self.entities[id].place.is_none()) && known.insert(id) {
                    all.push(id);
                }
            }
        }
        all
    }

    /// The kernels that reach a function.
    fn kernels_of(&self, function: EntityId) -> Kernels {
        let trees = self.calls.trees.iter().filter(|(_, tree)| tree.contains(&function));
        trees.map(|(&kernel, _)| kernel).collect()
    }

    /// Whether an object has placed a variable in a kernel's section.
    fn is_of_kernel(&self, variable: EntityId) -> bool {
        let place = self.entities[variable].place.and_then(|place| {
            let object = self.objects.get(place.object)?;
            object.section(place.section?)
        });
        place.is_some_and(|section| section.role == Role::Shared)
    }

    /// Places variables of several kernels and of none, the largest first, those without a common kernel at one place; then
    /// those of one kernel at its end.
    fn place_static(&self, uses: &BTreeMap<EntityId, BTreeSet<EntityId>>) -> Vec<(u64, Static)> {
        let sorted = self.shared_in_order();
        let variables = sorted.into_iter().map(|id| {
            let functions = uses.get(&id).into_iter().flatten();
            let kernels = functions.flat_map(|&function| self.kernels_of(function));
            let symbol = self.entities[id].symbol;
            let alignment = symbol.value.max(1);
            Static { id, size: symbol.size, alignment, kernels: kernels.collect() }
        });
        // those of kernels that are dropped go with them
        let variables =
            variables.filter(|one| !one.kernels.is_empty() || !self.is_of_kernel(one.id));
        // a kernel's own come first, as their objects have them
        let (own, free): (Vec<_>, Vec<_>) =
            variables.partition(|one| one.kernels.len() == 1 && self.is_of_kernel(one.id));
        let free = sort(free, &|a: &Static, b: &Static| a.size > b.size);
        let placed_here =
            |one: &Static| self.entities[one.id].place.is_some() && uses.contains_key(&one.id);
        let (single, pool): (Vec<_>, Vec<_>) =
            free.into_iter().filter(placed_here).partition(|one| one.kernels.len() == 1);
        let mut of_kernels: BTreeMap<_, Vec<Static>> = BTreeMap::new();
        for one in own.into_iter().chain(single) {
            of_kernels.entry(one.kernels.first().copied()).or_default().push(one);
        }
        let single = of_kernels.into_values().flat_map(|own| {
            sort(own, &|a: &Static, b: &Static| {
                (Reverse(a.alignment), a.size) <= (Reverse(b.alignment), b.size)
            })
        });
        let mut slots: Vec<Vec<Static>> = Vec::new();
        for one in pool {
            let apart = |slot: &&mut Vec<Static>| {
                slot.iter().all(|other| other.kernels.is_disjoint(&one.kernels))
            };
            match slots.iter_mut().find(apart) {
                Some(slot) => slot.push(one),
                None => slots.push(Vec::from([one])),
            }
        }
        let (mut placed, mut end) = (Vec::new(), 0u64);
        for slot in slots {
            let alignment = slot.iter().map(|one| one.alignment).max();
            let at = align(end, alignment.unwrap_or(1));
            // the first is the largest
            end = at.saturating_add(slot.first().map_or(0, |one| one.size));
            placed.extend(slot.into_iter().map(|one| (at, one)));
        }
        for one in single {
            let ours = placed.iter().filter(|(_, other)| !other.kernels.is_disjoint(&one.kernels));
            let end = ours.map(|(at, other)| at.saturating_add(other.size)).max();
            placed.push((align(end.unwrap_or(0), one.alignment), one));
        }
        placed
    }

    /// Kernels in groups: those of one group reach a common function among these, or are connected by others that do.
    fn connected(&self, functions: &BTreeSet<EntityId>) -> Vec<Kernels> {
        let mut groups: Vec<Kernels> = Vec::new();
        for &function in functions {
            let mut group = self.kernels_of(function);
            if group.is_empty() {
                continue;
            }
            groups.retain(|other| {
                let apart = other.is_disjoint(&group);
                if !apart {
                    group.extend(other);
                }
                apart
            });
            groups.push(group);
        }
        groups
    }

    /// Makes `.nv.shared.K`, which ends at `end`; `dynamic` is the alignment of arrays whose size the launch gives.
    fn shared_section(
        &mut self,
        (kernel, text): (EntityId, super::out::OutId),
        end: u64,
        placed: &[(u64, Static)],
        dynamic: Option<u64>,
    ) -> Result<(), LinkError> {
        let mut name = b".nv.shared.".to_vec();
        name.extend_from_slice(self.entities[kernel].name.as_bytes());
        let ours = placed.iter().filter(|(_, one)| one.kernels.contains(&kernel));
        let own = ours.map(|(_, one)| one.alignment).max().unwrap_or(1);
        // with a pool all kernels have the alignment of the objects' own
        let pool = placed.iter().any(|(_, one)| one.kernels.len() != 1);
        let own = own.max(dynamic.unwrap_or(1));
        let alignment = if pool { own.max(self.pool_alignment()) } else { own };
        let size = if dynamic.is_some() { align(end, alignment) } else { end };
        // nvlink leaves out what is empty, but not on sm_90, and not beside `.nv_debug.shared`
        if size == 0 && self.sm != 90 && alignment > DYNAMIC_ALIGNMENT {
            return Ok(());
        }
        if size > LIMIT {
            let kernel = self.entities[kernel].name.to_string();
            let kind = LinkErrorKind::SharedTooLarge { kernel, size, limit: LIMIT };
            return Err(LinkError::new(0, kind));
        }
        let reserved = if self.sm >= 90 { RESERVED } else { 0 };
        let out = self.outs.push(Out {
            flags: FLAGS,
            info: Info::Section(text),
            memory: size.saturating_add(reserved),
            ..Out::new(&name, Class::NoBits, SHT_NOBITS, alignment)
        });
        self.shared_sections.insert(kernel, (out, size > 0));
        Ok(())
    }
}
