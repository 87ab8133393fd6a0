//! `dlopen` of code of a library: what it wants is looked for in the folders that the library says (`DT_RUNPATH`, `DT_RPATH`), of which the
//! dynamic loader knows nothing; and a library that needs that one is [loaded as it was](super::joins).

use super::handle::Handle;
use super::loaded::Held;
use super::needed;
use crate::threads::that_needs;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::hint::black_box;
use exec_core::sync::OnceLock;
use std::ffi::CString;

/// What code opens.
pub(super) struct Wanted<'a> {
    /// A name, or a path.
    pub(super) name: &'a [u8],
    pub(super) is_lazy: bool,
    /// Only if it is there already (`RTLD_NOLOAD`).
    pub(super) is_there: bool,
    /// A library of the dynamic loader opens it: what that loader has comes first.
    pub(super) of_process: bool,
}

/// Gives a handle of a library out of bytes that code of another one opens, or of objects, if it is to be one.
type OpenOutOfBytes = unsafe fn(Option<&Held>, Wanted<'_>) -> Option<*mut c_void>;

/// Who opens those, once there are any.
static OUT_OF_BYTES: OnceLock<OpenOutOfBytes> = OnceLock::new();

/// Has libraries out of bytes opened by `open`.
pub(super) fn open_out_of_bytes(open: OpenOutOfBytes) {
    OUT_OF_BYTES.get_or_init(|| open);
}

/// `dlopen`, called from `caller`.
///
/// # Safety
/// As for the C library's function.
pub(crate) unsafe extern "C" fn open(
    name: *const c_char,
    flags: c_int,
    caller: *const c_void,
) -> *mut c_void {
    if !name.is_null() {
        // SAFETY: the caller has given a string.
        let name = unsafe { CStr::from_ptr(name) };
        // SAFETY: as the caller guarantees.
        if let Some(opened) = unsafe { in_folders(name, flags, caller.addr() as u64) } {
            return opened;
        }
    }
    // SAFETY: passes on what we were given, as this code, which is the program's, if the call is no jump.
    black_box(unsafe { libc::dlopen(name, flags) })
}

/// `dlopen`, called from a library of the dynamic loader that one out of bytes needs: null leaves it to the C library's function.
///
/// # Safety
/// As for the C library's function.
pub(crate) unsafe extern "C" fn open_of_process(name: *const c_char, flags: c_int) -> *mut c_void {
    let Some(open) = OUT_OF_BYTES.get().filter(|_| !name.is_null()) else {
        return core::ptr::null_mut();
    };
    // SAFETY: the caller has given a string.
    let name = unsafe { CStr::from_ptr(name) };
    if name.is_empty() || Handle::if_loaded(name).is_some() {
        return core::ptr::null_mut();
    }
    let wanted = Wanted {
        name: name.to_bytes(),
        is_lazy: flags & libc::RTLD_NOW == 0,
        is_there: flags & libc::RTLD_NOLOAD != 0,
        of_process: true,
    };
    // SAFETY: as the caller guarantees.
    let opened = unsafe { open(None, wanted) };
    // SAFETY: forgets what is said of what was looked for on the way.
    unsafe { libc::dlerror() };
    opened.unwrap_or(core::ptr::null_mut())
}

/// What code at `caller` opens by this name, if that is a library with folders, or with `$ORIGIN` in the name; null if it cannot be opened,
/// which `dlerror` says then.
///
/// # Safety
/// Constructors run.
unsafe fn in_folders(name: &CStr, flags: c_int, caller: u64) -> Option<*mut c_void> {
    let library = Held::of_code(caller);
    let folder = library.as_ref().and_then(|library| library.folder.as_deref());
    let expanded = needed::expanded(name.to_bytes(), folder);
    let wanted = Wanted {
        name: expanded.as_deref().unwrap_or(name.to_bytes()),
        is_lazy: flags & libc::RTLD_NOW == 0,
        is_there: flags & libc::RTLD_NOLOAD != 0,
        of_process: false,
    };
    let opened = OUT_OF_BYTES.get().and_then(|open| {
        // SAFETY: as the caller guarantees.
        unsafe { open(library.as_ref(), wanted) }
    });
    if let Some(opened) = opened {
        // SAFETY: forgets what is said of what was looked for on the way.
        unsafe { libc::dlerror() };
        return Some(opened);
    }
    // objects say no folders
    let library = library.as_ref()?;
    if name.to_bytes().contains(&b'/') {
        let path = expanded?;
        let path = CString::new(path).ok().filter(|path| **path != *name)?;
        // SAFETY: a string; as the caller guarantees.
        return Some(unsafe { libc::dlopen(path.as_ptr(), flags) });
    }
    if flags & libc::RTLD_NOLOAD != 0 || name.is_empty() {
        return None;
    }
    if let Some(_kept) = Handle::if_loaded(name) {
        // it is there until it is open: another thread may close it
        // SAFETY: as above.
        return Some(unsafe { libc::dlopen(name.as_ptr(), flags) });
    }
    let (tag, list) = needed::folders(&[(library.content.dynamic(), folder)])?;
    let (_file, path) = that_needs(&[name.to_bytes()], Some((tag, &list))).ok()?;
    let path = CString::new(path).ok()?;
    // what is found is opened as it is to be, but for what would hold for who needs it
    let needer_flags = flags & !(libc::RTLD_GLOBAL | libc::RTLD_NODELETE);
    // SAFETY: as above.
    let needer = unsafe { libc::dlopen(path.as_ptr(), needer_flags) };
    if needer.is_null() {
        return Some(needer);
    }
    // SAFETY: it is there now, by this name; and the handle is open.
    unsafe {
        let opened = libc::dlopen(name.as_ptr(), flags);
        libc::dlclose(needer);
        Some(opened)
    }
}
