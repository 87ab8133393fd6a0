//! The buffer protocol. Its functions are part of the stable ABI since Python 3.11, and have been there, with this `Py_buffer`, since
//! long before: a module for 3.9 declares them itself.

use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::prelude::*;

/// `Py_buffer` of `<object.h>`.
#[repr(C)]
pub(crate) struct RawBuffer {
    pub(crate) buf: *mut c_void,
    obj: *mut PyObject,
    pub(crate) len: Py_ssize_t,
    itemsize: Py_ssize_t,
    pub(crate) readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut Py_ssize_t,
    strides: *mut Py_ssize_t,
    suboffsets: *mut Py_ssize_t,
    internal: *mut c_void,
}

/// Contiguous bytes, whatever their items are.
pub(crate) const SIMPLE: c_int = 0;

unsafe extern "C" {
    pub(crate) fn PyObject_GetBuffer(
        object: *mut PyObject,
        view: *mut RawBuffer,
        flags: c_int,
    ) -> c_int;
    pub(crate) fn PyBuffer_Release(view: *mut RawBuffer);
    pub(crate) fn PyBuffer_FillInfo(
        view: *mut RawBuffer,
        exporter: *mut PyObject,
        bytes: *mut c_void,
        size: Py_ssize_t,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
}

/// A buffer that is lent by its owner until this is dropped.
pub(crate) struct Lent(Box<RawBuffer>);

// SAFETY: the view is looked at only; its owner keeps memory and size while it is lent.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Lent {
    /// Borrows the bytes of `object`.
    ///
    /// # Errors
    /// `TypeError` if it has none, `BufferError` if they are not in one piece.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = Box::new(MaybeUninit::<RawBuffer>::uninit());
        // SAFETY: the interpreter is held by who has `object`; the view is ours, and stays where it is.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), SIMPLE) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the function has filled it.
        Ok(Self(unsafe { view.assume_init() }))
    }

    /// Whether nobody may write to it.
    pub(crate) fn is_constant(&self) -> bool {
        self.0.readonly != 0
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        let size = usize::try_from(self.0.len).unwrap_or(0);
        if size == 0 {
            return &[];
        }
        // SAFETY: so many bytes are there as long as the view is.
        unsafe { core::slice::from_raw_parts(self.0.buf.cast(), size) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: it only asks.
        if unsafe { pyo3::ffi::Py_IsInitialized() } == 0 {
            return;
        }
        // SAFETY: the view was filled and is released once, with the interpreter held.
        Python::attach(|_| unsafe { PyBuffer_Release(&raw mut *self.0) });
    }
}
