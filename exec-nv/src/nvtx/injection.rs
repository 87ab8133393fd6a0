//! How a tool says which functions are to be called (NVTX 3, `nvtxInit.h`, `nvtxTypes.h`): it is given tables with places for them.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::{ManuallyDrop, transmute};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::path::Path;

use libloading::Library;

use super::profiler::{DomainPop, DomainPush, Mark, PlainPop, PlainPush, Pop, Profiler, Push};

/// A place for a function, which the tool fills.
type Slot = AtomicPtr<c_void>;

/// `NVTX_CB_MODULE_CORE` and its functions, by number; `NVTX_CB_MODULE_CORE2` and its.
const CORE: c_int = 1;
const CORE2: c_int = 5;
const MARK_A: usize = 2;
const RANGE_PUSH_A: usize = 9;
const RANGE_POP: usize = 11;
const DOMAIN_RANGE_PUSH_EX: usize = 4;
const DOMAIN_RANGE_POP: usize = 5;
const INITIALIZE: usize = 15;
/// Functions of a module, and the one that there is none of.
const SLOTS: usize = 16;
/// `NVTX_ETID_CALLBACKS` and `NVTX_ETID_VERSIONINFO`.
const CALLBACKS: u32 = 1;
const VERSION_INFO: u32 = 3;
/// `NVTX_VERSION`.
const VERSION: u32 = 3;

static CORE_SLOTS: [Slot; SLOTS] = [const { Slot::new(ptr::null_mut()) }; SLOTS];
static CORE2_SLOTS: [Slot; SLOTS] = [const { Slot::new(ptr::null_mut()) }; SLOTS];

/// `NvtxFunctionTable`: pointers to the places, and null at the end.
struct Table([*const Slot; SLOTS + 1]);

// SAFETY: the places are atomic, and there as long as the process.
unsafe impl Sync for Table {}

#[expect(clippy::indexing_slicing, reason = "in the range, and computed when it is compiled")]
const fn table(slots: &'static [Slot; SLOTS]) -> Table {
    let mut table = [ptr::null(); SLOTS + 1];
    let (mut rest, mut at): (&[Slot], usize) = (slots, 0);
    while let [slot, others @ ..] = rest {
        // the first place is nobody's
        if at > 0 && at < SLOTS {
            table.as_mut_slice()[at] = ptr::from_ref(slot);
        }
        (rest, at) = (others, at + 1);
    }
    Table(table)
}

static CORE_TABLE: Table = table(&CORE_SLOTS);
static CORE2_TABLE: Table = table(&CORE2_SLOTS);

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    get: unsafe extern "C" fn(c_int, *mut *const *const Slot, *mut c_uint) -> c_int,
}

static EXPORTED: Callbacks = Callbacks { size: size_of::<Callbacks>(), get: module_table };

/// `NvtxExportTableVersionInfo`: what a tool may ask for before it takes part.
#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    tell: extern "C" fn(u32),
}

static VERSIONS: VersionInfo =
    VersionInfo { size: size_of::<VersionInfo>(), version: VERSION, reserved: 0, tell: is_told };

/// The tool says which version it is of: all that is asked of it here is in the first.
const extern "C" fn is_told(_version: u32) {}

/// Gives the tool the table of a module: 1 if there is one.
///
/// # Safety
/// The places are null, or the caller's.
unsafe extern "C" fn module_table(
    module: c_int,
    found: *mut *const *const Slot,
    size: *mut c_uint,
) -> c_int {
    let table = match module {
        CORE => &CORE_TABLE,
        CORE2 => &CORE2_TABLE,
        _ => return 0,
    };
    // SAFETY: as the caller says.
    unsafe {
        if let Some(size) = size.as_mut() {
            *size = SLOTS as c_uint;
        }
        if let Some(found) = found.as_mut() {
            *found = table.0.as_ptr();
        }
    }
    1
}

/// Gives the tool what it asks for by number.
extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        CALLBACKS => (&raw const EXPORTED).cast(),
        VERSION_INFO => (&raw const VERSIONS).cast(),
        _ => ptr::null(),
    }
}

/// What the tool has put into a place.
fn filled(slots: &[Slot; SLOTS], at: usize) -> Option<*mut c_void> {
    let found = slots.get(at)?.load(Ordering::Acquire);
    (!found.is_null()).then_some(found)
}

/// Has the tool in the library at `path` fill the places: `None` if it is none, or wants no ranges.
///
/// # Safety
/// The library is a tool for NVTX.
pub(super) unsafe fn open(path: &Path) -> Option<Profiler> {
    type Initialize = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;
    // SAFETY: as the caller says. It stays: its functions are called as long as the process lives.
    let library = ManuallyDrop::new(unsafe { Library::new(path) }.ok()?);
    // SAFETY: tools have a function of this name and type.
    let initialize = unsafe { library.get::<Initialize>(b"InitializeInjectionNvtx2\0") }.ok()?;
    // SAFETY: as above.
    if unsafe { initialize(export_table) } == 0 {
        return None;
    }
    // SAFETY: what a tool puts into a place is a function of the type that NVTX has for it.
    unsafe {
        if let Some(begin) = filled(&CORE2_SLOTS, INITIALIZE) {
            let begin: unsafe extern "C" fn(*const c_void) = transmute(begin);
            begin(ptr::null());
        }
        let push = if let Some(push) = filled(&CORE_SLOTS, RANGE_PUSH_A) {
            Push::Plain(transmute::<*mut c_void, PlainPush>(push))
        } else {
            let push = filled(&CORE2_SLOTS, DOMAIN_RANGE_PUSH_EX)?;
            Push::Domain(transmute::<*mut c_void, DomainPush>(push))
        };
        let pop = if let Some(pop) = filled(&CORE_SLOTS, RANGE_POP) {
            Pop::Plain(transmute::<*mut c_void, PlainPop>(pop))
        } else {
            let pop = filled(&CORE2_SLOTS, DOMAIN_RANGE_POP)?;
            Pop::Domain(transmute::<*mut c_void, DomainPop>(pop))
        };
        let mark = filled(&CORE_SLOTS, MARK_A).map(|mark| transmute::<*mut c_void, Mark>(mark));
        Some(Profiler { push, pop, mark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_told_which_version_this_is() {
        assert_eq!(export_table(VERSION_INFO), (&raw const VERSIONS).cast());
        assert_eq!((VERSIONS.version, VERSIONS.reserved), (3, 0));
        assert!(export_table(2).is_null() && export_table(4).is_null());
    }

    #[test]
    fn tables_of_functions_end_in_null() {
        for table in [&CORE_TABLE, &CORE2_TABLE] {
            let ends: Vec<_> = table.0.iter().map(|place| place.is_null()).collect();
            assert_eq!(ends.iter().filter(|is| **is).count(), 2);
            assert!(ends.first() == Some(&true) && ends.last() == Some(&true));
        }
    }
}
