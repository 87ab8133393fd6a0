//! What loads have of an arena together.

use super::region::Region;
use super::staging::Stagings;
use exec_core::sync::{Mutex, MutexGuard};

/// Regions, and where images are written before they are there.
#[derive(Default)]
pub(super) struct Shared {
    regions: Mutex<Vec<Region>>,
    pub(super) stagings: Stagings,
}

impl Shared {
    pub(super) fn regions(&self) -> MutexGuard<'_, Vec<Region>> {
        self.regions.lock()
    }
}
