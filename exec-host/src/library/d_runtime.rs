//! Code of D whose runtime is a library of its own: that looks for who registers among the libraries of the dynamic loader, and ends the process if
//! it is none of them.

use super::error::LibraryError;

/// By which code of D says that it is there.
pub(crate) const REGISTRY: &[u8] = b"_d_dso_registry";

/// Why it is refused.
pub(crate) fn refused() -> LibraryError {
    let reason = "code of D, whose runtime wants a handle of the dynamic loader's for it (_d_dso_registry); \
         with the runtime inside of it (-static-libphobos), or given as an archive, it can be loaded";
    LibraryError::Refused { reason: reason.into() }
}
