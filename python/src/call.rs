//! One call from Python: arguments into registers, the lock given up, the function, and its result. No memory is taken from the heap
//! for it, but what Python takes for the result.

use crate::borrowed::Borrowed;
use crate::convert;
use crate::interpreter;
use crate::liveness::Liveness;
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

/// Does what runs functions of Python's for machine code: their number is how many calls of ours this thread was inside of, the last of which
/// passes exceptions on. Inside of it, it is in none of them.
pub(crate) fn outside<T>(work: impl FnOnce(u32) -> T) -> T {
    let depth = DEPTH.replace(0);
    let done = work(depth);
    DEPTH.set(depth);
    done
}

/// Does what runs machine code by other ways than a call, without the lock.
///
/// # Errors
/// What a callback has raised meanwhile; that the code is gone.
pub(crate) fn run_other<T: Send>(
    py: Python<'_>,
    liveness: &Liveness,
    code: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    if !liveness.enter() {
        return Err(crate::errors::unloaded(py, "the module"));
    }
    DEPTH.set(DEPTH.get() + 1);
    let done = py.detach(code);
    DEPTH.set(DEPTH.get() - 1);
    liveness.leave();
    PyErr::take(py).map_or(Ok(done), Err)
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
        // SAFETY: as the caller says.
        return unsafe { refuse(inner, arguments.len(), named) };
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
    // arguments can run any code when they are converted
    if !inner.liveness.enter() {
        // SAFETY: the interpreter is held.
        return unsafe { refuse(inner, inner.signature.parameters.len(), 0) };
    }
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
    let raise = |py: Python<'_>| {
        // SAFETY: as the caller says.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        let place = format!("{}() argument {}", inner.name(py), index + 1);
        refused.error(py, &place, kind, &object).restore(py);
    };
    // SAFETY: as the caller says.
    unsafe { interpreter::held(raise) };
}

/// Sets the exception that says why a call cannot be.
///
/// # Safety
/// The interpreter is held.
#[cold]
unsafe fn refuse(inner: &Inner, given: usize, named: Py_ssize_t) -> *mut PyObject {
    let raise = |py: Python<'_>| {
        let name = inner.name(py);
        let error = if !inner.liveness.is_alive() {
            crate::errors::unloaded(py, &format!("{name}: its code"))
        } else if named != 0 {
            PyTypeError::new_err(format!("{name}() takes no keyword arguments"))
        } else {
            let takes = inner.signature.parameters.len();
            let plural = if takes == 1 { "" } else { "s" };
            PyTypeError::new_err(format!("{name}() takes {takes} argument{plural} ({given} given)"))
        };
        error.restore(py);
        core::ptr::null_mut()
    };
    // SAFETY: as the caller says.
    unsafe { interpreter::held(raise) }
}
