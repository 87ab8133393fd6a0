//! Options, which Python gives as a dictionary.

use pyo3::prelude::*;

/// Options that could not be read, in words of who gave them: which one, and why.
pub(crate) fn refused(py: Python<'_>, error: PyErr) -> PyErr {
    let text = error.value(py).to_string();
    match (text.strip_prefix("failed to extract field "), error.cause(py)) {
        (Some(field), Some(cause)) => {
            let name = field.rsplit('.').next().unwrap_or(field);
            PyErr::from_type(cause.get_type(py), format!("{name}: {}", cause.value(py)))
        }
        _ => error,
    }
}
