//! What the dynamic loader has for thread-local variables.

unsafe extern "C" {
    /// The dynamic loader's own, which finds a variable of this thread by module and offset.
    pub(crate) fn __tls_get_addr(pair: *const [usize; 2]) -> *mut core::ffi::c_void;
}
