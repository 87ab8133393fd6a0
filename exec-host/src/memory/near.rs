//! Memory within reach of other memory: code reaches variables of earlier loads by 32-bit distances.

use crate::machine;
use core::ffi::c_void;
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

/// Whether a multiple of 4 GiB is in there. Unwinders of 64 bits take a function at such an address for one that a linker has removed, as the
/// field of 4 bytes that leads to it would lead to 0 then (libgcc's `linear_search_fdes`): nothing is thrown through it.
pub(super) const fn has_blind_spot(start: u64, size: u64) -> bool {
    match start.checked_next_multiple_of(1 << 32) {
        Some(spot) => spot - start < size,
        None => false,
    }
}

/// What `map` maps of `size` bytes, where it likes, but for a [blind spot](has_blind_spot).
pub(super) fn beside_blind_spots(
    size: usize,
    map: impl Fn() -> rustix::io::Result<*mut c_void>,
) -> rustix::io::Result<*mut u8> {
    let first = map()?;
    if !has_blind_spot(first.addr() as u64, size as u64) {
        return Ok(first.cast());
    }
    // the first stays where it is until there is another
    let second = map();
    // SAFETY: it was just mapped, for nobody.
    let _ = unsafe { munmap(first, size) };
    second.map(<*mut c_void>::cast)
}

/// Maps `size` bytes, whole pages, within reach of `address`; nothing if all places that are tried are taken.
pub(super) fn map(address: u64, size: usize, protection: ProtFlags) -> Option<*mut u8> {
    let page = rustix::param::page_size() as u64;
    let around = address - address % page;
    let distances = (1..REACH / STEP).map(|step| step * STEP);
    let places = distances.flat_map(|distance| {
        [around.checked_sub(distance), around.checked_add(distance)].into_iter().flatten()
    });
    let places = places.filter(|&place| {
        reaches(place, size as u64, address) && !has_blind_spot(place, size as u64)
    });
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

// addresses of 32 bits are all near
#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn blind_spots() {
        const SPOT: u64 = 1 << 32;
        assert!(has_blind_spot(SPOT, 1) && has_blind_spot(7 * SPOT - 4096, 4097));
        assert!(!has_blind_spot(SPOT + 1, SPOT - 1) && !has_blind_spot(7 * SPOT - 4096, 4096));
        assert!(!has_blind_spot(u64::MAX - 1, 1));
    }

    #[test]
    fn other_memory_than_that_around_a_blind_spot() {
        const SIZE: usize = 1 << 16;
        let spot = 7u64 << 32;
        let protection = ProtFlags::empty();
        let is_first = core::cell::Cell::new(true);
        let map = || {
            if is_first.replace(false) {
                return map_at(core::iter::once(spot), SIZE, protection)
                    .map(<*mut u8>::cast)
                    .ok_or(rustix::io::Errno::EXIST);
            }
            // SAFETY: without a wish for an address no existing mapping is touched.
            unsafe { mmap_anonymous(ptr::null_mut(), SIZE, protection, MapFlags::PRIVATE) }
        };
        let mapped = beside_blind_spots(SIZE, map).unwrap();
        assert!(!has_blind_spot(mapped.addr() as u64, SIZE as u64));
        // what was there first is nobody's again
        let again = map_at(core::iter::once(spot), SIZE, protection).unwrap();
        for start in [mapped, again] {
            // SAFETY: nobody uses it.
            unsafe { munmap(start.cast(), SIZE) }.unwrap();
        }
    }
}
