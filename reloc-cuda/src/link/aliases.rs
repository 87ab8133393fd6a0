//! Second names of functions (`.alias` of PTX), which have no attributes of their own.

use super::carried::Carried;
use super::entity::{Entities, Entity, EntityId};
use alloc::collections::{BTreeMap, BTreeSet};

/// Gives the mask that functions without one have, if any has one; to second names of functions, too, as nvlink does.
/// The functions that have such; `owner` tells which has the code of a name.
pub(super) fn add_unknown_masks(
    owner: impl Fn(&Entity<'_>) -> Option<EntityId>,
    entities: &Entities<'_>,
    carried: &mut BTreeMap<EntityId, Carried>,
) -> BTreeSet<EntityId> {
    if !carried.values().any(Carried::has_mask) {
        return BTreeSet::new();
    }
    let mut named = BTreeSet::new();
    for (id, entity) in entities.iter() {
        if let Some(owner) = owner(entity).filter(|_| entity.is_alias()) {
            carried.entry(id).or_default();
            named.insert(owner);
        }
    }
    carried.values_mut().for_each(Carried::add_unknown_mask);
    named
}
