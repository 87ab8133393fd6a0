//! Where a load gets symbols from: names that Python gives, earlier loads, archives, the process.

use crate::errors::Objects;
use crate::held::Held;
use crate::kept::Kept;
use crate::library::LoadedLibrary;
use crate::loaded::Loaded;
use elf_core::Name;
use exec_host::symbols::{ArchiveSource, Found, Keeper, Symbols};
use exec_host::{External, Module, Process};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// A static library: its members join a load when somebody asks for what they define.
#[pyclass(frozen, module = "hoist._hoist")]
pub(crate) struct Archive(ArchiveSource);

#[pymethods]
impl Archive {
    /// Reads an archive in memory; a thin one by its path.
    #[new]
    #[pyo3(signature = (data, label, path=None))]
    fn new(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        label: String,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        let data = Held::of(data)?;
        let is_thin = data.as_ref().starts_with(elf_core::archive::THIN_MAGIC);
        let read = py.detach(|| match path.filter(|_| is_thin) {
            Some(path) => ArchiveSource::open(path),
            None => ArchiveSource::new(data),
        });
        let objects = Objects { labels: &[], bytes: &[] };
        read.map(Self).map_err(|error| {
            let mut failure = objects.loading(error);
            failure.prefix(&label);
            failure.error(py)
        })
    }

    /// All members, in order.
    fn members<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.0.members().map(|member| PyBytes::new(py, &member)).collect()
    }
}

/// A name that Python gives: address, whether it is a function, and what keeps it.
pub(crate) type Given = HashMap<String, (u64, bool, Option<Py<PyAny>>)>;

/// Names of Python's, then a function of Python's that is asked for names.
pub(crate) struct Names {
    pub(crate) given: HashMap<String, (External, Option<Arc<Kept>>)>,
    pub(crate) ask: Option<Py<PyAny>>,
    /// What the function has raised.
    pub(crate) raised: Option<PyErr>,
}

impl Names {
    pub(crate) fn new(given: Given, ask: Option<Py<PyAny>>) -> Self {
        let one = |(name, (address, is_function, keeper)): (_, (u64, bool, Option<Py<PyAny>>))| {
            (name, (external(address, is_function), keeper.map(|keeper| Arc::new(Kept(keeper)))))
        };
        Self { given: given.into_iter().map(one).collect(), ask, raised: None }
    }

    /// The objects that a load with these names keeps, if it has used them.
    pub(crate) fn kept(&self) -> Vec<Weak<Kept>> {
        self.given.values().filter_map(|(_, keeper)| keeper.as_ref().map(Arc::downgrade)).collect()
    }

    /// Asks the function, and remembers its answer.
    fn ask(&mut self, name: &str) -> Option<(External, Option<Arc<Kept>>)> {
        let ask = self.ask.as_ref().filter(|_| self.raised.is_none())?;
        // where the interpreter ends, nobody answers
        let answer = Python::try_attach(|py| {
            let answer = ask.bind(py).call1((name,))?;
            answer.extract::<Option<(u64, bool, Option<Py<PyAny>>)>>()
        })?;
        match answer {
            Ok(answer) => {
                let (address, is_function, keeper) = answer?;
                let keeper = keeper.map(|keeper| Arc::new(Kept(keeper)));
                let found = (external(address, is_function), keeper);
                self.given.insert(name.to_owned(), found.clone());
                Some(found)
            }
            Err(error) => {
                self.raised = Some(error);
                None
            }
        }
    }
}

const fn external(address: u64, is_function: bool) -> External {
    if is_function { External::function(address) } else { External::new(address) }
}

impl Symbols for Names {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        let name = name.to_str()?;
        let found = self.given.get(name).cloned().or_else(|| self.ask(name));
        Some(match found? {
            (external, Some(keeper)) => Found::Kept(external, keeper as Keeper),
            (external, None) => Found::At(external),
        })
    }

    fn has_objects(&self) -> bool {
        false
    }
}

/// Earlier loads, libraries and archives.
#[derive(Clone)]
pub(crate) enum Source {
    Module(Arc<Module<Held>>),
    Library(exec_host::library::Library),
    Archive(ArchiveSource),
}

impl Source {
    /// What an object of Python's stands for.
    ///
    /// # Errors
    /// If it is none, or was unloaded.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(loaded) = object.cast::<Loaded>() {
            return Ok(Self::Module(loaded.get().module(object.py())?));
        }
        if let Ok(library) = object.cast::<LoadedLibrary>() {
            return Ok(Self::Library(library.get().library(object.py())?));
        }
        if let Ok(archive) = object.cast::<Archive>() {
            return Ok(Self::Archive(archive.get().0.clone()));
        }
        Err(PyTypeError::new_err(format!("no source of symbols: {}", object.repr()?)))
    }

    fn each<T>(&mut self, ask: impl FnOnce(&mut dyn Symbols) -> T) -> T {
        match self {
            Self::Module(module) => ask(module),
            Self::Library(library) => ask(library),
            Self::Archive(archive) => ask(archive),
        }
    }
}

impl Symbols for Source {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        self.each(|source| source.find(name))
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        self.each(|source| source.find_weak(name))
    }

    fn find_data(&mut self, name: Name<'_>) -> Option<Found> {
        self.each(|source| source.find_data(name))
    }

    fn has_objects(&self) -> bool {
        matches!(self, Self::Archive(_))
    }
}

/// The process and libraries opened for a load: not looked at before somebody asks.
#[derive(Default)]
pub(crate) struct Opened {
    process: Option<Process>,
    is_left_out: bool,
}

impl Opened {
    /// The process, with these libraries opened; or nothing at all. `copies` says whether their variables may be moved.
    ///
    /// # Errors
    /// If a library cannot be opened.
    pub(crate) fn new(
        libraries: &[PathBuf],
        with_process: bool,
        copies: bool,
    ) -> Result<Self, exec_host::Error> {
        if libraries.is_empty() && !(copies && with_process) {
            return Ok(Self { process: None, is_left_out: !with_process });
        }
        let mut process = Process::new();
        // SAFETY: who asks for it guarantees that nobody else uses the variables meanwhile.
        unsafe { process.copy_relocations(copies) };
        for library in libraries {
            // SAFETY: who asks for a library by name guarantees its constructors.
            unsafe { process.open(library)? };
        }
        Ok(Self { process: Some(process), is_left_out: false })
    }

    fn process(&mut self) -> Option<&mut Process> {
        if self.is_left_out {
            return None;
        }
        Some(self.process.get_or_insert_default())
    }
}

impl Symbols for Opened {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        Symbols::find(self.process()?, name)
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        Symbols::find_weak(self.process()?, name)
    }

    fn has_objects(&self) -> bool {
        false
    }

    fn copy_relocate(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        self.process().is_some_and(|process| process.copy_relocate(name, limit))
    }
}
