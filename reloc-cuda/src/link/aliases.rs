//! Second names of functions (`.alias` of PTX), which have no attributes of their own.

use super::calls::owner_of;
use super::carried::Carried;
use super::entity::{Entities, EntityId};
use super::object::Object;
use alloc::collections::{BTreeMap, BTreeSet};

/// Gives the mask that functions without one have, if any has one; to second names of functions, too, as nvlink does.
/// The functions that have such.
pub(super) fn add_unknown_masks(
    objects: &[Object<'_>],
    entities: &Entities<'_>,
    carried: &mut BTreeMap<EntityId, Carried>,
) -> BTreeSet<EntityId> {
    if !carried.values().any(Carried::has_mask) {
        return BTreeSet::new();
    }
    let mut named = BTreeSet::new();
    for (id, entity) in entities.iter() {
        if let Some(owner) = owner_of(objects, entity).filter(|_| entity.is_alias()) {
            carried.entry(id).or_default();
            named.insert(owner);
        }
    }
    carried.values_mut().for_each(Carried::add_unknown_mask);
    named
}
