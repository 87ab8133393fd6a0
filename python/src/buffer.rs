//! The buffer protocol. Its functions are part of the stable ABI since Python 3.11, and have been there, with this `Py_buffer`, since
//! long before: a module for 3.9 declares them itself.

use crate::dlpack::Tensor;
use crate::types::Kind;
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use pyo3::exceptions::PyTypeError;
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

impl RawBuffer {
    /// Whether it is one value, as long as an address.
    pub(crate) const fn is_word(&self) -> bool {
        self.ndim == 0 && self.len as usize == size_of::<usize>()
    }
}

/// Contiguous bytes, whatever their items are.
pub(crate) const SIMPLE: c_int = 0;
/// The same, which may be written.
const WRITABLE: c_int = 1;

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

/// Bytes that are lent by their owner until this is dropped.
pub(crate) enum Lent {
    /// By the buffer protocol.
    Buffer(Box<RawBuffer>),
    /// By DLPack.
    Tensor {
        address: u64,
        size: usize,
        #[expect(dead_code, reason = "it keeps the bytes")]
        capsule: Py<PyAny>,
    },
}

// SAFETY: the view is looked at only; its owner keeps memory and size while it is lent.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Lent {
    /// Borrows the bytes of `object`: of its buffer, or of a tensor of the processor (DLPack).
    ///
    /// # Errors
    /// `TypeError` if it has none, `BufferError` if they are not in one piece.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::with(object, SIMPLE)
    }

    /// The same, to be written to.
    ///
    /// # Errors
    /// As for [`of`](Self::of); `BufferError` or `TypeError` if nobody may write there.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::with(object, WRITABLE)
    }

    fn with(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let py = object.py();
        let mut view = Box::new(MaybeUninit::<RawBuffer>::uninit());
        // SAFETY: the interpreter is held by who has `object`; the view is ours, and stays where it is.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } == 0 {
            // SAFETY: the function has filled it.
            return Ok(Self::Buffer(unsafe { view.assume_init() }));
        }
        let error = PyErr::fetch(py);
        if !error.is_instance_of::<PyTypeError>(py) {
            return Err(error);
        }
        match Tensor::of(object) {
            Ok(Some(Tensor { address, size, capsule })) => {
                Ok(Self::Tensor { address, size, capsule: capsule.unbind() })
            }
            Ok(None) => Err(error),
            Err(refused) => Err(refused.error(py, "a tensor", Kind::Pointer, object)),
        }
    }

    /// Whether nobody may write to it.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Self::Buffer(view) if view.readonly != 0)
    }

    /// Where they are, and how many.
    fn place(&self) -> (*mut u8, usize) {
        match self {
            Self::Buffer(view) => (view.buf.cast(), usize::try_from(view.len).unwrap_or(0)),
            Self::Tensor { address, size, .. } => {
                (core::ptr::with_exposed_provenance_mut(*address as usize), *size)
            }
        }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        let (start, size) = self.place();
        if size == 0 {
            return &[];
        }
        // SAFETY: so many bytes are there as long as this is.
        unsafe { core::slice::from_raw_parts(start, size) }
    }

    /// The bytes of one that is [writable](Self::writable); none of another.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, size) = self.place();
        if size == 0 || self.is_constant() {
            return &mut [];
        }
        // SAFETY: so many bytes are there as long as this is, and they may be written; who else looks at them meanwhile, does so as
        // with any memory that Python's threads share.
        unsafe { core::slice::from_raw_parts_mut(start, size) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: it only asks.
        if unsafe { pyo3::ffi::Py_IsInitialized() } == 0 {
            return;
        }
        if let Self::Buffer(view) = self {
            // SAFETY: the view was filled and is released once, with the interpreter held.
            Python::attach(|_| unsafe { PyBuffer_Release(&raw mut **view) });
        }
    }
}
