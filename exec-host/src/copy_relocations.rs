//! Variables of libraries that were moved to where code without `-fPIC` reaches them, as the linker of an executable and the
//! dynamic loader do together with `R_X86_64_COPY`: the variable gets a new place, and every library that names it is led there.
//!
//! A variable is moved once, and stays where it was moved to.

use crate::descriptions;
use crate::library_words::{self, Place};
use crate::memory::{Mapping, MappingOptions};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use exec_core::sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// New addresses by old ones.
static MOVED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn moved() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    MOVED.lock()
}

/// Whether there are any: in most processes there are none, and all that libraries refer to is asked for.
static ANY: AtomicBool = AtomicBool::new(false);

/// Where the variable is now that the dynamic loader has at `address`.
pub(crate) fn current(address: u64) -> u64 {
    if !ANY.load(Ordering::Acquire) {
        return address;
    }
    moved().get(&address).copied().unwrap_or(address)
}

/// Moves the variable of `size` bytes that the dynamic loader has at `address` below `limit`, if there is one: whether that was
/// done. It is not if it was moved before, if there is no memory, or if no library names it in a place that can be led elsewhere.
///
/// # Safety
/// So many bytes are there, and until this returns no other thread uses them. Nobody has kept a pointer to them that matters.
pub(crate) unsafe fn move_variable(address: u64, size: u64, limit: Option<u64>) -> bool {
    let mut moved = moved();
    if moved.contains_key(&address) || moved.values().any(|&new| new == address) {
        return false;
    }
    let places = places_of(address);
    if places.is_empty() {
        return false;
    }
    let mapping_options = MappingOptions { size, alignment: 1, limit, ..MappingOptions::default() };
    let Ok(mapping) = Mapping::new(&mapping_options) else { return false };
    let mut mapping = core::mem::ManuallyDrop::new(mapping); // as long as the process
    let new = mapping.address();
    let Some(place) =
        usize::try_from(size).ok().and_then(|size| mapping.bytes_mut().get_mut(..size))
    else {
        return false;
    };
    let data = core::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the caller guarantees the bytes, and that nobody writes to them.
    place.copy_from_slice(unsafe { core::slice::from_raw_parts(data, place.len()) });
    // SAFETY: each is a word of a library's that the dynamic loader has written the address to.
    if !unsafe { library_words::lead(&places, new) } {
        return false;
    }
    moved.insert(address, new);
    ANY.store(true, Ordering::Release);
    true
}

/// Words of libraries that hold the address of a variable because the dynamic loader wrote it there by name.
fn places_of(address: u64) -> Vec<Place> {
    let mut places = Vec::new();
    descriptions::each(|library| {
        // SAFETY: what the dynamic loader shows is loaded and relocated.
        unsafe {
            library_words::each(library, |_, place| {
                if place.value() == address {
                    places.push(place);
                }
            });
        }
        ControlFlow::Continue(())
    });
    places
}
