//! The functions of TLS descriptors: they keep every register but the result's (Oliva, "Thread-Local Storage Descriptors for IA32 and
//! AMD64/EM64T"; AAELF64, section 5.7.11).

#[cfg_attr(target_arch = "aarch64", path = "descriptor/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "descriptor/x86_64.rs")]
mod machine;

unsafe extern "C" {
    /// The dynamic loader's own, which finds a variable of this thread by module and offset.
    fn __tls_get_addr(pair: *const [u64; 2]) -> *mut core::ffi::c_void;
}

/// Address of the function whose argument is the distance from the thread pointer.
pub(crate) fn near() -> u64 {
    machine::near as *const () as u64
}

/// Address of the function whose argument is the address of module and offset, if the machine can keep its registers.
pub(crate) fn far() -> Option<u64> {
    machine::prepare().then_some(machine::far as *const () as u64)
}
