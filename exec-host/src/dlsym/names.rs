//! The names of loads whose code looks for symbols when it runs, and what `dlsym` finds there.

use crate::Host;
use crate::c_library;
use crate::symbols::Exports;
use crate::threads::dynamic;
use core::ffi::{CStr, c_char, c_void};
use core::hint::black_box;
use core::ops::Range;
use core::ptr;
use elf_core::Name;
use elf_core::{Arch as _, SegmentFlags};
use elf_image::SymbolReference;
use elf_layout::ExternalKind;
use exec_core::sync::{OnceLock, RwLock};
use std::collections::BTreeMap;
#[cfg(target_env = "gnu")]
use std::ffi::CString;
use std::sync::Arc;

/// The loads whose code asks, by where a segment starts: where it ends, and the names of the load.
static LOADS: RwLock<BTreeMap<u64, (u64, Arc<Names>)>> = RwLock::new(BTreeMap::new());

/// Where code looks for a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// `RTLD_DEFAULT`.
    Default,
    /// `RTLD_NEXT`.
    Next,
    /// What was opened, by its handle, and what that needs.
    Opened(usize),
}

/// Gives the address of what a reference of the code at an address means, if it is anywhere; `None` if that is not for libraries to say.
type OfLibraries = fn(Place, SymbolReference<'_>, u64) -> Option<Option<u64>>;

/// Who answers code of libraries, once there are any.
static OF_LIBRARIES: OnceLock<OfLibraries> = OnceLock::new();

/// Says whether a handle is that of a library out of bytes that code has opened.
static IS_OPEN: OnceLock<fn(usize) -> bool> = OnceLock::new();

/// Has code of libraries answered by `find`, and that of the dynamic loader's where `is_open` says that a handle is not of that.
pub(crate) fn answer_libraries(find: OfLibraries, is_open: fn(usize) -> bool) {
    OF_LIBRARIES.get_or_init(|| find);
    IS_OPEN.get_or_init(|| is_open);
}

/// Whether a handle is that of a library out of bytes.
pub(crate) extern "C" fn is_open(handle: *mut c_void) -> bool {
    IS_OPEN.get().is_some_and(|is_open| is_open(handle.addr()))
}

/// What a load shows.
pub(crate) struct Names {
    exports: Exports,
    /// Addresses, sizes and numbers of names, by rising address.
    symbols: Box<[(u64, u64, usize)]>,
    /// Where its memory begins.
    pub(super) start: u64,
}

/// A load whose names are known as long as this lives.
pub(crate) struct Entered {
    starts: Box<[u64]>,
    names: Arc<Names>,
}

impl Names {
    /// Those of a load with these segments.
    pub(crate) fn new(exports: Exports, segments: &[(Range<u64>, SegmentFlags)]) -> Self {
        let start = segments.iter().map(|(range, _)| range.start).min().unwrap_or(0);
        let mut symbols: Box<[_]> = exports.symbols().collect();
        symbols.sort_unstable();
        Self { exports, symbols, start }
    }

    /// Makes them known, as those of these segments.
    pub(crate) fn enter(self, segments: &[(Range<u64>, SegmentFlags)]) -> Entered {
        let names = Arc::new(self);
        let mut loads = LOADS.write();
        for (range, _) in segments {
            loads.insert(range.start, (range.end, Arc::clone(&names)));
        }
        let starts = segments.iter().map(|(range, _)| range.start).collect();
        Entered { starts, names }
    }

    /// The symbol that an address is in: its own address, and its name.
    pub(super) fn at(&self, address: u64) -> Option<(u64, &CStr)> {
        let end = self.symbols.partition_point(|(start, ..)| *start <= address);
        let before = self.symbols.get(..end)?.iter().rev();
        // aliases have one address, and what is larger may have begun earlier
        let is_in = |start: u64, size: u64| address.wrapping_sub(start) < size.max(1);
        let found = before.take(64).find(|(start, size, _)| is_in(*start, *size));
        let (start, _, number) = *found?;
        Some((start, self.exports.name(number)?))
    }
}

impl Entered {
    /// What the load shows.
    pub(crate) fn exports(&self) -> &Exports {
        &self.names.exports
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut loads = LOADS.write();
        let gone: Vec<_> = self.starts.iter().filter_map(|start| loads.remove(start)).collect();
        drop(loads);
        drop(gone);
    }
}

/// The names of the load that an address is in.
pub(super) fn load_of(address: u64) -> Option<Arc<Names>> {
    let loads = LOADS.read();
    let (_, (end, names)) = loads.range(..=address).next_back()?;
    (address < *end).then(|| Arc::clone(names))
}

/// What `dlopen(NULL)` gives.
fn program() -> *mut c_void {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    // SAFETY: it opens nothing.
    let handle = HANDLE
        .get_or_init(|| unsafe { libc::dlopen(ptr::null(), libc::RTLD_LAZY) }.expose_provenance());
    ptr::with_exposed_provenance_mut(*handle)
}

/// `dlsym`, called from `caller`: by `RTLD_DEFAULT` and of the program, what the caller's load has comes first, as in an executable.
///
/// # Safety
/// As for the C library's function.
pub(crate) unsafe extern "C" fn find(
    handle: *mut c_void,
    name: *const c_char,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: the caller has given a string.
    if let Some(found) = unsafe { find_in_library(handle, name, None, caller) } {
        return found;
    }
    // SAFETY: as above.
    match unsafe { find_in_load(handle, name, caller) } {
        // SAFETY: passes on what we were given; what is next to a program is next to this code, if the call is no jump.
        None => black_box(unsafe { libc::dlsym(handle, name) }),
        Some(address) => address,
    }
}

/// `dlvsym`, called from `caller`. Loads define versions by name (`NAME@VERSION`).
///
/// # Safety
/// As for the C library's function.
#[cfg(target_env = "gnu")]
pub(crate) unsafe extern "C" fn find_version(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: the caller has given strings.
    if let Some(found) = unsafe { find_in_library(handle, name, Some(version), caller) } {
        return found;
    }
    // SAFETY: as above.
    let words = unsafe { [CStr::from_ptr(name), CStr::from_ptr(version)] };
    let both = CString::new(words.map(CStr::to_bytes).join(&b'@')).unwrap_or_default();
    // SAFETY: it is a string.
    match unsafe { find_in_load(handle, both.as_ptr(), caller) } {
        // SAFETY: passes on what we were given, as above.
        None => black_box(unsafe { libc::dlvsym(handle, name, version) }),
        Some(address) => address,
    }
}

/// What the caller finds if it is a library, asked by `RTLD_DEFAULT` or `RTLD_NEXT`, or what it asks one for that is out of bytes; null if that
/// is nothing, which `dlerror` says then.
///
/// # Safety
/// The name is a string, and so is the version.
unsafe fn find_in_library(
    handle: *mut c_void,
    name: *const c_char,
    version: Option<*const c_char>,
    caller: *const c_void,
) -> Option<*mut c_void> {
    let place = match handle {
        libc::RTLD_DEFAULT => Place::Default,
        libc::RTLD_NEXT => Place::Next,
        _ => Place::Opened(handle.addr()),
    };
    // SAFETY: the caller guarantees it.
    let (name, version) =
        unsafe { (CStr::from_ptr(name), version.map(|version| CStr::from_ptr(version))) };
    let reference = SymbolReference {
        name: Name(name.to_bytes()),
        version: version.map(|version| Name(version.to_bytes())),
    };
    let find = OF_LIBRARIES.get()?;
    let found = find(place, reference, caller.addr() as u64)?;
    let Some(address) = found else {
        // asks all, who have it not, so that there are words of an error
        // SAFETY: they are strings.
        unsafe {
            let found = match version.filter(|_| place == Place::Default) {
                Some(version) => c_library::dlvsym(libc::RTLD_DEFAULT, name, version),
                None => libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()),
            };
            if !found.is_null() {
                let _ = c_library::dlvsym(libc::RTLD_DEFAULT, name, c"behind the caller");
            }
        }
        return Some(ptr::null_mut());
    };
    // SAFETY: forgets what is said of the libraries that were asked and have it not.
    unsafe { libc::dlerror() };
    Some(ptr::with_exposed_provenance_mut(address as usize))
}

/// What the caller's load has of a name, if it is asked at all.
///
/// # Safety
/// The name is a string.
unsafe fn find_in_load(
    handle: *mut c_void,
    name: *const c_char,
    caller: *const c_void,
) -> Option<*mut c_void> {
    if handle != libc::RTLD_DEFAULT && (handle == libc::RTLD_NEXT || handle != program()) {
        return None;
    }
    let names = load_of(caller.addr() as u64)?;
    // SAFETY: the caller guarantees it.
    let name = unsafe { CStr::from_ptr(name) };
    let found = names.exports.get(Name(name.to_bytes()))?.for_layout();
    if let ExternalKind::ThreadLocal { module, .. } = found.kind {
        let offset = found.address.wrapping_add_signed(Host::TLS?.dtp_bias);
        // SAFETY: the block is the load's, which is there: its code asks.
        return unsafe { dynamic::address(module, offset) };
    }
    Some(ptr::with_exposed_provenance_mut(usize::try_from(found.address).ok()?))
}
