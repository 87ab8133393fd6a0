//! What an unwinder asks for frames, for the code of loads: functions of the C library that know loads as well as libraries.

use super::registry::{self, Header};
use crate::external::External;
use core::ffi::{c_char, c_int, c_void};
use core::ops::Range;
use elf_core::Name;
use std::sync::OnceLock;

/// What stands for the functions of this name by which a load's own unwinder finds frames.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    let function = match name.0 {
        b"_dl_find_object" => return Some(External::function(self::function())),
        b"dl_iterate_phdr" => iterate as *const (),
        _ => return None,
    };
    Some(External::function(function.expose_provenance() as u64))
}

/// The address of [`find_object`], which has all that it needs then.
pub(super) fn function() -> u64 {
    of_the_process();
    (find_object as *const ()).expose_provenance() as u64
}

/// `struct dl_find_object` (<dlfcn.h>, glibc 2.35), as machines have it that need no base for their tables.
#[repr(C)]
pub(super) struct Found {
    flags: u64,
    map_start: *const c_void,
    map_end: *const c_void,
    link_map: *const LinkMap,
    eh_frame: *const Header,
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

type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// The C library's own, if it has it.
fn of_the_process() -> Option<FindObject> {
    static FUNCTION: OnceLock<Option<FindObject>> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        // SAFETY: asks for a function of the C library by its name.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        // SAFETY: this is its type (<dlfcn.h>).
        (!found.is_null())
            .then(|| unsafe { core::mem::transmute::<*mut c_void, FindObject>(found) })
    })
}

/// `_dl_find_object`, of loads too. Where the C library has an answer, it is all that is asked: that function takes no lock and no
/// memory, and signal handlers and children of threads that have loaded something rely on it. Frames of loads cost both.
///
/// # Safety
/// As for the C library's function: there is room for the result.
pub(super) unsafe extern "C" fn find_object(address: *const c_void, result: *mut Found) -> c_int {
    // SAFETY: passes on what we were given.
    if of_the_process().is_some_and(|find| unsafe { find(address, result) } == 0) {
        return 0;
    }
    let wanted = address.addr() as u64;
    let Some((code, load)) = registry::load_of(wanted) else { return -1 };
    let Some((_, header)) = load.index().function(wanted) else { return -1 };
    let at = |address: u64| core::ptr::with_exposed_provenance(address as usize);
    let found = Found {
        flags: 0,
        map_start: at(code.start),
        map_end: at(code.end),
        link_map: &raw const NO_LIBRARY,
        // the load has it as long as its code is there
        eh_frame: core::ptr::from_ref(header),
        reserved: [0; 7],
    };
    // SAFETY: the caller gives room.
    unsafe { result.write(found) };
    0
}

type Callback = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// Who asked, and for whom.
struct Asked {
    callback: Callback,
    data: *mut c_void,
    /// What the C library said of its own comings and goings.
    changes: (u64, u64),
}

/// `dl_iterate_phdr`, of loads too: one for each table, without a name, with the code that the table describes and its index.
///
/// # Safety
/// As for the C library's function.
unsafe extern "C" fn iterate(callback: Callback, data: *mut c_void) -> c_int {
    let mut asked = Asked { callback, data, changes: (0, 0) };
    // SAFETY: the callback has the type asked for, and the request outlives the call.
    let result = unsafe { libc::dl_iterate_phdr(Some(pass_on), (&raw mut asked).cast()) };
    if result != 0 {
        return result;
    }
    for load in registry::loads() {
        for (code, header) in load.index().tables() {
            // SAFETY: as the caller vouches for its callback.
            let result = unsafe { asked.tell(code, header) };
            if result != 0 {
                return result;
            }
        }
    }
    0
}

/// Gives the caller what the C library says of a library. Who keeps answers for later looks whether anything has changed, and loads change.
unsafe extern "C" fn pass_on(
    info: *mut libc::dl_phdr_info,
    size: usize,
    asked: *mut c_void,
) -> c_int {
    // SAFETY: `iterate` has given it.
    let asked = unsafe { &mut *asked.cast::<Asked>() };
    let (comings, goings) = registry::changes();
    if size < size_of::<libc::dl_phdr_info>() {
        // SAFETY: passes on what we were given.
        return unsafe { (asked.callback)(info, size, asked.data) };
    }
    // SAFETY: `dl_iterate_phdr` gives a valid description of this size.
    let mut info = unsafe { info.read() };
    asked.changes = (info.dlpi_adds, info.dlpi_subs);
    info.dlpi_adds = info.dlpi_adds.wrapping_add(comings);
    info.dlpi_subs = info.dlpi_subs.wrapping_add(goings);
    // SAFETY: as above; the description is a copy.
    unsafe { (asked.callback)(&raw mut info, size_of::<libc::dl_phdr_info>(), asked.data) }
}

impl Asked {
    /// Gives the caller a table of a load.
    ///
    /// # Safety
    /// The callback is one for `dl_iterate_phdr`.
    unsafe fn tell(&self, code: &Range<u64>, header: &Header) -> c_int {
        let segment = |r#type, flags, start: u64, size: u64| libc::Elf64_Phdr {
            p_type: r#type,
            p_flags: flags,
            p_offset: 0,
            p_vaddr: start,
            p_paddr: start,
            p_filesz: size,
            p_memsz: size,
            p_align: 1,
        };
        let index = core::ptr::from_ref(header).expose_provenance() as u64;
        let size = code.end.saturating_sub(code.start);
        let segments = [
            segment(libc::PT_LOAD, libc::PF_R | libc::PF_X, code.start, size),
            segment(libc::PT_GNU_EH_FRAME, libc::PF_R, index, size_of::<Header>() as u64),
        ];
        let (comings, goings) = registry::changes();
        let mut info = libc::dl_phdr_info {
            dlpi_addr: 0,
            dlpi_name: NO_LIBRARY.name,
            dlpi_phdr: segments.as_ptr(),
            dlpi_phnum: segments.len() as u16,
            dlpi_adds: self.changes.0.wrapping_add(comings),
            dlpi_subs: self.changes.1.wrapping_add(goings),
            dlpi_tls_modid: 0,
            dlpi_tls_data: core::ptr::null_mut(),
        };
        // SAFETY: the caller vouches for the callback, which keeps nothing.
        unsafe { (self.callback)(&raw mut info, size_of::<libc::dl_phdr_info>(), self.data) }
    }
}

#[cfg(test)]
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
