//! Unwinders of LLVM that the dynamic loader has brought along with a library of C++, and shows to that library alone: a program that was opened
//! itself (an extension of Python, a plug-in) has the unwinder that it was linked to for itself, too, and libc++ takes libunwind. Such an
//! unwinder knows nothing of tables that others were given.

use crate::descriptions::{self, Description};
use crate::word;
use core::ffi::{CStr, c_void};
use core::ops::{ControlFlow, Range};
use elf_core::names::{DT_GNU_HASH, DT_NULL};
use elf_core::{Name, gnu_hash};
use exec_core::sync::{Mutex, hold};
use std::ffi::CString;
use std::sync::Arc;

/// Functions that make a whole table known to libunwind of LLVM, or unknown, where the process has it: its `__register_frame` takes
/// single entries.
pub(super) type OfLlvm = unsafe extern "C" fn(u64);

/// Their names.
pub(super) const ADD: &CStr = c"__unw_add_dynamic_eh_frame_section";
pub(super) const REMOVE: &CStr = c"__unw_remove_dynamic_eh_frame_section";

/// Functions of each by which tables become known to it, and unknown. They stay.
#[derive(Clone, Debug, Default)]
pub(super) struct Unwinders(Arc<[[OfLlvm; 2]]>);

/// How often libraries have come and gone.
type Changes = (u64, u64);

impl Unwinders {
    /// Those that are there now, but for the one that all see, which is told of tables anyway.
    pub(super) fn current(of_all: Option<[OfLlvm; 2]>) -> Self {
        static LATEST: Mutex<Option<(Changes, Unwinders)>> = Mutex::new(None);
        let latest = || LATEST.lock();
        let mut changes = (0, 0);
        descriptions::each(|library| {
            changes = library.changes();
            ControlFlow::Break(())
        });
        if let Some((of, known)) = &*latest()
            && *of == changes
            && changes != (0, 0)
        {
            return known.clone();
        }
        // without the lock: the dynamic loader has one of its own
        let found = Self::collect(of_all);
        *latest() = Some((changes, found.clone()));
        found
    }

    fn collect(of_all: Option<[OfLlvm; 2]>) -> Self {
        let mut libraries: Vec<(CString, Range<u64>)> = Vec::new();
        descriptions::each(|library| {
            // SAFETY: the dynamic loader shows what is loaded.
            if !library.path().is_empty() && unsafe { may_have(library, ADD) } {
                libraries.push((library.path().to_owned(), library.extent()));
            }
            ControlFlow::Continue(())
        });
        let mut known: Vec<[OfLlvm; 2]> = Vec::new();
        for (path, extent) in libraries {
            let Some(found) = has_both(&path, &extent) else { continue };
            // SAFETY: functions of these names have this type (<libunwind_ext.h>).
            let found = found.map(|it| unsafe { core::mem::transmute::<*mut c_void, OfLlvm>(it) });
            let is_it =
                |other: &[OfLlvm; 2]| other.map(|it| it as usize) == found.map(|it| it as usize);
            if !of_all.iter().chain(&known).any(is_it) {
                known.push(found);
            }
        }
        Self(known.into())
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes a table known to each.
    ///
    /// # Safety
    /// It was checked, a length of 0 ends it, and it stays where it is until it is [forgotten](Self::deregister).
    pub(super) unsafe fn register(&self, table: u64) {
        let _held = hold();
        for [add, _] in &*self.0 {
            // SAFETY: as the caller guarantees.
            unsafe { add(table) };
        }
    }

    /// Makes a table unknown again that was made [known](Self::register).
    pub(super) fn deregister(&self, table: u64) {
        for [_, remove] in &*self.0 {
            // SAFETY: it was registered, and is still mapped.
            unsafe { remove(table) };
        }
    }
}

/// The functions of the library at this path and in this extent, which stays in the process if it has them itself.
fn has_both(path: &CStr, extent: &Range<u64>) -> Option<[*mut c_void; 2]> {
    // what somebody else has opened may go with this one
    let _held = hold();
    let open = |flags| {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | flags;
        // SAFETY: it is not loaded by this if it is not there, so that no constructor runs.
        let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
        (!library.is_null()).then_some(library)
    };
    // SAFETY: it was opened by the above, and nothing is used of it afterwards unless it stays.
    let close = |library| _ = unsafe { libc::dlclose(library) };
    let library = open(0)?;
    let found = in_library(library, [ADD, REMOVE]);
    let found = found.filter(|all| all.iter().all(|it| extent.contains(&(it.addr() as u64))));
    let stays = found.is_some().then(|| open(libc::RTLD_NODELETE)).flatten();
    stays.into_iter().for_each(close);
    close(library);
    found.filter(|_| stays.is_some())
}

/// Whether a library shows a symbol of this name, as far as the filter of its hash table says (GNU gABI, "DT_GNU_HASH"): most libraries need not
/// be asked more.
///
/// # Safety
/// The library is loaded and relocated.
unsafe fn may_have(library: &Description<'_>, name: &CStr) -> bool {
    let Some(dynamic) = library.header(libc::PT_DYNAMIC) else { return false };
    let mut entry = library.range(dynamic).start;
    let table = loop {
        // SAFETY: the entries of a loaded library are there up to the one that ends them.
        match unsafe { [word::read(entry), word::read(entry.wrapping_add(word::SIZE))] } {
            [DT_NULL, _] => return true,
            // the loader may have added the bias
            [DT_GNU_HASH, table] if table < library.bias() => {
                break table.wrapping_add(library.bias());
            }
            [DT_GNU_HASH, table] => break table,
            _ => entry = entry.wrapping_add(2 * word::SIZE),
        }
    };
    let head = core::ptr::with_exposed_provenance::<[u32; 4]>(table as usize);
    // SAFETY: the dynamic loader looks symbols up in this table, which begins with four numbers and then has so many words.
    let [_, _, words, shift] = unsafe { head.read() };
    let hash = gnu_hash(Name(name.to_bytes()));
    let Some(at) = (hash / usize::BITS).checked_rem(words) else { return false };
    let place = table.wrapping_add(16).wrapping_add(u64::from(at).wrapping_mul(word::SIZE));
    // SAFETY: as above.
    let word = unsafe { word::read(place) } as usize;
    let bits = 1usize.wrapping_shl(hash) | 1usize.wrapping_shl(hash.wrapping_shr(shift));
    word & bits == bits
}

/// What a library, or what stands for several, has of these names, if it has all.
pub(super) fn in_library(library: *mut c_void, names: [&CStr; 2]) -> Option<[*mut c_void; 2]> {
    // SAFETY: the handle is open, or stands for several libraries; the names end in NUL.
    let found = names.map(|name| unsafe { libc::dlsym(library, name.as_ptr()) });
    found.iter().all(|address| !address.is_null()).then_some(found)
}
