//! Resolvers of indirect functions.

/// Calls a resolver.
///
/// # Safety
/// It is one.
pub(crate) unsafe fn call(resolver: u64) -> u64 {
    let code = core::ptr::with_exposed_provenance::<()>(resolver as usize);
    // SAFETY: resolvers of x86-64 take no arguments.
    unsafe { core::mem::transmute::<*const (), unsafe extern "C" fn() -> u64>(code)() }
}
