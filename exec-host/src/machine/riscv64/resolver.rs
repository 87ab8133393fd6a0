//! Resolvers of indirect functions.

use core::ffi::c_void;

use super::processor::hwprobe;

/// Calls a resolver with what the processor can (glibc, `__riscv_ifunc_t`): letters of the base, how to ask for more, and nothing.
///
/// # Safety
/// It is one.
pub(crate) unsafe fn call(resolver: u64) -> u64 {
    type Resolver = unsafe extern "C" fn(u64, *const (), *const c_void) -> u64;
    // SAFETY: asks only.
    let hwcap = unsafe { libc::getauxval(libc::AT_HWCAP) };
    let code = core::ptr::with_exposed_provenance::<()>(resolver as usize);
    // SAFETY: resolvers of RISC-V take these arguments, or fewer.
    unsafe {
        let resolver = core::mem::transmute::<*const (), Resolver>(code);
        resolver(hwcap, hwprobe as *const (), core::ptr::null())
    }
}
