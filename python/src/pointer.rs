//! Objects that stand for an address: functions, buffers, memory by DLPack, and those that say it.

use crate::borrowed::Borrowed;
use crate::dlpack::Tensor;
use crate::object;
use crate::refused::Refused;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// The address that an object stands for, which is no integer.
///
/// # Safety
/// The interpreter is held, and the object is one that stays for the call.
pub(crate) unsafe fn address(
    object: *mut PyObject,
    borrowed: &mut Borrowed,
) -> Result<u64, Refused> {
    // SAFETY: as the caller says.
    unsafe {
        if ffi::Py_IsNone(object) != 0 {
            return Ok(0);
        }
        if let Some(address) = object::address_of(object) {
            return Ok(address as u64);
        }
        if let Some(address) = borrowed.buffer(object) {
            return Ok(address);
        }
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) == 0 {
            return Err(Refused::Set);
        }
        ffi::PyErr_Clear();
        named(object, borrowed)
    }
}

/// An object that says its address (`__hoist_address__`), or has memory of the processor by DLPack.
///
/// # Safety
/// As for [`address`].
unsafe fn named(object: *mut PyObject, borrowed: &mut Borrowed) -> Result<u64, Refused> {
    Python::attach(|py| {
        // SAFETY: as the caller says.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        let refuse = |error: PyErr| {
            error.restore(py);
            Refused::Set
        };
        if let Some(address) = object.getattr_opt("__hoist_address__").map_err(refuse)? {
            return address.extract::<u64>().map_err(refuse);
        }
        let tensor = Tensor::of(&object)?.ok_or(Refused::Type)?;
        borrowed.objects.push(tensor.capsule.into_ptr());
        Ok(tensor.address)
    })
}

/// Address and keeper of a variable that Python gives: an object with a buffer, or one that says its address.
#[pyfunction]
pub(crate) fn address_of<'py>(
    py: Python<'py>,
    object: &Bound<'py, PyAny>,
) -> PyResult<(u64, Bound<'py, PyAny>)> {
    // the view keeps the buffer where it is
    // SAFETY: the interpreter is held, and the object is one.
    let view = unsafe { ffi::PyMemoryView_FromObject(object.as_ptr()) };
    // SAFETY: a new reference, or null.
    if let Some(view) = unsafe { Bound::from_owned_ptr_or_opt(py, view) } {
        let mut borrowed = Borrowed::new();
        // SAFETY: as above.
        return match unsafe { borrowed.buffer(view.as_ptr()) } {
            Some(address) => Ok((address, view)),
            None => Err(PyErr::fetch(py)),
        };
    }
    let _ = PyErr::take(py);
    let address = object.getattr_opt("__hoist_address__")?;
    let Some(address) = address else {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a symbol is an address, a function, a callback or an object with a buffer, not {kind}"
        )));
    };
    Ok((address.extract()?, object.clone()))
}
