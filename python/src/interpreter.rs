//! The interpreter: where it is held already, and which one it is.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Does something with the interpreter, which the caller holds: also while it ends, when destructors run and `Python::attach` panics.
///
/// # Safety
/// The interpreter is held.
pub(crate) unsafe fn held<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    // SAFETY: it only asks.
    if unsafe { ffi::Py_IsInitialized() } != 0 {
        // PyO3 counts down at once only where it knows that the interpreter is held
        return Python::attach(work);
    }
    // SAFETY: as the caller says.
    work(unsafe { Python::assume_attached() })
}

/// # Errors
/// `ImportError` in any interpreter of the process but the first: callbacks take the lock of that one (`PyGILState_Ensure`), and would
/// wait for it for ever.
pub(crate) fn refuse_others() -> PyResult<()> {
    // SAFETY: the interpreter that imports the module is held.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        -1 => Python::attach(|py| Err(PyErr::fetch(py))),
        _ => Err(PyImportError::new_err(
            "hoist works in the main interpreter of a process only, not in subinterpreters",
        )),
    }
}
