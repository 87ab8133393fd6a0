//! What a symbol that Python gives stands for.

use crate::borrowed::Borrowed;
use crate::errors::unloaded;
use crate::object;
use crate::pointer;
use crate::sources::Source;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Keeps code in memory, also where its module is unloaded by name.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Pin(#[expect(dead_code, reason = "it keeps the code")] Source);

/// Address of what is no integer, whether it is a function, and what keeps it.
type Address<'py> = (u64, bool, Bound<'py, PyAny>);

/// An object with a buffer, a function, a callback, or an object that says its address.
#[pyfunction]
pub(crate) fn address_of<'py>(
    py: Python<'py>,
    object: &Bound<'py, PyAny>,
) -> PyResult<Address<'py>> {
    // SAFETY: the interpreter is held, and the object is one.
    if let Some(function) = unsafe { object::function(object.as_ptr()) } {
        if !function.liveness.is_alive() {
            return Err(unloaded(py, &format!("{}: its code", function.name(py))));
        }
        let address = function.address as u64;
        let native = function.owner.bind(py).getattr_opt("_native").ok().flatten();
        let Some(source) = native.and_then(|native| Source::of(&native).ok()) else {
            return Ok((address, true, object.clone()));
        };
        let keeper = PyTuple::new(py, [object.clone(), Bound::new(py, Pin(source))?.into_any()])?;
        return Ok((address, true, keeper.into_any()));
    }
    // the view keeps the buffer where it is
    // SAFETY: the interpreter is held, and the object is one.
    let view = unsafe { ffi::PyMemoryView_FromObject(object.as_ptr()) };
    // SAFETY: a new reference, or null.
    if let Some(view) = unsafe { Bound::from_owned_ptr_or_opt(py, view) } {
        let mut borrowed = Borrowed::new();
        // SAFETY: as above.
        let Some(buffer) = (unsafe { borrowed.buffer(view.as_ptr()) }) else {
            return Err(PyErr::fetch(py));
        };
        let address = buffer.buf.addr() as u64;
        // SAFETY: as above; a function of ctypes has a word for its address.
        let function = unsafe {
            pointer::is_of_ctypes(py, object.as_ptr()).then(|| pointer::buffer_word(address))
        };
        return Ok(match function {
            Some(function) => (function, true, object.clone()),
            None => (address, false, view),
        });
    }
    let _ = PyErr::take(py);
    let Some(address) = object.getattr_opt("__hoist_address__")? else {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a symbol is an address, a function, a callback or an object with a buffer, not {kind}"
        )));
    };
    Ok((address.extract()?, object.cast::<crate::callback::Callback>().is_ok(), object.clone()))
}
