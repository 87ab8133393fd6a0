//! Unwinding tables: what is taken, the unwinder of this process has to get along with.
//!
//! The bytes are a table at the start of an [area](PLACES) that also has data and code. If the check takes it, it is registered, and the
//! process panics, walks its frames, and asks for the rules of a frame in that code. The rules are not followed: they may be wrong.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use elf_core::eh_frame::{EhFrame, Machine, Places};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most bytes of a table. Zeros are behind it.
const TABLE: usize = 0x8000;
/// Where data and code are, from the table's start.
pub const PLACES: [Range<usize>; 2] = [0x9000..0xa000, 0xa000..0x1_a000];

/// A function that calls its argument.
const CODE: &[u8] = if cfg!(target_arch = "x86_64") {
    &[0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3]
} else {
    &[
        0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00, 0x3f, 0xd6, //
        0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
    ]
};

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_Find_FDE(address: *const u8, bases: *mut [usize; 3]) -> *const u8;
    fn __register_frame(table: *const u8);
    fn __deregister_frame(table: *const u8);
    fn mmap(
        at: *mut u8,
        size: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut u8;
    fn mprotect(at: *mut u8, size: usize, protection: c_int) -> c_int;
}

/// The address of the area.
fn area() -> usize {
    static AREA: OnceLock<usize> = OnceLock::new();
    *AREA.get_or_init(|| {
        let [_, code] = PLACES;
        // SAFETY: private pages without a name (`MAP_PRIVATE | MAP_ANONYMOUS`), to read and write: no existing mapping is touched.
        let start = unsafe { mmap(core::ptr::null_mut(), code.end, 3, 0x22, -1, 0) };
        assert_ne!(start.addr(), usize::MAX, "no memory");
        let place = start.wrapping_add(code.start);
        // SAFETY: the pages are ours, writable, and then executable.
        unsafe {
            place.copy_from_nonoverlapping(CODE.as_ptr(), CODE.len());
            assert_eq!(mprotect(place, code.len(), 5), 0);
        }
        start.expose_provenance()
    })
}

/// What the table may point to.
struct Area<'a> {
    start: usize,
    table: &'a [u8],
}

impl Area<'_> {
    fn offset(&self, address: u64) -> Option<usize> {
        usize::try_from(address).ok()?.checked_sub(self.start)
    }
}

impl Places for Area<'_> {
    fn is_code(&self, address: u64, size: u64) -> bool {
        let [_, code] = PLACES;
        let start = self.offset(address).filter(|start| (code.start..=code.end).contains(start));
        start.is_some_and(|start| size <= (code.end - start) as u64)
    }

    fn is_data(&self, address: u64) -> bool {
        self.offset(address).is_some_and(|at| at < PLACES[1].end)
    }

    fn is_personality(&self, address: u64) -> bool {
        self.offset(address).is_some_and(|at| PLACES[1].contains(&at))
    }

    /// The data are zeros.
    fn word(&self, address: u64) -> Option<u64> {
        let at = self.offset(address)?;
        let word = self.table.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let is_data = PLACES[0].contains(&at) && at + 8 <= PLACES[0].end;
        word.map(|word| u64::from_le_bytes(*word)).or(is_data.then_some(0))
    }
}

/// `_URC_NO_REASON`, and `_URC_NORMAL_STOP`.
const GO_ON: c_int = 0;
const STOP: c_int = 4;

extern "C" fn all(_: *mut c_void, _: *mut c_void) -> c_int {
    GO_ON
}

/// Stops at the first frame of the area's code: the unwinder has read its rules then.
extern "C" fn up_to_code(context: *mut c_void, start: *mut c_void) -> c_int {
    // SAFETY: the unwinder's context.
    let at = unsafe { _Unwind_GetIP(context) }.wrapping_sub(start.addr());
    if PLACES[1].contains(&at) { STOP } else { GO_ON }
}

extern "C-unwind" fn looks() {
    let start = core::ptr::without_provenance_mut(area());
    // SAFETY: the function takes what it is given.
    unsafe { _Unwind_Backtrace(up_to_code, start) };
}

/// Whether the check takes a table; if so, shows it to the unwinder.
pub fn is_taken(bytes: &[u8]) -> bool {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (bytes, start) = (&bytes[..bytes.len().min(TABLE)], area());
    let machine = if cfg!(target_arch = "x86_64") { Machine::X86_64 } else { Machine::AARCH64 };
    let table = EhFrame { bytes, address: start as u64, machine };
    if table.check(&Area { start, table: bytes }).is_err() {
        return false;
    }
    let place = core::ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the area's first pages are for the table, which was checked; zeros follow it. The function in the code calls its argument.
    unsafe {
        place.write_bytes(0, PLACES[0].start);
        place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        __register_frame(place);
        assert!(catch_unwind(|| resume_unwind(Box::new(1))).is_err());
        _Unwind_Backtrace(all, core::ptr::null_mut());
        // frames are found anywhere in it, and none behind
        for at in PLACES[1].clone().step_by(0x1001) {
            _Unwind_Find_FDE(place.wrapping_add(at), &mut [0; 3]);
        }
        type Calls = unsafe extern "C-unwind" fn(extern "C-unwind" fn());
        let code = core::ptr::with_exposed_provenance::<()>(start + PLACES[1].start);
        core::mem::transmute::<*const (), Calls>(code)(looks);
        __deregister_frame(place);
    }
    true
}

/// What the target does.
pub fn run(bytes: &[u8]) {
    is_taken(bytes);
}
