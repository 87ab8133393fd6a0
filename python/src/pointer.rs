//! Objects that stand for an address: functions, buffers, memory by DLPack, and those that say it.

use crate::borrowed::Borrowed;
use crate::dlpack::Tensor;
use crate::errors::unloaded;
use crate::interpreter;
use crate::object;
use crate::refused::Refused;
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
        if let Some(function) = object::function(object) {
            if !function.liveness.is_alive() {
                let what = |py: Python<'_>| {
                    unloaded(py, &format!("{}: its code", function.name(py))).restore(py)
                };
                interpreter::held(what);
                return Err(Refused::Set);
            }
            return Ok(function.address as u64);
        }
        if let Some(buffer) = borrowed.buffer(object) {
            let (address, is_word) = (buffer.buf.addr() as u64, buffer.is_word());
            let is_function = is_word && interpreter::held(|py| is_of_ctypes(py, object));
            return Ok(if is_function { buffer_word(address) } else { address });
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
    let ask = |py: Python<'_>| {
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
    };
    // SAFETY: as the caller says.
    unsafe { interpreter::held(ask) }
}

/// Whether it is a function of ctypes, whose buffer is the word that holds its address.
///
/// # Safety
/// As for [`address`].
pub(crate) unsafe fn is_of_ctypes(py: Python<'_>, object: *mut PyObject) -> bool {
    let asked = || {
        // SAFETY: as the caller says.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        let modules = py.import("sys")?.getattr("modules")?;
        object.is_instance(&modules.get_item("_ctypes")?.getattr("CFuncPtr")?)
    };
    // without ctypes there are none
    asked().unwrap_or(false)
}

/// The address that a word holds.
///
/// # Safety
/// A word is at the address.
pub(crate) unsafe fn buffer_word(address: u64) -> u64 {
    // SAFETY: as the caller says.
    unsafe { core::ptr::with_exposed_provenance::<u64>(address as usize).read_unaligned() }
}
