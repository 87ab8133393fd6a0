//! Libraries out of bytes that code has opened by `dlopen`: what it is given for a handle, and what it may do with one. The dynamic loader
//! knows nothing of them.

use super::described;
use super::loaded::{Held, Member, Unit};
use super::members;
use crate::external::External;
use crate::machine;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr;
use elf_core::Name;
use elf_core::names::PT_DYNAMIC;
use exec_core::sync::Mutex;
use std::ffi::{CString, OsStr};
use std::fs::{Metadata, metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Weak;

/// Those that are open.
static OPEN: Mutex<Vec<PlugIn>> = Mutex::new(Vec::new());

/// Those that were loaded.
static LOADED: Mutex<Vec<Weak<Unit>>> = Mutex::new(Vec::new());

struct PlugIn {
    held: Held,
    map: Box<LinkMap>,
    /// The folder that it is in, for `RTLD_DI_ORIGIN`.
    origin: CString,
    /// How often it was opened and not closed.
    count: usize,
}

/// What a handle points to: programs read it as the beginning of a `struct link_map` (<link.h>). Words, because it is nobody's to follow
/// here.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: usize,
    dynamic: usize,
    next: usize,
    previous: usize,
}

impl PlugIn {
    fn new(held: Held) -> Self {
        let described = described::at(held.memory.address());
        let name = described.map_or(ptr::null(), |described| described.file);
        let segments = held.content.image().file().segments();
        let dynamic = segments.iter().find(|segment| segment.r#type == PT_DYNAMIC);
        let dynamic = dynamic.map_or(0, |it| it.address.wrapping_add(held.bias));
        let folder = held.folder.as_deref().map_or(&b""[..], |it| it.as_os_str().as_bytes());
        let origin = CString::new(folder).unwrap_or_default();
        let map = LinkMap {
            bias: held.bias as usize,
            name: name.expose_provenance(),
            dynamic: dynamic as usize,
            next: 0,
            previous: 0,
        };
        Self { held, map: Box::new(map), origin, count: 0 }
    }

    fn handle(&self) -> *mut c_void {
        ptr::from_ref(&*self.map).cast_mut().cast()
    }

    fn is(&self, handle: *mut c_void) -> bool {
        ptr::eq(self.handle(), handle)
    }
}

/// A handle of the library, which stays till that is closed.
pub(super) fn open(held: &Held) -> *mut c_void {
    let mut open = OPEN.lock();
    let known = open.iter().position(|plug_in| plug_in.held.is(held));
    let index = known.unwrap_or(open.len());
    if known.is_none() {
        open.push(PlugIn::new(held.clone()));
    }
    let Some(plug_in) = open.get_mut(index) else { return ptr::null_mut() };
    plug_in.count = plug_in.count.saturating_add(1);
    plug_in.handle()
}

/// The library of a handle that [`open`] has given.
pub(super) fn of_handle(handle: usize) -> Option<Held> {
    let handle = ptr::without_provenance_mut(handle);
    let open = OPEN.lock();
    open.iter().find(|plug_in| plug_in.is(handle)).map(|plug_in| plug_in.held.clone())
}

/// Whether [`open`] has given this handle.
pub(super) fn is_handle(handle: usize) -> bool {
    let handle = ptr::without_provenance_mut(handle);
    OPEN.lock().iter().any(|plug_in| plug_in.is(handle))
}

/// Says that a library is there, with those that were loaded for it.
pub(super) fn enter(library: &Held) {
    let mut loaded = LOADED.lock();
    loaded.retain(|unit| unit.strong_count() > 0);
    loaded.push(library.downgrade());
}

/// The libraries out of bytes that code of this one meets: it, those that it was opened with, those that code has opened, and what all
/// these need. Objects meet all that there are.
pub(super) fn met_by(library: Option<&Held>) -> Vec<Held> {
    let mut first = Vec::new();
    match library {
        Some(library) => {
            first.push(library.clone());
            first.extend(library.scopes());
        }
        None => first.extend(LOADED.lock().iter().filter_map(Held::first_of)),
    }
    first.extend(OPEN.lock().iter().map(|plug_in| plug_in.held.clone()));
    let mut all = Vec::<Held>::new();
    for library in first {
        let members = members::of_held(&library).filter_map(|member| match member {
            Member::Loaded(held) => Some(held),
            Member::Process(_) => None,
        });
        for held in members {
            if !all.iter().any(|known| known.is(&held)) {
                all.push(held);
            }
        }
    }
    all
}

/// The one of these that has the name.
pub(super) fn called<'a>(libraries: &'a [Held], name: &[u8]) -> Option<&'a Held> {
    libraries.iter().find(|library| !name.is_empty() && name_of(library) == Some(name))
}

/// The name of a library: its own, or that of its file, if it says none.
pub(super) fn name_of(library: &Held) -> Option<&[u8]> {
    match &*library.name {
        [] => path_of(library)?.file_name().map(OsStr::as_bytes),
        own => Some(own),
    }
}

/// The one of these that is of this file.
pub(super) fn of_file<'a>(libraries: &'a [Held], file: &Metadata) -> Option<&'a Held> {
    let is_it = |held: &&Held| {
        let other = path_of(held).and_then(|path| metadata(path).ok());
        other.is_some_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
    };
    libraries.iter().find(is_it)
}

/// Where a library came from, if from a file.
fn path_of(library: &Held) -> Option<&Path> {
    let described = described::at(library.memory.address())?;
    // SAFETY: the name is there as long as the library.
    let path = unsafe { CStr::from_ptr(described.file) }.to_bytes();
    path.contains(&b'/').then(|| Path::new(OsStr::from_bytes(path)))
}

/// Our function for this name: `dlopen`, and `dlclose` and `dlinfo` of handles that it gives, too.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    let function = match name.0 {
        b"dlopen" => machine::dlopen::dlopen as *const (),
        b"dlclose" => close as *const (),
        b"dlinfo" => inform as *const (),
        _ => return None,
    };
    Some(External::function(function.expose_provenance() as u64))
}

/// `dlclose`.
///
/// # Safety
/// As for the C library's function.
pub(super) unsafe extern "C" fn close(handle: *mut c_void) -> c_int {
    let mut open = OPEN.lock();
    let Some(index) = open.iter().position(|plug_in| plug_in.is(handle)) else {
        drop(open);
        // SAFETY: passes on what we were given.
        return unsafe { libc::dlclose(handle) };
    };
    let rest = open.get_mut(index).map_or(0, |plug_in| {
        plug_in.count = plug_in.count.saturating_sub(1);
        plug_in.count
    });
    let gone = (rest == 0).then(|| open.swap_remove(index));
    drop(open);
    // destructors run, which may open and close
    drop(gone);
    0
}

/// `dlinfo`.
///
/// # Safety
/// As for the C library's function.
pub(super) unsafe extern "C" fn inform(
    handle: *mut c_void,
    request: c_int,
    result: *mut c_void,
) -> c_int {
    const RTLD_DI_LMID: c_int = 1;
    const RTLD_DI_LINKMAP: c_int = 2;
    const RTLD_DI_ORIGIN: c_int = 6;
    unsafe extern "C" {
        fn dlinfo(handle: *mut c_void, request: c_int, result: *mut c_void) -> c_int;
    }
    let open = OPEN.lock();
    let Some(plug_in) = open.iter().find(|plug_in| plug_in.is(handle)) else {
        drop(open);
        // SAFETY: passes on what we were given.
        return unsafe { dlinfo(handle, request, result) };
    };
    let origin = plug_in.origin.as_bytes_with_nul();
    // SAFETY: who calls has room for what is asked for.
    unsafe {
        match request {
            RTLD_DI_LMID => result.cast::<c_long>().write(0),
            RTLD_DI_LINKMAP => result.cast::<*mut c_void>().write(plug_in.handle()),
            RTLD_DI_ORIGIN => {
                let from = origin.as_ptr().cast::<c_char>();
                result.cast::<c_char>().copy_from_nonoverlapping(from, origin.len());
            }
            _ => return -1,
        }
    }
    0
}
