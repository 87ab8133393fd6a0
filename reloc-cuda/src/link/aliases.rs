//! Second names of functions (`.alias` of PTX), which have no attributes of their own.

use super::carried::Carried;
use super::entity::{Entities, EntityId};
use alloc::collections::{BTreeMap, BTreeSet};

/// Object and section of the code of a function.
pub(super) type Code = (usize, u32);

/// Gives the mask that functions without one have, if any has one; to second names of functions, too, as nvlink does. The code
/// that has such.
pub(super) fn add_unknown_masks(
    entities: &Entities<'_>,
    carried: &mut BTreeMap<EntityId, Carried>,
) -> BTreeSet<Code> {
    if !carried.values().any(Carried::has_mask) {
        return BTreeSet::new();
    }
    let mut named = BTreeSet::new();
    for (id, entity) in entities.iter() {
        let code = entity.place.and_then(|place| Some((place.object, place.section?)));
        if let Some(code) = code.filter(|_| entity.is_alias()) {
            carried.entry(id).or_default();
            named.insert(code);
        }
    }
    carried.values_mut().for_each(Carried::add_unknown_mask);
    named
}
