//! Resolvers of indirect functions.

/// Calls a resolver with what the processor can (glibc, `elf_ifunc_invoke` of Arm).
///
/// # Safety
/// It is one.
pub(crate) unsafe fn call(resolver: u64) -> u64 {
    type Resolver = unsafe extern "C" fn(libc::c_ulong) -> usize;
    let code = core::ptr::with_exposed_provenance::<()>(resolver as usize);
    // SAFETY: asks only.
    let hwcap = unsafe { libc::getauxval(libc::AT_HWCAP) };
    // SAFETY: resolvers of Arm take this argument, or none.
    unsafe { core::mem::transmute::<*const (), Resolver>(code)(hwcap) as u64 }
}
