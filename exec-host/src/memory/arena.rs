//! Memory that small modules share: pages, and mappings.

mod lease;
mod region;
mod shared;
mod slab;
mod staging;

use crate::error::Error;
use core::fmt;
use region::Region;
use shared::Shared;
use std::sync::Arc;

pub(super) use lease::Lease;
pub use region::ArenaStatistics;
pub(crate) use region::{Need, SPREAD};
pub(crate) use slab::SIZE as MOST;

/// Memory that small modules share. A module of its own takes three mappings and as many pages at least; of an arena it takes what its
/// code and data take, and the process can have millions of them.
///
/// ```
/// use exec_host::{CodeArena, Loader, Process};
///
/// # #[cfg(target_arch = "x86_64")] {
/// let arena = CodeArena::new();
/// let loader = Loader::new().arena(&arena);
/// let object = include_bytes!("../../../fixtures/x86_64/elftest.o");
/// let modules: Vec<_> =
///     (0..100).map(|_| loader.load([&object[..]], Process::new())).collect::<Result<_, _>>()?;
/// let statistics = arena.statistics();
/// assert_eq!(statistics.modules, 100);
/// assert!(statistics.mapped <= 100 * 1024);
/// # }
/// # Ok::<(), exec_host::Error>(())
/// ```
///
/// # What holds
/// No page is writable and executable at once, nor does it have two addresses one of which is writable while another is executable. Code
/// that comes to a page where code is already is written to a copy of the page, which nobody can execute; when nobody can write to it any
/// more, it takes the place of the page, in one step. Threads may execute the page meanwhile. Read-only data are writable
/// while data of another module come to their page or leave it. Data that are writable may share a page with those of other modules.
///
/// Code of a module that is gone becomes traps before its memory is used again. A call to it then ends in a signal, until the room has
/// become another module's: what [unloading](crate#unloading) leaves to callers matters more than without an arena.
#[derive(Clone, Default)]
pub struct CodeArena(Arc<Shared>);

impl fmt::Debug for CodeArena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.statistics().fmt(f)
    }
}

impl CodeArena {
    /// An arena without memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it has now.
    #[must_use]
    pub fn statistics(&self) -> ArenaStatistics {
        let mut sum = ArenaStatistics::default();
        self.0.regions().iter().for_each(|region| region.add_to(&mut sum));
        sum
    }

    /// Takes room for segments: the lease, and their offsets in its region.
    pub(super) fn lease(&self, need: &Need<'_>) -> Result<Lease, Error> {
        let size = need.segments.iter().map(|segment| segment.size).sum();
        let mut regions = self.0.regions();
        let fit = regions
            .iter_mut()
            .enumerate()
            .filter(|(_, region)| region.suits(need))
            .find_map(|(index, region)| Some((index, region.take(need)?)));
        let (index, parts) = match fit {
            Some(fit) => fit,
            None => {
                regions.push(Region::new(need)?);
                let index = regions.len().saturating_sub(1);
                let parts = regions.last_mut().and_then(|region| region.take(need));
                (index, parts.ok_or(Error::OutOfMemory { size })?)
            }
        };
        let base = regions.get(index).map_or(core::ptr::null_mut(), Region::base);
        drop(regions);
        Lease::new(Arc::clone(&self.0), (index, base), parts)
    }
}
