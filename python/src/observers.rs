//! Who is told of loads: debuggers, profilers, functions of Python's.

use exec_host::observer::{
    GdbInterface, JitDump, Loaded, LoadedFunction, LoadedLibrary, Observed, Observer, PerfMap,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io::{Error as IoError, Result as IoResult};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Who is told of a load, by `hoist.load`'s names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Observers {
    gdb: bool,
    perf_map: bool,
    jitdump: Option<PathBuf>,
    observer: Option<Py<PyAny>>,
}

/// What a function of Python's has raised during a load, which raises it then.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps the first.
    pub(crate) fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Whether there is one.
    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Observers {
    /// All of them, in the order in which they are told.
    ///
    /// # Errors
    /// If a file for a profiler cannot be written.
    pub(crate) fn all(self, raised: &Raised) -> PyResult<Vec<Arc<dyn Observer>>> {
        let mut all: Vec<Arc<dyn Observer>> = Vec::new();
        if self.gdb {
            all.push(Arc::new(GdbInterface));
        }
        if self.perf_map {
            let map = PerfMap::create();
            all.push(Arc::new(map.map_err(|error| unwritten("the map for perf", &error))?));
        }
        if let Some(folder) = self.jitdump {
            let dump = JitDump::create(folder);
            all.push(Arc::new(dump.map_err(|error| unwritten("the dump for perf", &error))?));
        }
        if let Some(function) = self.observer {
            all.push(Arc::new(Told { function, raised: raised.clone() }));
        }
        Ok(all)
    }
}

fn unwritten(what: &str, error: &std::io::Error) -> PyErr {
    PyOSError::new_err(format!("{what}: {error}"))
}

/// A function of Python's that is told.
#[derive(Debug)]
struct Told {
    function: Py<PyAny>,
    raised: Raised,
}

impl core::fmt::Debug for Raised {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Raised").field(&self.is_set()).finish()
    }
}

impl Told {
    fn tell(&self, name: &str, functions: &[LoadedFunction<'_>]) -> IoResult<Option<Observed>> {
        let told = Python::try_attach(|py| {
            let rows = functions.iter().map(|function| row(py, function));
            let rows = rows.collect::<PyResult<Vec<_>>>()?;
            let left = self.function.bind(py).call1((name, rows))?;
            Ok((!left.is_none()).then(|| left.unbind()))
        });
        // where the interpreter ends, nobody is told
        match told.unwrap_or(Ok(None)) {
            Ok(left) => Ok(left.map(|left| Box::new(Left(Some(left))) as Observed)),
            Err(error) => {
                self.raised.set(error);
                Err(IoError::other("the observer has raised an exception"))
            }
        }
    }
}

fn row<'py>(py: Python<'py>, function: &LoadedFunction<'_>) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", function.name.to_string())?;
    row.set_item("address", function.address)?;
    row.set_item("size", function.size)?;
    row.set_item("object", function.object)?;
    row.set_item("is_stub", function.is_stub)?;
    Ok(row)
}

impl Observer for Told {
    fn loaded(&self, loaded: &Loaded<'_>) -> IoResult<Option<Observed>> {
        self.tell("", &loaded.functions())
    }

    fn library_loaded(&self, library: &LoadedLibrary<'_>) -> IoResult<Option<Observed>> {
        self.tell(&library.name().to_string(), &library.functions())
    }
}

/// What the function has left, to be called when the load goes.
struct Left(Option<Py<PyAny>>);

impl Drop for Left {
    fn drop(&mut self) {
        let Some(left) = self.0.take() else { return };
        // where there is no interpreter any more, nobody is told, and nothing is counted down
        let left = core::mem::ManuallyDrop::new(left);
        Python::try_attach(|py| {
            let left = core::mem::ManuallyDrop::into_inner(left);
            if let Err(error) = left.call0(py) {
                error.write_unraisable(py, Some(left.bind(py)));
            }
        });
    }
}
