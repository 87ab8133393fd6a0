//! Addresses of this process as pointers.

use core::ffi::c_void;

/// Any function: to be cast to the type that it has.
pub type Function = Option<unsafe extern "C" fn()>;

/// The function at an address.
pub(crate) fn function_at(address: u64) -> Function {
    // SAFETY: an integer of that size, 0 being none; who calls the function guarantees its type.
    unsafe { core::mem::transmute::<usize, Function>(address as usize) }
}

/// A pointer to an address of this process.
pub(crate) fn pointer_to(address: u64) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(address as usize)
}
