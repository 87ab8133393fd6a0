//! Which library this is.

use core::ffi::c_char;

/// The major part of the version of the header.
pub const HOIST_VERSION_MAJOR: u32 = 0;
/// The minor part of the version of the header. Programs built with a header run with every library of the same major and minor part.
pub const HOIST_VERSION_MINOR: u32 = 1;

/// The version of the library (`"0.1.0"`). Never NULL; it is never freed.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
