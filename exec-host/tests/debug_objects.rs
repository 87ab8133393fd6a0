//! What debuggers are given of code that became shorter when it was loaded.
#![cfg(all(test, target_arch = "riscv64"))]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test")]

mod system;

use elf_core::File;
use exec_host::observer::GdbInterface;
use exec_host::{Loader, Process};
use system::fixture;

/// `struct jit_code_entry` (GDB, "Debugging Information in JIT Interface").
#[repr(C)]
struct Entry {
    next: *const Self,
    previous: *const Self,
    object: *const u8,
    size: u64,
}

/// `struct jit_descriptor`.
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *const Entry,
    first: *const Entry,
}

unsafe extern "C" {
    static __jit_debug_descriptor: Descriptor;
}

/// Sizes in sections that are not loaded are those of the code as it is in memory: clang's ULEB128 numbers (`R_RISCV_SET_ULEB128` and its
/// `SUB`) as well as words (`ADD`, `SUB`).
#[test]
fn sizes_follow_code_that_became_shorter() {
    let object = fixture("riscv64/debug.o");
    let module = Loader::new().observer(GdbInterface).load([&object], Process::new()).unwrap();
    let [caller, callee] = ["caller", "callee"].map(|name| module.function(name).unwrap());
    // SAFETY: the only load of this process, which has the observer, is there; nobody changes the list meanwhile.
    let copy = unsafe {
        let entry = &*__jit_debug_descriptor.first;
        std::slice::from_raw_parts(entry.object, entry.size as usize)
    };
    let file = File::parse(copy).unwrap();
    let is_it = |header: &_| file.section_name(header).unwrap() == ".debug_rnglists";
    let header = file.sections().iter().find(is_it).unwrap();
    let bytes = file.section_data(&header).unwrap();
    let address = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let size = callee - caller;
    assert!(size < 12, "`call` became shorter: {size}");
    assert_eq!((address(0), address(14)), (caller, callee));
    assert_eq!(u64::from(u32::from_le_bytes(bytes[8..12].try_into().unwrap())), size);
    assert_eq!([bytes[12], bytes[13]].map(u64::from), [size; 2]);
}
