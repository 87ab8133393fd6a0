//! The function of the C library that unwinders ask for frames (<dlfcn.h>, glibc 2.35).

use super::format::ASKED;
use super::registry;
use crate::descriptions;
use core::ffi::{c_char, c_int, c_void};
use core::ops::{ControlFlow, Range};
use exec_core::sync::OnceLock;

/// The address of [`find_object`], which has all that it needs then.
pub(super) fn function() -> u64 {
    of_the_process();
    (find_object as *const ()).expose_provenance() as u64
}

/// `struct dl_find_object` (<dlfcn.h>, glibc 2.35), as machines have it that need no base for their tables.
#[repr(C)]
pub(super) struct DlFindObject {
    flags: u64,
    map_start: *const c_void,
    map_end: *const c_void,
    link_map: *const LinkMap,
    /// The index of its table (LSB Core, "Exception Frame Header").
    eh_frame: *const c_void,
    reserved: [u64; 7],
}

/// The public part of `struct link_map` (<link.h>), of a library without a name or anything else, and room for what follows it.
#[repr(C)]
struct LinkMap {
    address: u64,
    name: *const c_char,
    rest: [usize; 126],
}

// SAFETY: nobody writes to it.
unsafe impl Sync for LinkMap {}

static NO_LIBRARY: LinkMap = LinkMap { address: 0, name: c"".as_ptr(), rest: [0; 126] };

type FindObject = unsafe extern "C" fn(*const c_void, *mut DlFindObject) -> c_int;

/// The C library's own, if it has it.
fn of_the_process() -> Option<FindObject> {
    static FUNCTION: OnceLock<Option<FindObject>> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        // SAFETY: asks for a function of the C library by its name.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, ASKED.as_ptr()) };
        // SAFETY: this is its type (<dlfcn.h>).
        (!found.is_null())
            .then(|| unsafe { core::mem::transmute::<*mut c_void, FindObject>(found) })
    })
}

/// The extent of what the C library has loaded at an address, and the address of the index of its unwinding table, for C libraries that have no
/// such function.
fn of_program(address: u64) -> Option<(Range<u64>, u64)> {
    let mut found = None;
    descriptions::each(|library| {
        if !library.holds(address) {
            return ControlFlow::Continue(());
        }
        let header = library.header(libc::PT_GNU_EH_FRAME);
        found = header.map(|header| (library.extent(), library.range(header).start));
        ControlFlow::Break(())
    });
    found
}

/// `_dl_find_object`, of loads too. Where the C library has an answer, it is all that is asked: that function takes no lock and no
/// memory, and signal handlers and children of threads that have loaded something rely on it. Frames of loads cost both.
///
/// # Safety
/// As for the C library's function: there is room for the result.
pub(super) unsafe extern "C" fn find_object(
    address: *const c_void,
    result: *mut DlFindObject,
) -> c_int {
    // SAFETY: passes on what we were given.
    if of_the_process().is_some_and(|find| unsafe { find(address, result) } == 0) {
        return 0;
    }
    let wanted = address.addr() as u64;
    let at = |address: u64| core::ptr::with_exposed_provenance(address as usize);
    let of_load = || {
        let (code, load) = registry::load_of(wanted)?;
        // the load has it as long as its code is there
        let (_, header) = load.index().function(wanted)?;
        Some((code, core::ptr::from_ref(header).cast()))
    };
    let of_program = || {
        let (extent, header) = of_program(wanted).filter(|_| of_the_process().is_none())?;
        Some((extent, at(header)))
    };
    let Some((code, eh_frame)) = of_program().or_else(of_load) else { return -1 };
    let found = DlFindObject {
        flags: 0,
        map_start: at(code.start),
        map_end: at(code.end),
        link_map: &raw const NO_LIBRARY,
        eh_frame,
        reserved: [0; 7],
    };
    // SAFETY: the caller gives room.
    unsafe { result.write(found) };
    0
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// A signal handler, or the child of a thread that was loading, unwinds through the program although the list of loads is locked.
    #[test]
    fn functions_of_the_program_need_no_lock() {
        let here = (functions_of_the_program_need_no_lock as *const ()).cast::<c_void>();
        let ask = |address| {
            let mut found = core::mem::MaybeUninit::zeroed();
            // SAFETY: there is room.
            unsafe { find_object(address, found.as_mut_ptr()) }
        };
        assert_eq!(ask(here), 0);
        registry::while_locked(|| assert_eq!(ask(here), 0));
        assert_eq!(ask(core::ptr::without_provenance(16)), -1);
    }
}
