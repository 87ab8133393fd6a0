//! Shared libraries out of bytes.

use crate::errors::{Failure, Field, Objects, no_symbol, unloaded};
use crate::function;
use crate::liveness::Liveness;
use crate::types::Type;
use exec_host::library::Library;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, PoisonError};

/// A shared library in memory. `hoist.Library` is made of it.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct LoadedLibrary {
    library: Mutex<Option<Library>>,
    liveness: Arc<Liveness>,
}

impl LoadedLibrary {
    pub(crate) fn new(library: Library) -> Self {
        Self { library: Mutex::new(Some(library)), liveness: Arc::default() }
    }

    /// The library.
    ///
    /// # Errors
    /// If it was unloaded.
    pub(crate) fn library(&self, py: Python<'_>) -> PyResult<Library> {
        let library = self.library.lock().unwrap_or_else(PoisonError::into_inner).clone();
        library.ok_or_else(|| unloaded(py, "the library"))
    }
}

const NOBODY: Objects<'static> = Objects { labels: &[], bytes: &[] };

#[pymethods]
impl LoadedLibrary {
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.library(py)?.name().to_string())
    }

    #[pyo3(signature = (name, args, ret, gives_up_lock, owner, version=None))]
    #[expect(clippy::too_many_arguments, reason = "called from hoist/_load.py only")]
    fn function(
        &self,
        py: Python<'_>,
        name: &str,
        args: &Bound<'_, PyTuple>,
        ret: Type,
        gives_up_lock: bool,
        owner: Py<PyAny>,
        version: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        let library = self.library(py)?;
        let found = match version {
            Some(version) => library.function_version(name, version),
            None => library.function(name),
        };
        let address = found.map_err(|error| NOBODY.loading(error).error(py))?;
        function::make(
            py,
            address,
            name,
            args,
            ret,
            gives_up_lock,
            Arc::clone(&self.liveness),
            owner,
        )
    }

    fn address(&self, py: Python<'_>, name: &str) -> PyResult<u64> {
        self.library(py)?.address(name).ok_or_else(|| no_symbol(name).error(py))
    }

    /// The function that an address is in, and how far behind its start that is.
    fn symbol_at(&self, py: Python<'_>, address: u64) -> PyResult<Option<(String, u64)>> {
        let library = self.library(py)?;
        let found = py
            .detach(|| library.symbol_at(address).map(|(name, offset)| (name.to_string(), offset)));
        Ok(found)
    }

    fn extent(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        Ok(self.library(py)?.extent())
    }

    fn is_loaded(&self) -> bool {
        self.liveness.is_alive()
    }

    fn unload(&self, py: Python<'_>) -> PyResult<()> {
        if let Err(calls) = self.liveness.end() {
            let message = format!(
                "the library cannot be unloaded: {calls} calls of its functions are not over"
            );
            return Err(Failure::new("BusyError", message)
                .with("calls", Field::Number(calls as u64))
                .error(py));
        }
        let library = self.library.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(library));
        Ok(())
    }
}
