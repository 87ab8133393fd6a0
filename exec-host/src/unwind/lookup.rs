//! What unwinders ask for frames, and others for data: functions of the C library that know loads as well as libraries.

use super::registry::{self, Extent, Header};
use crate::external::External;
use core::ffi::{c_char, c_int, c_void};
use core::ops::Range;
use elf_core::Name;
use std::sync::OnceLock;

/// What stands for the functions of this name by which code of a load finds what is loaded.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    let function = match name.0 {
        b"_dl_find_object" => return Some(External::function(self::function())),
        b"dl_iterate_phdr" => iterate as *const (),
        _ => return None,
    };
    Some(External::function(function.expose_provenance() as u64))
}

/// Where the memory of the load begins that has this code.
pub(crate) fn start_of_load(address: u64) -> Option<u64> {
    let (_, load) = registry::load_of(address)?;
    load.extent().segments.iter().map(|(range, _)| range.start).min()
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

/// `dl_iterate_phdr`, of loads too, without a name: all segments of a load, with the index of its unwinding table; where it has several
/// tables, one more for each of them, with the code that it describes.
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
        let (only, several) = match load.index().tables() {
            [(_, only)] => (Some(only), &[][..]),
            tables => (None, tables),
        };
        // SAFETY: as the caller vouches for its callback.
        let mut result = unsafe { asked.tell_extent(load.extent(), only) };
        for (code, index) in several {
            if result == 0 {
                // SAFETY: as above.
                result = unsafe { asked.tell_table(code, index) };
            }
        }
        if result != 0 {
            return result;
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

/// A program header of what is in memory.
const fn header(r#type: u32, flags: u32, start: u64, size: u64) -> libc::Elf64_Phdr {
    libc::Elf64_Phdr {
        p_type: r#type,
        p_flags: flags,
        p_offset: 0,
        p_vaddr: start,
        p_paddr: start,
        p_filesz: size,
        p_memsz: size,
        p_align: 1,
    }
}

fn header_of_index(index: &Header) -> libc::Elf64_Phdr {
    let address = core::ptr::from_ref(index).expose_provenance() as u64;
    header(libc::PT_GNU_EH_FRAME, libc::PF_R, address, size_of::<Header>() as u64)
}

impl Asked {
    /// Gives the caller a table of a load.
    ///
    /// # Safety
    /// The callback is one for `dl_iterate_phdr`.
    unsafe fn tell_table(&self, code: &Range<u64>, index: &Header) -> c_int {
        let size = code.end.saturating_sub(code.start);
        let code = header(libc::PT_LOAD, libc::PF_R | libc::PF_X, code.start, size);
        let headers = [code, header_of_index(index)];
        // SAFETY: as the caller says.
        unsafe { self.tell(&headers, 0) }
    }

    /// Gives the caller the segments of a load, its thread-local variables, which start where those of their block do, and the index of
    /// its table.
    ///
    /// # Safety
    /// As for [`tell_table`](Self::tell_table).
    unsafe fn tell_extent(&self, extent: &Extent, index: Option<&Header>) -> c_int {
        let segments = extent.segments.iter();
        let mut headers: Vec<_> = segments
            .map(|(range, flags)| {
                let size = range.end.saturating_sub(range.start);
                header(libc::PT_LOAD, flags.bits(), range.start, size)
            })
            .collect();
        let variables = extent.variables.filter(|&(_, size)| size > 0);
        headers.extend(variables.map(|(_, size)| header(libc::PT_TLS, libc::PF_R, 0, size)));
        headers.extend(index.map(header_of_index));
        // SAFETY: as the caller says.
        unsafe { self.tell(&headers, variables.map_or(0, |(module, _)| module)) }
    }

    /// # Safety
    /// As for [`tell_table`](Self::tell_table).
    unsafe fn tell(&self, headers: &[libc::Elf64_Phdr], module: u64) -> c_int {
        let (comings, goings) = registry::changes();
        let mut info = libc::dl_phdr_info {
            dlpi_addr: 0,
            dlpi_name: NO_LIBRARY.name,
            dlpi_phdr: headers.as_ptr(),
            dlpi_phnum: u16::try_from(headers.len()).unwrap_or(u16::MAX),
            dlpi_adds: self.changes.0.wrapping_add(comings),
            dlpi_subs: self.changes.1.wrapping_add(goings),
            dlpi_tls_modid: module as usize,
            dlpi_tls_data: core::ptr::null_mut(),
        };
        // SAFETY: the caller vouches for the callback, which keeps nothing.
        unsafe { (self.callback)(&raw mut info, size_of::<libc::dl_phdr_info>(), self.data) }
    }
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
