//! Types of arguments and results: `hoist.i32` and the others.

use pyo3::prelude::*;

/// What an argument or a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Void,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Pointer,
    Text,
}

/// All of them: kind, name in Python, size in bytes, what it is.
const ALL: [(Kind, &str, usize, &str); 14] = [
    (Kind::Void, "void", 0, "No result."),
    (Kind::Bool, "bool_", 1, "_Bool: True or False; any object is an argument, by its truth."),
    (Kind::I8, "i8", 1, "int8_t."),
    (Kind::I16, "i16", 2, "int16_t."),
    (Kind::I32, "i32", 4, "int32_t, int."),
    (Kind::I64, "i64", 8, "int64_t, long, ssize_t."),
    (Kind::U8, "u8", 1, "uint8_t."),
    (Kind::U16, "u16", 2, "uint16_t."),
    (Kind::U32, "u32", 4, "uint32_t, unsigned."),
    (Kind::U64, "u64", 8, "uint64_t, unsigned long, size_t."),
    (Kind::F32, "f32", 4, "float."),
    (Kind::F64, "f64", 8, "double."),
    (
        Kind::Pointer,
        "ptr",
        8,
        "A pointer. Arguments: None, an address, a function, a callback, or a function of ctypes, or an object with a buffer (bytes, \
         bytearray, memoryview, mmap, array, ctypes, numpy) or DLPack on the CPU (torch), which is lent for the call. Results: the address as int.",
    ),
    (
        Kind::Text,
        "cstr",
        8,
        "const char *. Arguments: str (passed as UTF-8), bytes or None, without NUL inside. Results: str or None; bytes that are no \
         UTF-8 are in it as os.fsdecode has them, and become bytes again in arguments.",
    ),
];

impl Kind {
    fn row(self) -> (Self, &'static str, usize, &'static str) {
        ALL.into_iter().find(|row| row.0 == self).unwrap_or((self, "void", 0, ""))
    }

    /// Its name in Python.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    /// Whether registers of floating-point numbers hold it.
    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// The type of an argument or a result.
#[pyclass(frozen, eq, hash, from_py_object, module = "hoist")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Type(pub(crate) Kind);

#[pymethods]
impl Type {
    /// Its name: `i32`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Its size in bytes; 0 of `void`.
    #[getter]
    fn size(&self) -> usize {
        self.0.row().2
    }

    /// What it is in C, and which values it takes.
    #[getter]
    fn description(&self) -> &'static str {
        self.0.row().3
    }

    fn __repr__(&self) -> String {
        format!("hoist.{}", self.0.name())
    }

    /// So that types can be copied and pickled: as a name.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }
}

/// Adds the class, and a constant for each type.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Type>()?;
    for (kind, name, ..) in ALL {
        module.add(name, Type(kind))?;
    }
    Ok(())
}
