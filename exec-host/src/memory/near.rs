//! Memory within reach of other memory: code reaches variables of earlier loads by 32-bit distances.

use crate::machine;
use core::ptr;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// What 32-bit distances reach, with room for offsets in variables, in bytes.
const REACH: u64 = 0x7ff0_0000;
/// Between places that are tried, in bytes.
const STEP: u64 = 32 << 20;

/// Whether all distances between `size` bytes at `start` and `address` fit.
pub(super) fn reaches(start: u64, size: u64, address: u64) -> bool {
    start.abs_diff(address) < REACH && start.saturating_add(size).abs_diff(address) < REACH
}

/// Maps `size` bytes, whole pages, within reach of `address`; nothing if all places that are tried are taken.
pub(super) fn map(address: u64, size: usize, protection: ProtFlags) -> Option<*mut u8> {
    let page = rustix::param::page_size() as u64;
    let around = address - address % page;
    let distances = (1..REACH / STEP).map(|step| step * STEP);
    let places = distances.flat_map(|distance| {
        [around.checked_sub(distance), around.checked_add(distance)].into_iter().flatten()
    });
    let places = places.filter(|&place| reaches(place, size as u64, address));
    map_at(places, size, protection)
}

/// Maps `size` bytes, whole pages, that end at `limit` at the latest; nothing if all places that are tried are taken.
fn map_below(limit: u64, size: usize, protection: ProtFlags) -> Option<*mut u8> {
    let last = limit.checked_sub(size as u64)?;
    map_at((1..=last / STEP).map(|step| step * STEP), size, protection)
}

/// Maps `size` bytes, whole pages, below `limit`, where the system likes it if that is possible.
pub(super) fn map_low(limit: u64, size: usize, protection: ProtFlags) -> Option<*mut u8> {
    let flags = MapFlags::PRIVATE | MapFlags::from_bits_retain(machine::MAP_LOW);
    // SAFETY: without a wish for an address no existing mapping is touched.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), size, protection, flags) }.ok();
    if let Some(start) = start {
        if (start.addr() as u64).saturating_add(size as u64) <= limit {
            return Some(start.cast());
        }
        // SAFETY: it was just mapped, for nobody.
        let _ = unsafe { munmap(start, size) };
    }
    map_below(limit, size, protection)
}

/// Maps `size` bytes at the first of `places` that is free.
pub(super) fn map_at(
    mut places: impl Iterator<Item = u64>,
    size: usize,
    protection: ProtFlags,
) -> Option<*mut u8> {
    places.find_map(|place| {
        let place = place as usize;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        let wished = ptr::without_provenance_mut(place);
        // SAFETY: an existing mapping is not replaced; before Linux 4.17 the address is a wish.
        let start = unsafe { mmap_anonymous(wished, size, protection, flags) }.ok()?;
        if start.addr() == place {
            return Some(start.cast());
        }
        // SAFETY: it was just mapped, for nobody.
        let _ = unsafe { munmap(start, size) };
        None
    })
}
