//! What was loaded together: its functions, symbols and sections.

use crate::call;
use crate::errors::{Failure, Field, Objects, no_symbol, unloaded};
use crate::function;
use crate::held::Held;
use crate::kept::Kept;
use crate::liveness::Liveness;
use crate::memory;
use crate::types::Type;
use elf_core::names::{STB, STT};
use exec_host::{Module, ModuleSymbol};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A load. `hoist.Module` is made of it.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Loaded {
    module: Mutex<Option<Arc<Module<Held>>>>,
    labels: Vec<String>,
    liveness: Arc<Liveness>,
    /// What the module keeps of Python's.
    kept: Vec<Weak<Kept>>,
}

impl Loaded {
    pub(crate) fn new(
        module: Arc<Module<Held>>,
        labels: Vec<String>,
        kept: Vec<Weak<Kept>>,
    ) -> Self {
        Self { module: Mutex::new(Some(module)), labels, liveness: Arc::default(), kept }
    }

    /// What was loaded.
    ///
    /// # Errors
    /// If it was unloaded.
    pub(crate) fn module(&self, py: Python<'_>) -> PyResult<Arc<Module<Held>>> {
        let module = self.module.lock().unwrap_or_else(PoisonError::into_inner).clone();
        module.ok_or_else(|| unloaded(py, "the module"))
    }

    fn label(&self, object: usize) -> &str {
        self.labels.get(object).map_or("", String::as_str)
    }

    fn symbol<'py>(
        &self,
        py: Python<'py>,
        symbol: &ModuleSymbol<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        row.set_item("name", symbol.name.to_string())?;
        row.set_item("address", symbol.address)?;
        row.set_item("size", symbol.size)?;
        row.set_item("type", STT.get(symbol.r#type.into()).map(short))?;
        row.set_item("binding", STB.get(symbol.binding.into()).map(short))?;
        row.set_item("object", self.label(symbol.object))?;
        row.set_item("section", symbol.section)?;
        Ok(row)
    }
}

/// `STT_FUNC`: `func`.
fn short(name: &'static str) -> String {
    name.rsplit('_').next().unwrap_or_default().to_lowercase()
}

#[pymethods]
impl Loaded {
    /// Runs constructors, if there are any and they were not run. From now on destructors run when the code goes.
    fn initialize(&self, py: Python<'_>) -> PyResult<()> {
        let module = self.module(py)?;
        // SAFETY: who loads code to run it guarantees its constructors.
        let initialize = || unsafe { module.initialize() };
        if module.needs_initialization() {
            return call::run_other(py, &self.liveness, initialize);
        }
        initialize();
        Ok(())
    }

    /// Shows the collector of garbage what only this module keeps. Who has it in a cycle can be changed, and breaks it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(module) = self.module.try_lock() else { return Ok(()) };
        // others that have it, and what it keeps, are not seen by the collector
        if module.as_ref().is_none_or(|module| Arc::strong_count(module) != 1) {
            return Ok(());
        }
        for kept in self.kept.iter().filter(|kept| kept.strong_count() == 1) {
            if let Some(kept) = kept.upgrade() {
                visit.call(&kept.0)?;
            }
        }
        Ok(())
    }

    fn needs_initialization(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.module(py)?.needs_initialization())
    }

    #[pyo3(signature = (name, args, ret, gives_up_lock, owner))]
    fn function(
        &self,
        py: Python<'_>,
        name: &str,
        args: &Bound<'_, PyTuple>,
        ret: Type,
        gives_up_lock: bool,
        owner: Py<PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let objects = Objects { labels: &self.labels, bytes: &[] };
        let address =
            self.module(py)?.function(name).map_err(|error| objects.loading(error).error(py))?;
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
        self.module(py)?.address(name).ok_or_else(|| no_symbol(name).error(py))
    }

    fn symbols<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.module(py)?.symbols().map(|symbol| self.symbol(py, &symbol)).collect()
    }

    /// The symbols that are called so in the source.
    fn find_demangled<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let module = self.module(py)?;
        module.find_demangled(name).map(|symbol| self.symbol(py, &symbol)).collect()
    }

    fn bytes_in_huge_pages(&self, py: Python<'_>) -> PyResult<u64> {
        let module = self.module(py)?;
        Ok(py.detach(|| module.bytes_in_huge_pages())?)
    }

    fn symbol_at<'py>(
        &self,
        py: Python<'py>,
        address: u64,
    ) -> PyResult<Option<(Bound<'py, PyDict>, u64)>> {
        let module = self.module(py)?;
        let found = module.symbol_at(address);
        found.map(|(symbol, offset)| Ok((self.symbol(py, &symbol)?, offset))).transpose()
    }

    fn sections<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let module = self.module(py)?;
        let one = |section: exec_host::ModuleSection<'_>| {
            let row = PyDict::new(py);
            row.set_item("name", section.name.to_string())?;
            row.set_item("address", section.address)?;
            row.set_item("size", section.size)?;
            row.set_item("flags", section.flags.bits())?;
            row.set_item("index", section.index)?;
            row.set_item("object", self.label(section.object))?;
            Ok(row)
        };
        module.sections().map(one).collect()
    }

    /// The bytes of a section, by the number of its row, as they are in memory; writable if the code's are.
    fn section_bytes(&self, py: Python<'_>, number: usize) -> PyResult<Option<Py<PyAny>>> {
        let module = self.module(py)?;
        let Some((address, size, is_constant)) =
            module.sections().nth(number).and_then(|section| {
                let is_constant = !section.flags.contains(elf_core::SectionFlags::WRITE);
                Some((section.address?, section.size, is_constant))
            })
        else {
            return Ok(None);
        };
        // SAFETY: the section is in the module's memory, writable if its flags say so; the module keeps it.
        unsafe {
            memory::view(py, address, size, is_constant, Arc::clone(&module) as memory::Keeper)
        }
        .map(Some)
    }

    fn segments(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64, String)>> {
        let one = |(range, flags): (core::ops::Range<u64>, elf_core::SegmentFlags)| {
            (range.start, range.end.wrapping_sub(range.start), crate::link::permissions(flags))
        };
        Ok(self.module(py)?.segments().map(one).collect())
    }

    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sizes = self.module(py)?.sizes();
        let row = PyDict::new(py);
        row.set_item("code", sizes.code)?;
        row.set_item("read_only", sizes.read_only)?;
        row.set_item("writable", sizes.writable)?;
        row.set_item("thread_local", sizes.thread_local)?;
        Ok(row)
    }

    fn extent(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        Ok(self.module(py)?.extent())
    }

    fn is_loaded(&self) -> bool {
        self.liveness.is_alive()
    }

    /// Leads callers of a function to that of another module.
    fn replace(&self, py: Python<'_>, name: &str, new: &Bound<'_, Self>) -> PyResult<Replacement> {
        let (old, new) = (self.module(py)?, new.get().module(py)?);
        let objects = Objects { labels: &self.labels, bytes: &[] };
        // SAFETY: who replaces a function guarantees one of the same type.
        let replaced = unsafe { old.replace(name, &new) };
        let replaced = replaced.map_err(|error| objects.loading(error).error(py))?;
        Ok(Replacement(Mutex::new(Some(replaced))))
    }

    /// Gives the code up. Its memory goes when nobody else uses it: modules that were loaded with this one, views of sections.
    fn unload(&self, py: Python<'_>) -> PyResult<()> {
        if let Err(calls) = self.liveness.end() {
            let message = format!(
                "the module cannot be unloaded: {calls} calls of its functions are not over"
            );
            return Err(Failure::new("BusyError", message)
                .with("calls", Field::Number(calls as u64))
                .error(py));
        }
        let module = self.module.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(module));
        Ok(())
    }
}

/// A function that another one stands for, until this is undone.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Replacement(Mutex<Option<exec_host::Replacement>>);

#[pymethods]
impl Replacement {
    /// Puts the function back.
    fn undo(&self) {
        let replaced = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(replaced);
    }

    fn is_in_force(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}
