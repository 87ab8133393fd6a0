//! `__riscv_feature_bits` of compiler-rt and libgcc (RISC-V C API, "Function multi-versioning"), and `__riscv_hwprobe` of glibc.

use super::atomics;
use crate::external::External;
use crate::processor::bits::bits;
use core::ffi::{c_int, c_long, c_uint, c_void};
use exec_core::sync::OnceLock;

/// Extensions by group.
#[repr(C)]
struct Features {
    /// How many groups there are.
    length: u32,
    features: [u64; 2],
}

pub(crate) fn find(name: &str) -> Option<External> {
    static FOUND: OnceLock<Features> = OnceLock::new();
    match name {
        "__init_riscv_feature_bits" => Some(External::function(init as *const () as u64)),
        "__riscv_feature_bits" => {
            let features: &Features = FOUND.get_or_init(detect);
            let address = (&raw const *features).expose_provenance() as u64;
            // SAFETY: what was found out is never changed.
            Some(unsafe { External::constant_at(address, size_of::<Features>() as u64) })
        }
        "__riscv_hwprobe" => Some(External::function(hwprobe as *const () as u64)),
        _ => atomics::find(name),
    }
}

/// There is nothing left to do.
extern "C" fn init(_: *const c_void) {}

/// The letters of the base, which Linux tells by the bits that the table has for them. Code must not rely on others being absent.
fn detect() -> Features {
    // SAFETY: asks only.
    let hwcap = unsafe { libc::getauxval(libc::AT_HWCAP) };
    let letters = *b"acdfimv";
    let known = letters.map(|letter| {
        let number = u32::from(letter - b'a');
        (number, hwcap >> number & 1 != 0)
    });
    let [low, high] = bits(&known);
    Features { length: 2, features: [u64::from(high) << 32 | u64::from(low), 0] }
}

/// `riscv_hwprobe` of Linux: 0 or an error's number, less than 0.
pub(super) unsafe extern "C" fn hwprobe(
    pairs: *mut c_void,
    count: usize,
    size: usize,
    processors: *mut c_void,
    flags: c_uint,
) -> c_int {
    const HWPROBE: c_long = 258;
    // SAFETY: the code that calls this guarantees the arguments.
    let result = unsafe { libc::syscall(HWPROBE, pairs, count, size, processors, flags) };
    if result == 0 {
        return 0;
    }
    std::io::Error::last_os_error().raw_os_error().map_or(-libc::ENOSYS, |number| -number)
}
