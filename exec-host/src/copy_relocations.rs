//! Variables of libraries that were moved to where code without `-fPIC` reaches them, as the linker of an executable and the
//! dynamic loader do together with `R_X86_64_COPY`: the variable gets a new place, and every library that names it is led there.
//!
//! A variable is moved once, and stays where it was moved to.

use crate::descriptions::{self, Description};
use crate::machine;
use crate::memory::{Mapping, MappingOptions};
use core::ffi::c_void;
use core::ops::{ControlFlow, Range};
use rustix::mm::{MprotectFlags, mprotect};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// New addresses by old ones.
static MOVED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn moved() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    MOVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the variable is now that the dynamic loader has at `address`.
pub(crate) fn current(address: u64) -> u64 {
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
    let slots = Slots::that_hold(address);
    if slots.places.is_empty() {
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
    // SAFETY: the caller vouches for the bytes, and that nobody writes to them.
    place.copy_from_slice(unsafe { core::slice::from_raw_parts(data, place.len()) });
    // SAFETY: each is a word of a library's that the dynamic loader has written the address to.
    if !unsafe { slots.lead_to(new) } {
        return false;
    }
    moved.insert(address, new);
    true
}

/// Words of libraries that hold the address of a variable because the dynamic loader wrote it there by name.
#[derive(Debug, Default)]
struct Slots {
    address: u64,
    places: Vec<u64>,
    /// What is not writable any more.
    read_only: Vec<Range<u64>>,
}

const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;

impl Slots {
    fn that_hold(address: u64) -> Self {
        let mut slots = Self { address, ..Self::default() };
        descriptions::each(|library| {
            // SAFETY: what the dynamic loader shows is loaded and relocated.
            unsafe { slots.add(library) };
            ControlFlow::Continue(())
        });
        slots
    }

    /// Adds those of one library.
    ///
    /// # Safety
    /// The description is that of a library which is loaded and relocated.
    unsafe fn add(&mut self, library: &Description<'_>) {
        let (mut first, mut size) = (0, 0);
        for header in library.headers() {
            match header.p_type {
                libc::PT_DYNAMIC => {
                    for at in library.range(header).step_by(16) {
                        // SAFETY: the dynamic section is mapped and consists of pairs of words.
                        match unsafe { [word(at), word(at.wrapping_add(8))] } {
                            [0, _] => break,
                            [DT_RELA, value] => first = value,
                            [DT_RELASZ, value] => size = value,
                            _ => {}
                        }
                    }
                }
                libc::PT_GNU_RELRO => self.read_only.push(library.range(header)),
                _ => {}
            }
        }
        // most dynamic loaders have made it an address, some have not
        if first < library.bias() {
            first = first.wrapping_add(library.bias());
        }
        for at in (first..first.wrapping_add(size)).step_by(24) {
            // SAFETY: the dynamic section says that so many relocations are there.
            let [offset, what, addend] =
                unsafe { [word(at), word(at.wrapping_add(8)), word(at.wrapping_add(16))] };
            if machine::ADDRESSES.contains(&(what & 0xffff_ffff)) && what >> 32 != 0 && addend == 0
            {
                let place = library.bias().wrapping_add(offset);
                // SAFETY: the library was relocated: the place is mapped.
                if place % 8 == 0 && unsafe { word(place) } == self.address {
                    self.places.push(place);
                }
            }
        }
    }

    /// Writes another address to all of them, or to none.
    ///
    /// # Safety
    /// They are mapped, and whoever reads them may find either address.
    unsafe fn lead_to(&self, new: u64) -> bool {
        for &place in &self.places {
            let is_read_only = self.read_only.iter().any(|range| range.contains(&place));
            // SAFETY: the page is a library's, and was writable while that was loaded.
            let open = || unsafe { protect(place, MprotectFlags::READ | MprotectFlags::WRITE) };
            if is_read_only && !open() {
                return false;
            }
        }
        for &place in &self.places {
            let word = core::ptr::with_exposed_provenance_mut::<u64>(place as usize);
            // SAFETY: the word is mapped, aligned and writable now.
            unsafe { core::sync::atomic::AtomicU64::from_ptr(word) }
                .store(new, core::sync::atomic::Ordering::Release);
        }
        for &place in &self.places {
            if self.read_only.iter().any(|range| range.contains(&place)) {
                // SAFETY: as above. If it fails, the page stays writable, as it was when the library was loaded.
                let _ = unsafe { protect(place, MprotectFlags::READ) };
            }
        }
        true
    }
}

/// Gives the page of a place permissions.
///
/// # Safety
/// Those who use the page can live with that.
unsafe fn protect(place: u64, flags: MprotectFlags) -> bool {
    let page = rustix::param::page_size();
    let start = place as usize & !page.wrapping_sub(1);
    let start = core::ptr::with_exposed_provenance_mut::<c_void>(start);
    // SAFETY: the caller vouches for the page.
    unsafe { mprotect(start, page, flags) }.is_ok()
}

/// The word at an address.
///
/// # Safety
/// It is mapped and aligned.
unsafe fn word(address: u64) -> u64 {
    // SAFETY: the caller vouches for it.
    unsafe { core::ptr::with_exposed_provenance::<u64>(address as usize).read() }
}
