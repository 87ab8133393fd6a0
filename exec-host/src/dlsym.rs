//! `dlsym`, `dlvsym` and `dladdr` of loads: what a program finds of itself when it is linked to show its symbols (`-rdynamic`), and a library
//! where it was opened. The dynamic loader knows nothing of loads: to it their code is nobody's, of which there is no next library either
//! (`RTLD_NEXT`).

pub(crate) mod names;

use crate::external::External;
use crate::library::described;
use crate::machine;
use crate::unwind;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use elf_core::Name;
use exec_core::sync::OnceLock;
use names::load_of;

/// Our function for this name.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    let function = match name.0 {
        b"dlsym" => machine::dlsym::dlsym as *const (),
        #[cfg(target_env = "gnu")]
        b"dlvsym" => machine::dlsym::dlvsym as *const (),
        b"dladdr" => describe as *const (),
        _ => return None,
    };
    Some(External::function(function.expose_provenance() as u64))
}

/// Gives the function of a name that stands for the C library's.
type StandsFor = fn(Name<'_>) -> Option<External>;

/// Who has functions that open libraries and close them, once some are out of bytes.
static OPENS: OnceLock<StandsFor> = OnceLock::new();

/// Has code of objects open libraries by the functions that `stands_for` gives.
pub(crate) fn open_by(stands_for: StandsFor) {
    OPENS.get_or_init(|| stands_for);
}

/// The function of this name that opens libraries, or closes them.
pub(crate) fn opens(name: Name<'_>) -> Option<External> {
    OPENS.get()?(name)
}

/// `dladdr`, of loads too: a load of objects is the program.
///
/// # Safety
/// As for the C library's function.
unsafe extern "C" fn describe(address: *const c_void, info: *mut libc::Dl_info) -> c_int {
    unsafe extern "C" {
        static program_invocation_name: *const c_char;
    }
    // SAFETY: passes on what we were given.
    let found = unsafe { libc::dladdr(address, info) };
    if found != 0 {
        return found;
    }
    let wanted = address.addr() as u64;
    let at = |address: u64| ptr::with_exposed_provenance_mut::<c_void>(address as usize);
    if let Some(library) = described::at(wanted) {
        let (symbol, name) = library.symbol.unwrap_or((0, ptr::null()));
        let described = libc::Dl_info {
            dli_fname: library.file,
            dli_fbase: at(library.start),
            dli_sname: name,
            dli_saddr: at(symbol),
        };
        // SAFETY: there is room for it.
        unsafe { info.write(described) };
        return 1;
    }
    let names = load_of(wanted);
    let start = names.as_ref().map(|names| names.start);
    let Some(start) = start.or_else(|| unwind::start_of_load(wanted)) else { return 0 };
    let symbol = names.as_ref().and_then(|names| names.at(wanted));
    let described = libc::Dl_info {
        // SAFETY: the C library has it, and whoever changes it keeps the string.
        dli_fname: unsafe { program_invocation_name },
        dli_fbase: at(start),
        // stays as long as the load
        dli_sname: symbol.map_or(ptr::null(), |(_, name)| name.as_ptr()),
        dli_saddr: symbol.map_or(ptr::null_mut(), |(address, _)| at(address)),
    };
    // SAFETY: there is room for it.
    unsafe { info.write(described) };
    1
}
