//! What the dynamic loader has for thread-local variables.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use exec_core::sync::OnceLock;

/// Finds a variable of this thread by module and offset.
type GetAddress = unsafe extern "C" fn(*const [usize; 2]) -> *mut c_void;

/// Where code of ours finds the function, once it was asked whether there is one.
pub(crate) static FUNCTION: AtomicUsize = AtomicUsize::new(0);

/// The function where this is linked with it.
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
mod linked {
    use super::GetAddress;

    // weak: the dynamic loader's is to be had by its name as well
    core::arch::global_asm!(
        ".pushsection .data.rel.ro.hoist_tls_get_addr, \"aw\", %progbits",
        ".balign {size}",
        ".weak __tls_get_addr",
        ".hidden hoist_tls_get_addr",
        ".globl hoist_tls_get_addr",
        "hoist_tls_get_addr:",
        ".{size}byte __tls_get_addr",
        ".popsection",
        size = const size_of::<usize>(),
    );

    unsafe extern "C" {
        static hoist_tls_get_addr: Option<GetAddress>;
    }

    pub(super) fn function() -> Option<GetAddress> {
        // SAFETY: it is a word that nobody writes to, null or the function.
        unsafe { hoist_tls_get_addr }
    }
}

/// The same where programs that are linked statically have none: the linker takes out calls of it, which other code has, and would not
/// take it that a weak reference is left.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod linked {
    pub(super) const fn function() -> Option<super::GetAddress> {
        None
    }
}

/// `__tls_get_addr` of the process, if it has one.
fn function() -> Option<GetAddress> {
    static FOUND: OnceLock<Option<GetAddress>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = linked::function().or_else(|| {
            // SAFETY: asks for a function by its name.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tls_get_addr".as_ptr()) };
            // SAFETY: null, or of this type (Drepper, "ELF Handling For Thread-Local Storage", 3.4.1).
            unsafe { core::mem::transmute::<*mut c_void, Option<GetAddress>>(found) }
        });
        FUNCTION.store(found.map_or(0, |found| found as usize), Ordering::Relaxed);
        found
    })
}

/// Whether code may call what [`FUNCTION`] holds.
pub(crate) fn is_there() -> bool {
    function().is_some()
}

/// The address of this thread's variable at `offset` of the block of `module`; `None` where there is nobody to ask.
///
/// # Safety
/// There is such a block.
pub(crate) unsafe fn address(module: u64, offset: u64) -> Option<*mut c_void> {
    let pair = [module, offset].map(|word| word as usize);
    // SAFETY: as the caller guarantees.
    Some(unsafe { function()?(&raw const pair) })
}
