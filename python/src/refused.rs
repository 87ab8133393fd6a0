//! Why an object is no argument, or no result.

use crate::types::Kind;
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Why an object is no argument.
pub(crate) enum Refused {
    /// An exception is set that says it.
    Set,
    /// It is something else.
    Type,
    /// A number outside of the type's range.
    Range,
    /// A text with NUL inside.
    Nul,
    /// Memory of another device, or with gaps.
    Memory,
}

impl Refused {
    /// The exception, whose text begins with `place`.
    pub(crate) fn error(
        self,
        py: Python<'_>,
        place: &str,
        kind: Kind,
        object: &Bound<'_, PyAny>,
    ) -> PyErr {
        let type_name =
            || object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        let name = kind.name();
        match self {
            Self::Set => PyErr::fetch(py),
            Self::Type if kind == Kind::Pointer && type_name() == "str" => PyTypeError::new_err(
                format!("{place}: {name} expected, got str (hoist.cstr takes text)"),
            ),
            Self::Type => {
                PyTypeError::new_err(format!("{place}: {name} expected, got {}", type_name()))
            }
            Self::Range => {
                PyOverflowError::new_err(format!("{place}: {object} does not fit {name}"))
            }
            Self::Nul => PyValueError::new_err(format!("{place}: the text has NUL inside")),
            Self::Memory => PyBufferError::new_err(format!(
                "{place}: memory of another device, or not in one piece"
            )),
        }
    }
}
