//! The JIT compilation interface of GDB, which LLDB reads too ("Debugging with GDB", appendix "JIT Compilation Interface").

use super::debug_library::debug_library;
use super::debug_object::debug_object;
use super::{Loaded, LoadedLibrary, Observed, Observer};
use core::ptr;
use exec_core::sync::Mutex;
use std::io;

/// Shows every load to debuggers that are, or will be, attached to this process: names, lines, variables, frames.
///
/// Each object is kept in memory a second time, as long as it is loaded, for debuggers to read. Of libraries out of bytes, which linkers
/// have given other addresses, names and frames are shown, and no lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct GdbInterface;

impl Observer for GdbInterface {
    fn loaded(&self, loaded: &Loaded<'_>) -> io::Result<Option<Observed>> {
        let objects = (0..loaded.files().len()).filter_map(|object| debug_object(loaded, object));
        let entries: Vec<Registration> =
            objects.map(|object| Registration::new(object.into_boxed_slice())).collect();
        Ok(Some(Box::new(entries)))
    }

    fn library_loaded(&self, library: &LoadedLibrary<'_>) -> io::Result<Option<Observed>> {
        let Some(file) = debug_library(library) else { return Ok(None) };
        Ok(Some(Box::new(Registration::new(file.into_boxed_slice()))))
    }
}

/// `struct jit_code_entry`.
#[repr(C)]
struct CodeEntry {
    next: *mut CodeEntry,
    previous: *mut CodeEntry,
    symbol_file: *const u8,
    symbol_file_size: u64,
}

/// `struct jit_descriptor`.
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant_entry: *mut CodeEntry,
    first_entry: *mut CodeEntry,
}

/// `JIT_REGISTER_FN`.
const REGISTER: u32 = 1;
/// `JIT_UNREGISTER_FN`.
const UNREGISTER: u32 = 2;

// Weak: if another compiler in this program has them too, debuggers see one list.
core::arch::global_asm!(
    ".pushsection .data.__jit_debug_descriptor, \"aw\", %progbits",
    ".weak __jit_debug_descriptor",
    ".type __jit_debug_descriptor, %object",
    ".size __jit_debug_descriptor, {size}",
    ".p2align 3",
    "__jit_debug_descriptor:",
    ".long 1, 0",
    ".skip {size} - 8",
    ".popsection",
    ".pushsection .text.__jit_debug_register_code, \"ax\", %progbits",
    ".weak __jit_debug_register_code",
    ".type __jit_debug_register_code, %function",
    ".p2align 4",
    "__jit_debug_register_code:",
    #[cfg(not(target_arch = "arm"))]
    "ret",
    #[cfg(target_arch = "arm")]
    "bx lr",
    ".size __jit_debug_register_code, . - __jit_debug_register_code",
    ".popsection",
    size = const size_of::<Descriptor>(),
);

unsafe extern "C" {
    /// What debuggers read.
    static mut __jit_debug_descriptor: Descriptor;
    /// Where they have a breakpoint.
    fn __jit_debug_register_code();
}

/// Who changes the list, or the one entry of it that is spoken of.
static TURN: Mutex<()> = Mutex::new(());

/// An object that debuggers know.
struct Registration {
    entry: *mut CodeEntry,
    #[expect(dead_code, reason = "what the entry points to")]
    object: Box<[u8]>,
}

// SAFETY: entries are touched by whoever has the turn only.
unsafe impl Send for Registration {}
// SAFETY: `&Registration` gives out nothing.
unsafe impl Sync for Registration {}

impl Registration {
    fn new(object: Box<[u8]>) -> Self {
        let _turn = TURN.lock();
        // SAFETY: everybody has the turn who touches the descriptor; entries are ours, or another compiler's in the same list.
        unsafe {
            let descriptor = &raw mut __jit_debug_descriptor;
            let entry = Box::into_raw(Box::new(CodeEntry {
                next: (*descriptor).first_entry,
                previous: ptr::null_mut(),
                symbol_file: object.as_ptr(),
                symbol_file_size: object.len() as u64,
            }));
            if let Some(next) = (*entry).next.as_mut() {
                next.previous = entry;
            }
            (*descriptor).first_entry = entry;
            tell(descriptor, entry, REGISTER);
            Self { entry, object }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _turn = TURN.lock();
        // SAFETY: as in `new`; the entry is in the list, and nobody knows it afterwards.
        unsafe {
            let descriptor = &raw mut __jit_debug_descriptor;
            let CodeEntry { next, previous, .. } = *self.entry;
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => (*descriptor).first_entry = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            tell(descriptor, self.entry, UNREGISTER);
            drop(Box::from_raw(self.entry));
        }
    }
}

/// Lets an attached debugger read an entry.
///
/// # Safety
/// The caller has the turn; the entry is whole.
unsafe fn tell(descriptor: *mut Descriptor, entry: *mut CodeEntry, action: u32) {
    // SAFETY: as the caller guarantees. Debuggers read memory, which is why the stores may not be left out.
    unsafe {
        (&raw mut (*descriptor).relevant_entry).write_volatile(entry);
        (&raw mut (*descriptor).action).write_volatile(action);
        __jit_debug_register_code();
    }
}
