//! Bytes that a function has made.

use crate::border::infallible;
use core::ffi::c_void;

/// Bytes that a function has made. Free them with `hoist_buffer_free`.
pub struct Buffer(pub(crate) Vec<u8>);

/// The first byte; NULL if there are none, or `buffer` is NULL. Good until the buffer is freed.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_buffer_data(buffer: Option<&Buffer>) -> *const c_void {
    let bytes = buffer.map(|buffer| buffer.0.as_slice()).filter(|bytes| !bytes.is_empty());
    bytes.map_or(core::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// How many bytes there are; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_buffer_size(buffer: Option<&Buffer>) -> usize {
    buffer.map_or(0, |buffer| buffer.0.len())
}

/// Frees a buffer; NULL is none.
///
/// Threads: nobody uses the buffer any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_buffer_free(buffer: Option<Box<Buffer>>) {
    infallible((), || drop(buffer));
}
