//! Resolvers of indirect functions.

/// Calls a resolver with what the processor can (AAELF64 "Indirect functions", <sys/ifunc.h>).
///
/// # Safety
/// It is one.
pub(crate) unsafe fn call(resolver: u64) -> u64 {
    /// `__ifunc_arg_t`.
    #[repr(C)]
    struct Features {
        size: u64,
        hwcap: u64,
        hwcap2: u64,
    }
    /// `_IFUNC_ARG_HWCAP`: there is a second argument.
    const IS_FOLLOWED: u64 = 1 << 62;
    // SAFETY: asks only.
    let (hwcap, hwcap2) =
        unsafe { (libc::getauxval(libc::AT_HWCAP), libc::getauxval(libc::AT_HWCAP2)) };
    let features = Features { size: size_of::<Features>() as u64, hwcap, hwcap2 };
    let code = core::ptr::with_exposed_provenance::<()>(resolver as usize);
    type Resolver = unsafe extern "C" fn(u64, *const Features) -> u64;
    // SAFETY: resolvers of AArch64 take these arguments, or fewer.
    unsafe {
        core::mem::transmute::<*const (), Resolver>(code)(hwcap | IS_FOLLOWED, &raw const features)
    }
}
