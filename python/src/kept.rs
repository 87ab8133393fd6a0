//! Objects of Python's that loads keep.

use pyo3::prelude::*;

/// An object of Python's that a load keeps, as often as it is counted.
pub(crate) struct Kept(pub(crate) Py<PyAny>);
