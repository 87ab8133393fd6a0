//! The unwinder of the process asks `_dl_find_object` of the C library for frames, by a word that the dynamic loader wrote the address
//! to. Led to ours, it knows loads as well, and they need not be registered one by one: registering is a list in libgcc before
//! GCC 13, in which a million modules are looked for one after the other.

use super::lookup;
use crate::descriptions::{self, Description};
use crate::library::handle;
use crate::machine;
use core::ffi::{CStr, c_int, c_void};
use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::mm::{MprotectFlags, mprotect};
use std::sync::OnceLock;

/// Whether the unwinder of the process knows all loads that are [entered](super::registry::Entered): libraries are changed when this is asked
/// for the first time.
pub(super) fn is_in_place() -> bool {
    static IS_IN_PLACE: OnceLock<bool> = OnceLock::new();
    *IS_IN_PLACE.get_or_init(lead_all)
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// Ends a backtrace (`_URC_END_OF_STACK`).
unsafe extern "C" fn end(_: *mut c_void, _: *mut c_void) -> c_int {
    5
}

/// Leads every library's word to our function; whether the one with the unwinder of the process has one.
fn lead_all() -> bool {
    // the dynamic loader writes some words when a function is called for the first time: it has no more reason to
    // SAFETY: the callback has the type asked for, and looks at nothing.
    unsafe { _Unwind_Backtrace(end, core::ptr::null_mut()) };
    let mut words = Words {
        places: Vec::new(),
        unwinder: _Unwind_Backtrace as *const () as u64,
        is_found: false,
    };
    descriptions::each(|library| {
        words.add(library);
        ControlFlow::Continue(())
    });
    if !words.is_found {
        return false;
    }
    handle::keep_this_library();
    let target = lookup::function();
    // SAFETY: the words are those that the dynamic loader has for this function; ours does the same and more.
    words.places.iter().all(|place| unsafe { place.lead_to(target) })
}

/// What is known of the libraries' words.
struct Words {
    places: Vec<Place>,
    /// An address in the library that unwinds for this process.
    unwinder: u64,
    /// That library has a word.
    is_found: bool,
}

/// A word that holds the address of the function.
struct Place {
    address: u64,
    is_read_only: bool,
}

impl Place {
    /// # Safety
    /// The word is a library's, for a function that may be this one.
    unsafe fn lead_to(&self, target: u64) -> bool {
        let page = rustix::param::page_size() as u64;
        let start = core::ptr::with_exposed_provenance_mut::<c_void>(
            (self.address - self.address % page) as usize,
        );
        let protect = |flags| {
            // SAFETY: the page was writable while the library was relocated.
            !self.is_read_only || unsafe { mprotect(start, page as usize, flags) }.is_ok()
        };
        if !protect(MprotectFlags::READ | MprotectFlags::WRITE) {
            return false;
        }
        let word = core::ptr::with_exposed_provenance_mut::<u64>(self.address as usize);
        // SAFETY: the word is mapped, aligned and writable now.
        unsafe { AtomicU64::from_ptr(word) }.store(target, Ordering::Release);
        // should it stay writable, no harm is done
        protect(MprotectFlags::READ);
        true
    }
}

/// Tags of a dynamic section (gABI ch. 5).
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_JMPREL: u64 = 23;
const TAGS: usize = 24;

impl Words {
    /// Adds those of one library.
    fn add(&mut self, library: &Description<'_>) {
        let loaded = library.headers().iter().filter(|header| header.p_type == libc::PT_LOAD);
        let mapped: Vec<_> = loaded.map(|header| library.range(header)).collect();
        let of = |r#type| library.header(r#type).map(|header| library.range(header));
        let Some(dynamic) = of(libc::PT_DYNAMIC) else { return };
        let mut values = [0u64; TAGS];
        for at in dynamic.step_by(16) {
            // SAFETY: the dynamic section is mapped and consists of pairs of words.
            match unsafe { [word(at), word(at.wrapping_add(8))] } {
                [0, _] => break,
                [tag, value] => {
                    if let Some(place) = values.get_mut(tag as usize) {
                        *place = value;
                    }
                }
            }
        }
        let value = |tag: u64| values.get(tag as usize).copied().unwrap_or(0);
        // most dynamic loaders have made them addresses, some have not
        let address = |tag| match value(tag) {
            offset if offset < library.bias() => offset.wrapping_add(library.bias()),
            address => address,
        };
        let is_mapped = |range: &Range<u64>| {
            mapped.iter().any(|part| part.start <= range.start && range.end <= part.end)
        };
        let relro = of(libc::PT_GNU_RELRO);
        for (table, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let table = address(table)..address(table).wrapping_add(value(size));
            if value(size) == 0 || !is_mapped(&table) {
                continue;
            }
            for at in table.step_by(24) {
                // SAFETY: the dynamic section says that so many relocations are there.
                let [offset, what, addend] =
                    unsafe { [word(at), word(at.wrapping_add(8)), word(at.wrapping_add(16))] };
                let kind = what & 0xffff_ffff;
                let is_address = kind == machine::JUMP_SLOT || machine::ADDRESSES.contains(&kind);
                if !is_address || addend != 0 || what >> 32 == 0 {
                    continue;
                }
                let symbol = address(DT_SYMTAB).wrapping_add((what >> 32).wrapping_mul(24));
                // SAFETY: relocations name symbols of the table, which names have in the strings.
                let name = unsafe {
                    let name = address(DT_STRTAB).wrapping_add(word(symbol) & 0xffff_ffff);
                    CStr::from_ptr(core::ptr::with_exposed_provenance(name as usize))
                };
                let place = library.bias().wrapping_add(offset);
                if name == c"_dl_find_object" && place.is_multiple_of(8) {
                    let is_read_only = relro.as_ref().is_some_and(|relro| relro.contains(&place));
                    self.places.push(Place { address: place, is_read_only });
                    self.is_found |= mapped.iter().any(|part| part.contains(&self.unwinder));
                }
            }
        }
    }
}

/// The word at an address.
///
/// # Safety
/// It is mapped and aligned.
unsafe fn word(address: u64) -> u64 {
    // SAFETY: the caller vouches for it.
    unsafe { core::ptr::with_exposed_provenance::<u64>(address as usize).read() }
}
