//! One call from Python: arguments into registers, the lock given up, the function, and its result. No memory is taken from the heap
//! for it, but what Python takes for the result.

use crate::borrowed::Borrowed;
use crate::convert;
use crate::object::{FunctionObject, Inner};
use crate::refused::Refused;
use crate::signature::{self, MOST, REGISTERS, Way};
use crate::types::Kind;
use core::cell::Cell;
use core::slice;
use libffi::middle::Cif;
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
/// The interpreter is held; the arguments are objects that stay. Whoever made the function guarantees its type.
#[inline]
unsafe fn call(
    function: &FunctionObject,
    arguments: &[*mut PyObject],
    named: Py_ssize_t,
) -> *mut PyObject {
    let inner = function.inner();
    let signature = &inner.signature;
    if named != 0 || arguments.len() != signature.parameters.len() || !inner.liveness.is_alive() {
        return refuse(function, arguments.len(), named);
    }
    if let Way::Stack(cif) = &signature.way {
        // SAFETY: as the caller says.
        return unsafe { call_with_stack(inner, arguments, cif) };
    }
    let mut borrowed = Borrowed::new();
    // SAFETY: as the caller says.
    let Some(slots) = (unsafe { gather::<REGISTERS>(inner, arguments, &mut borrowed) }) else {
        return core::ptr::null_mut();
    };
    // SAFETY: whoever made the function guarantees it.
    unsafe { run(inner, || signature.call(inner.address, &slots)) }
}

/// The same for more arguments than there are registers.
///
/// # Safety
/// As for [`call`].
#[inline(never)]
unsafe fn call_with_stack(inner: &Inner, arguments: &[*mut PyObject], cif: &Cif) -> *mut PyObject {
    let mut borrowed = Borrowed::new();
    // SAFETY: as the caller says.
    let Some(mut slots) = (unsafe { gather::<MOST>(inner, arguments, &mut borrowed) }) else {
        return core::ptr::null_mut();
    };
    // SAFETY: whoever made the function guarantees it.
    unsafe { run(inner, || signature::call_with_stack(cif, inner.address, &mut slots)) }
}

/// Arguments as bits, each in its place. `None` with an exception set that says which one is none.
///
/// # Safety
/// As for [`call`]; as many arguments as the function has.
#[inline]
unsafe fn gather<const SLOTS: usize>(
    inner: &Inner,
    arguments: &[*mut PyObject],
    borrowed: &mut Borrowed,
) -> Option<[u64; SLOTS]> {
    let mut slots = [0; SLOTS];
    for (index, (&object, parameter)) in
        arguments.iter().zip(&inner.signature.parameters).enumerate()
    {
        // SAFETY: as the caller says.
        match unsafe { convert::bits(parameter.kind, object, borrowed) } {
            Ok(bits) => parameter.put(&mut slots, bits),
            Err(refused) => {
                // SAFETY: as the caller says.
                unsafe { refuse_argument(inner, index, parameter.kind, object, refused) };
                return None;
            }
        }
    }
    Some(slots)
}

/// Runs machine code, and makes an object of the bits that it gives; null with an exception set, which may be a callback's.
///
/// # Safety
/// The interpreter is held; `code` calls the function, for which whoever made it guarantees, with what it takes.
#[inline]
unsafe fn run(inner: &Inner, code: impl FnOnce() -> u64) -> *mut PyObject {
    inner.liveness.enter();
    let bits = DEPTH.with(|depth| {
        depth.set(depth.get() + 1);
        let bits = if inner.gives_up_lock {
            // SAFETY: the lock is given up by the thread that has it, which takes it again.
            unsafe {
                let thread = ffi::PyEval_SaveThread();
                let bits = code();
                ffi::PyEval_RestoreThread(thread);
                bits
            }
        } else {
            code()
        };
        depth.set(depth.get() - 1);
        bits
    });
    inner.liveness.leave();
    // SAFETY: the interpreter is held again.
    if !unsafe { ffi::PyErr_Occurred() }.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: as above; who said that the result is a text guarantees it. What was lent is given back after it was made of it.
    unsafe { convert::object(inner.signature.result, bits) }
}

/// Sets the exception that says why an object is no argument.
///
/// # Safety
/// The interpreter is held, and `object` is one.
#[cold]
unsafe fn refuse_argument(
    inner: &Inner,
    index: usize,
    kind: Kind,
    object: *mut PyObject,
    refused: Refused,
) {
    Python::attach(|py| {
        // SAFETY: as the caller says.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        let place = format!("{}() argument {}", inner.name(py), index + 1);
        refused.error(py, &place, kind, &object).restore(py);
    });
}

/// Sets the exception that says why a call cannot be.
#[cold]
fn refuse(function: &FunctionObject, given: usize, named: Py_ssize_t) -> *mut PyObject {
    Python::attach(|py| {
        let inner = function.inner();
        let name = inner.name(py);
        let error = if !inner.liveness.is_alive() {
            crate::errors::unloaded(py, &name)
        } else if named != 0 {
            PyTypeError::new_err(format!("{name}() takes no keyword arguments"))
        } else {
            let takes = inner.signature.parameters.len();
            let plural = if takes == 1 { "" } else { "s" };
            PyTypeError::new_err(format!("{name}() takes {takes} argument{plural} ({given} given)"))
        };
        error.restore(py);
        core::ptr::null_mut()
    })
}
