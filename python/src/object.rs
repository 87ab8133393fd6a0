//! `hoist.Function` in memory: what Python's object leads to.

use crate::interpreter;
use crate::liveness::Liveness;
use crate::signature::Signature;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::sync::Arc;

/// The object as Python sees it.
#[repr(C)]
pub(crate) struct FunctionObject {
    head: PyObject,
    pub(crate) vectorcall: ffi::vectorcallfunc,
    pub(crate) inner: *mut Inner,
    /// Weak references, which Python keeps here.
    pub(crate) weak: *mut PyObject,
}

/// What is behind it.
pub(crate) struct Inner {
    pub(crate) address: usize,
    pub(crate) signature: Signature,
    pub(crate) liveness: Arc<Liveness>,
    pub(crate) gives_up_lock: bool,
    pub(crate) name: Py<PyString>,
    pub(crate) arguments: Py<PyTuple>,
    pub(crate) result: Py<PyAny>,
    /// Whose function it is: it stays as long as this.
    pub(crate) owner: Py<PyAny>,
}

impl FunctionObject {
    pub(crate) fn inner(&self) -> &Inner {
        // SAFETY: it was made with one, which goes with the object.
        unsafe { &*self.inner }
    }
}

impl Inner {
    /// The function's name.
    pub(crate) fn name(&self, py: Python<'_>) -> String {
        self.name.bind(py).to_string()
    }
}

/// The type, once the module is there.
pub(crate) static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// What is behind `object`, if it is a function.
///
/// # Safety
/// The interpreter is held, and `object` is one that stays.
pub(crate) unsafe fn function<'a>(object: *mut PyObject) -> Option<&'a Inner> {
    // SAFETY: as the caller says; an object of the type is what the type makes.
    unsafe {
        let is_function = ffi::Py_TYPE(object) == TYPE.load(Ordering::Relaxed);
        is_function.then(|| (*object.cast::<FunctionObject>()).inner())
    }
}

/// The `tp_new` of types whose objects are made here only.
pub(crate) unsafe extern "C" fn refuse_new(
    _: *mut ffi::PyTypeObject,
    _: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python calls it, and holds the interpreter.
    unsafe {
        interpreter::held(|py| {
            PyTypeError::new_err("objects of this type are not made by calling it").restore(py);
            null_mut()
        })
    }
}
