//! Backtraces out of libraries out of bytes, and through their unwinding tables, which may be damaged.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use core::ffi::{c_int, c_void};
use exec_host::Error;
use exec_host::library::{Library, LibraryError, LibraryLoader};
use std::process::Command;
use system::of_this_machine;

/// The unwinder of Arm has it by the number of the register (EHABI32, "Virtual register set manipulation").
#[cfg(target_arch = "arm")]
#[expect(non_snake_case, reason = "a name of the ABI")]
unsafe fn _Unwind_GetIP(context: *mut c_void) -> usize {
    let mut value = 0;
    // SAFETY: as the caller guarantees the context; the result is written to a variable of ours.
    unsafe { _Unwind_VRS_Get(context, 0, 15, 0, &raw mut value) };
    value & !1
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    #[cfg(not(target_arch = "arm"))]
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    #[cfg(target_arch = "arm")]
    fn _Unwind_VRS_Get(
        context: *mut c_void,
        class: c_int,
        register: u32,
        representation: c_int,
        value: *mut usize,
    ) -> c_int;
}

/// Where calls come from that are going on.
extern "C" fn callers(frames: *mut Vec<u64>) -> i64 {
    unsafe extern "C" fn each(context: *mut c_void, frames: *mut c_void) -> c_int {
        // SAFETY: what `callers` gives, and the context is the unwinder's.
        unsafe { (*frames.cast::<Vec<u64>>()).push(_Unwind_GetIP(context) as u64) };
        0
    }
    // SAFETY: the callback has the type asked for.
    unsafe { _Unwind_Backtrace(each, frames.cast()) };
    7
}

type Callback = extern "C" fn(*mut Vec<u64>) -> i64;

/// The frames that are seen by what a function of the library calls: how many there are, and of the library.
fn frames(library: &Library) -> (usize, usize) {
    // SAFETY: the type of the source.
    let through = unsafe {
        library.get::<unsafe extern "C" fn(Callback, *mut Vec<u64>) -> i64>("through").unwrap()
    };
    let mut frames = Vec::new();
    // SAFETY: as above.
    assert_eq!(unsafe { through(callers, &raw mut frames) }, 8);
    let (start, size) = library.extent();
    let own = frames.iter().filter(|address| (start..start + size).contains(address)).count();
    (frames.len(), own)
}

/// What unwinders read.
const TABLE: &str = if cfg!(target_arch = "arm") { ".ARM.exidx" } else { ".eh_frame" };

/// A table that is right leads through the library; one with errors ends a backtrace, or the library is refused, and nothing else is
/// made of it.
#[test]
fn damaged_tables_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (source, output) = (folder.path().join("through.c"), folder.path().join("through.so"));
    let text =
        "long long through(long long (*call)(void *), void *with) { return call(with) + 1; }";
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new(of_this_machine("gcc"));
    let options = ["-O1", "-fPIC", "-shared", "-fasynchronous-unwind-tables", "-o"];
    let compiler = compiler.args(options).arg(&output).arg(&source);
    assert!(compiler.status().unwrap().success());
    let bytes = std::fs::read(&output).unwrap();
    let open = |bytes: Vec<u8>| {
        // SAFETY: no constructors that matter.
        unsafe { LibraryLoader::new().open(bytes) }
    };
    let (all, own) = frames(&open(bytes.clone()).unwrap());
    assert!(all > 2 && own == 1, "{all} frames, {own} of the library");
    let section = {
        let file = elf_core::File::parse(&bytes).unwrap();
        let mut sections = file.sections().iter();
        let found = sections.find(|it| file.section_name(it).is_ok_and(|name| name == TABLE));
        let found = found.unwrap();
        found.offset as usize..(found.offset + found.size) as usize
    };
    let length = u32::from_le_bytes(bytes[section.start..section.start + 4].try_into().unwrap());
    // of Arm the first function, twice, and how it is unwound; else the version of the first CIE, its length, the distance from the FDE behind it
    let changes = match cfg!(target_arch = "arm") {
        true => [(2, 0x55), (3, 0x80), (7, 0x8f)],
        false => [(8, 77), (3, 0x7f), (4 + length as usize + 4, 0x55)],
    };
    for (at, byte) in changes {
        let mut damaged = bytes.clone();
        damaged[section.start + at] = byte;
        match open(damaged) {
            Ok(library) => {
                let (fewer, own) = frames(&library);
                assert!(fewer < all && own <= 1, "at {at}: {fewer} of {all}, {own}");
            }
            Err(Error::Linked(why)) => {
                assert!(matches!(*why, LibraryError::Unwinding(_)), "at {at}: {why}");
            }
            Err(why) => panic!("at {at}: {why}"),
        }
    }
}
