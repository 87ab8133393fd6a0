//! The functions of TLS descriptors: they keep every register but the result's (Oliva, "Thread-Local Storage Descriptors for IA32 and
//! AMD64/EM64T"; AAELF64, section 5.7.11).

use super::dynamic;
use crate::machine::descriptor as machine;

/// Address of the function whose argument is the TP offset.
pub(crate) fn near() -> u64 {
    machine::near as *const () as u64
}

/// Address of the function whose argument is the address of module and offset, if the machine can keep its registers.
pub(crate) fn far() -> Option<u64> {
    (machine::prepare() && dynamic::is_there()).then_some(machine::far as *const () as u64)
}
