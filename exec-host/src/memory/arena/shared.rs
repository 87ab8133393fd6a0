//! What loads have of an arena together.

use super::region::Region;
use super::staging::Stagings;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Regions, and where images are written before they are there.
#[derive(Default)]
pub(super) struct Shared {
    regions: Mutex<Vec<Region>>,
    pub(super) stagings: Stagings,
}

impl Shared {
    pub(super) fn regions(&self) -> MutexGuard<'_, Vec<Region>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
