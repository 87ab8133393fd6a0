//! One call from Python: arguments into registers, the lock given up, the function, and its result. No memory is taken from the heap
//! for it, but what Python takes for the result.

use crate::borrowed::Borrowed;
use crate::convert;
use crate::object::FunctionObject;
use crate::signature::Slots;
use core::cell::Cell;
use core::slice;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::prelude::*;

thread_local! {
    /// Calls of ours that this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is inside of a call of ours, which passes exceptions on.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// The type's `vectorcall` (PEP 590).
///
/// # Safety
/// Python calls it with a [`FunctionObject`] and so many arguments, and holds the interpreter.
pub(crate) unsafe extern "C" fn vectorcall(
    callable: *mut PyObject,
    arguments: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // the highest bit says that there is room before the arguments
    let count = count & (usize::MAX >> 1);
    // SAFETY: as for this function; without arguments there may be no array.
    unsafe {
        let arguments = if count == 0 { &[] } else { slice::from_raw_parts(arguments, count) };
        let named = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) };
        call(&*callable.cast::<FunctionObject>(), arguments, named)
    }
}

/// The type's `tp_call`, for who has a tuple.
///
/// # Safety
/// Python calls it with a [`FunctionObject`], a tuple, and a dictionary or null, and holds the interpreter.
pub(crate) unsafe extern "C" fn tuple_call(
    callable: *mut PyObject,
    arguments: *mut PyObject,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as for this function; the tuple keeps its items.
    unsafe {
        let count = ffi::PyTuple_Size(arguments);
        let items: Vec<*mut PyObject> =
            (0..count).map(|index| ffi::PyTuple_GetItem(arguments, index)).collect();
        let named = if names.is_null() { 0 } else { ffi::PyDict_Size(names) };
        call(&*callable.cast::<FunctionObject>(), &items, named)
    }
}

/// # Safety
/// The interpreter is held; the arguments are objects that stay. Whoever made the function vouches for its type.
unsafe fn call(
    function: &FunctionObject,
    arguments: &[*mut PyObject],
    named: Py_ssize_t,
) -> *mut PyObject {
    let inner = function.inner();
    let signature = &inner.signature;
    if named != 0 || arguments.len() != signature.arguments.len() || !inner.liveness.is_alive() {
        return refuse(function, arguments.len(), named);
    }
    let mut slots = Slots::new();
    let mut borrowed = Borrowed::new();
    for (index, (&object, &kind)) in arguments.iter().zip(&signature.arguments).enumerate() {
        // SAFETY: as the caller says.
        match unsafe { convert::bits(kind, object, &mut borrowed) } {
            Ok(bits) => signature.put(&mut slots, kind, bits),
            Err(refused) => {
                return Python::attach(|py| {
                    // SAFETY: as the caller says.
                    let object = unsafe { Bound::from_borrowed_ptr(py, object) };
                    let place = format!("{}() argument {}", function.name(py), index + 1);
                    refused.error(py, &place, kind, &object).restore(py);
                    core::ptr::null_mut()
                });
            }
        }
    }
    inner.liveness.enter();
    DEPTH.set(DEPTH.get() + 1);
    // SAFETY: whoever made the function vouches for it; the lock is given up only by the thread that has it, and taken again.
    let bits = unsafe {
        if inner.gives_up_lock {
            let thread = ffi::PyEval_SaveThread();
            let bits = signature.call(inner.address, &mut slots);
            ffi::PyEval_RestoreThread(thread);
            bits
        } else {
            signature.call(inner.address, &mut slots)
        }
    };
    DEPTH.set(DEPTH.get() - 1);
    inner.liveness.leave();
    // SAFETY: the interpreter is held again.
    if !unsafe { ffi::PyErr_Occurred() }.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: as above; who said that the result is a text vouches for it. What was lent is given back after it was made of it.
    unsafe { convert::object(signature.result, bits) }
}

/// Sets the exception that says why a call cannot be.
#[cold]
fn refuse(function: &FunctionObject, given: usize, named: Py_ssize_t) -> *mut PyObject {
    Python::attach(|py| {
        let inner = function.inner();
        let name = function.name(py);
        let error = if !inner.liveness.is_alive() {
            crate::errors::unloaded(py, &name)
        } else if named != 0 {
            PyTypeError::new_err(format!("{name}() takes no keyword arguments"))
        } else {
            let takes = inner.signature.arguments.len();
            let plural = if takes == 1 { "" } else { "s" };
            PyTypeError::new_err(format!("{name}() takes {takes} argument{plural} ({given} given)"))
        };
        error.restore(py);
        core::ptr::null_mut()
    })
}
