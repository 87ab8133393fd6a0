//! What unwinders ask for frames, and others for data: functions of the C library that know loads as well as libraries.

use super::registry::{self, Extent, Header};
use super::{asked, format};
use crate::external::External;
use crate::word::ProgramHeader;
use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use elf_core::Name;

/// What stands for the functions of this name by which code of a load finds what is loaded.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    let function = match name.0 {
        b"dl_iterate_phdr" => (iterate as *const ()).expose_provenance() as u64,
        name if name == format::ASKED.to_bytes() => asked::function(),
        _ => return None,
    };
    Some(External::function(function))
}

/// Where the memory of the load begins that has this code.
pub(crate) fn start_of_load(address: u64) -> Option<u64> {
    let (_, load) = registry::load_of(address)?;
    load.extent().segments.iter().map(|(range, _)| range.start).min()
}

type Callback = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// Who asked, and for whom.
struct Asked {
    callback: Callback,
    data: *mut c_void,
    /// What the C library said of its own comings and goings.
    changes: (u64, u64),
    /// Where this thread has the variables of a module.
    variables: Vec<(usize, *mut c_void)>,
}

/// `dl_iterate_phdr`, of loads too, those of objects without a name: all segments of a load, with the index of its unwinding table; where it has several
/// tables, one more for each of them, with the code that it describes.
///
/// # Safety
/// As for the C library's function.
unsafe extern "C" fn iterate(callback: Callback, data: *mut c_void) -> c_int {
    let mut asked = Asked { callback, data, changes: (0, 0), variables: Vec::new() };
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
        // SAFETY: as the caller guarantees its callback.
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
    if !info.dlpi_tls_data.is_null() {
        asked.variables.push((info.dlpi_tls_modid, info.dlpi_tls_data));
    }
    info.dlpi_adds = info.dlpi_adds.wrapping_add(comings);
    info.dlpi_subs = info.dlpi_subs.wrapping_add(goings);
    // SAFETY: as above; the description is a copy.
    unsafe { (asked.callback)(&raw mut info, size_of::<libc::dl_phdr_info>(), asked.data) }
}

/// A program header of what is in memory.
fn header(r#type: u32, flags: u32, start: u64, size: u64) -> ProgramHeader {
    ProgramHeader {
        p_type: r#type,
        p_flags: flags,
        p_offset: 0,
        p_vaddr: start as _,
        p_paddr: start as _,
        p_filesz: size as _,
        p_memsz: size as _,
        p_align: 1,
    }
}

fn header_of_index(index: &Header) -> ProgramHeader {
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
        unsafe { self.tell(c"", &headers, 0) }
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
        unsafe { self.tell(&extent.name, &headers, variables.map_or(0, |(module, _)| module)) }
    }

    /// # Safety
    /// As for [`tell_table`](Self::tell_table).
    unsafe fn tell(&self, name: &CStr, headers: &[ProgramHeader], module: u64) -> c_int {
        let (comings, goings) = registry::changes();
        let mut variables = self.variables.iter();
        let variables = variables.find(|(of, _)| *of as u64 == module);
        let mut info = libc::dl_phdr_info {
            dlpi_addr: 0,
            dlpi_name: name.as_ptr(),
            dlpi_phdr: headers.as_ptr(),
            dlpi_phnum: u16::try_from(headers.len()).unwrap_or(u16::MAX),
            dlpi_adds: self.changes.0.wrapping_add(comings),
            dlpi_subs: self.changes.1.wrapping_add(goings),
            dlpi_tls_modid: module as usize,
            dlpi_tls_data: variables.map_or(core::ptr::null_mut(), |(_, data)| *data),
        };
        // SAFETY: the caller guarantees the callback, which keeps nothing.
        unsafe { (self.callback)(&raw mut info, size_of::<libc::dl_phdr_info>(), self.data) }
    }
}
