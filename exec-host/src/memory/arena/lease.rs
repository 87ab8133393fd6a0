//! The room that a module has of an arena.

use super::region::Part;
use super::shared::Shared;
use super::staging::Staging;
use crate::error::Error;
use core::fmt;
use core::ops::Range;
use std::sync::Arc;

/// Room for the segments of a module, given back on drop.
pub(crate) struct Lease {
    arena: Arc<Shared>,
    region: usize,
    base: *mut u8,
    parts: Box<[Part]>,
    /// Where they are written first, until they are in their place.
    staging: Option<Staging>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl Lease {
    pub(super) fn new(
        arena: Arc<Shared>,
        (region, base): (usize, *mut u8),
        parts: Vec<Part>,
    ) -> Result<Self, Error> {
        let mut lease = Self { arena, region, base, parts: parts.into(), staging: None };
        lease.staging = Some(lease.arena.stagings.take()?);
        Ok(lease)
    }

    /// The first address of the region.
    pub(crate) const fn base(&self) -> *mut u8 {
        self.base
    }

    /// Offsets of the segments in the region, in their order.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = u64> + '_ {
        self.parts.iter().map(Part::offset)
    }

    /// The addresses of the segments.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let base = self.base.addr() as u64;
        self.parts.iter().map(move |part| {
            let start = base.wrapping_add(part.offset());
            start..start.wrapping_add(part.size.into())
        })
    }

    /// As many bytes as the region has, to be written where the segments are.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.staging.as_mut().map(Staging::bytes_mut).unwrap_or_default()
    }

    /// Brings what was written to its place.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        let Some(mut staging) = self.staging.take() else { return Ok(()) };
        let mut regions = self.arena.regions();
        let done = self.parts.iter().try_for_each(|part| {
            let (start, size) = (part.offset() as usize, part.size as usize);
            let bytes = staging.bytes_mut().get(start..).and_then(|rest| rest.get(..size));
            match regions.get_mut(self.region).zip(bytes) {
                // SAFETY: the parts are this lease's, nobody runs or reads them yet, and the lock is held.
                Some((region, bytes)) => unsafe { region.write(part, bytes) },
                None => Err(Error::OutOfMemory { size: size as u64 }),
            }
        });
        drop(regions);
        self.give_staging(staging);
        done
    }

    fn give_staging(&self, mut staging: Staging) {
        for part in &self.parts {
            staging.clear(part.offset() as usize, part.size as usize);
        }
        self.arena.stagings.give(staging);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(staging) = self.staging.take() {
            self.give_staging(staging);
        }
        if let Some(region) = self.arena.regions().get_mut(self.region) {
            // SAFETY: functions that were given out do not outlive the module, whose memory this is.
            unsafe { region.give(&self.parts) };
        }
    }
}
