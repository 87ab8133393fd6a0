//! `.nv.callgraph` and `.nv.prototype` of the linked file.

use super::entity::EntityId;
use super::info::{Numbers, number};
use super::linked::LinkedFunction;
use super::out::Meaning;
use super::state::State;
use super::strings::Strings;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

impl State<'_> {
    /// The functions that stay, in the order of their first mention.
    pub(super) fn linked_functions(&self) -> Vec<LinkedFunction> {
        let kept = &self.calls.kept;
        let places: BTreeMap<_, _> = kept.iter().copied().zip(0usize..).collect();
        let function = |&id: &EntityId| {
            let callees = self.calls.callees(id);
            LinkedFunction {
                name: self.entities[id].name.to_string(),
                is_kernel: self.entities[id].is_kernel(),
                is_address_taken: self.calls.taken.iter().any(|taken| taken.0 == id),
                registers: self.calls.needs.get(&id).map_or(0, |needs| needs.registers),
                callees: callees.iter().filter_map(|id| places.get(id).copied()).collect(),
            }
        };
        kept.iter().map(function).collect()
    }

    /// The four lists of calls, of functions that stay.
    pub(super) fn call_graph(&self, numbers: &Numbers, strings: &mut Strings) -> Vec<u8> {
        let number = |id: EntityId| number(numbers, Meaning::Entity(id));
        let kept = |id: &EntityId| self.calls.kept.contains(id);
        let pairs = |lists: &BTreeMap<EntityId, Vec<EntityId>>| -> Vec<[u32; 2]> {
            let lists = lists.iter().filter(|(caller, _)| kept(caller));
            let row = |caller: EntityId, callee: EntityId| [number(caller), number(callee)];
            lists
                .flat_map(|(&caller, list)| {
                    list.iter().filter(|id| kept(id)).map(move |&callee| row(caller, callee))
                })
                .collect()
        };
        let mut named = |list: &[(EntityId, elf_core::Name<'_>)]| -> Vec<[u32; 2]> {
            let kept = list.iter().filter(|(id, _)| kept(id));
            kept.map(|(id, text)| [number(*id), strings.add(text.as_bytes())]).collect()
        };
        // those of a caller in reverse order of its object, as direct calls are
        let mut indirect: Vec<_> = self.calls.indirect.iter().rev().copied().collect();
        indirect.sort_by_key(|row| row.0);
        let (taken, indirect) = (named(&self.calls.taken), named(&indirect));
        lists(&[pairs(&self.calls.direct), taken, indirect, pairs(&self.calls.may_reach)])
    }

    /// Functions in the table that have a prototype and whose address nobody takes.
    pub(super) fn prototypes(&self) -> impl Iterator<Item = (EntityId, &[u8])> {
        let taken = |id: EntityId| self.calls.taken.iter().any(|taken| taken.0 == id);
        let known = self.calls.prototypes.iter().filter(move |(id, _)| {
            let stays = self.calls.kept.contains(id);
            stays && !taken(*id)
        });
        known.map(|(id, text)| (*id, text.as_bytes()))
    }

    pub(super) fn prototype_table(&self, numbers: &Numbers, strings: &mut Strings) -> Vec<u8> {
        prototype_rows(self.prototypes(), numbers, strings)
    }
}

/// The table of prototypes.
pub(super) fn prototype_rows<'t>(
    list: impl IntoIterator<Item = (EntityId, &'t [u8])>,
    numbers: &Numbers,
    strings: &mut Strings,
) -> Vec<u8> {
    let row = |(id, text)| [number(numbers, Meaning::Entity(id)), strings.add(text)];
    bytes(&list.into_iter().map(row).collect::<Vec<_>>())
}

/// The call graph: lists -1 to -4, each behind its number.
pub(super) fn lists(lists: &[Vec<[u32; 2]>; 4]) -> Vec<u8> {
    let mut rows = Vec::new();
    for (number, list) in (1i32..).zip(lists) {
        rows.push([0, number.wrapping_neg().cast_unsigned()]);
        rows.extend(list);
    }
    bytes(&rows)
}

fn bytes(rows: &[[u32; 2]]) -> Vec<u8> {
    rows.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}
