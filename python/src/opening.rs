//! `open_library`: shared libraries out of bytes.

use crate::errors::Objects;
use crate::held::Held;
use crate::library::LoadedLibrary;
use crate::observers::{Observers, Raised};
use crate::options;
use crate::sources::{Given, Names, Source};
use elf_core::Name;
use exec_host::library::{LibraryLoader, NeededLibrary};
use exec_host::symbols::Symbols as _;
use pyo3::prelude::*;
use std::path::PathBuf;

/// How a library is loaded: as `hoist.load` documents it.
#[derive(Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LibraryOptions {
    limit: Option<u64>,
    lazy: bool,
    needed: Option<Py<PyAny>>,
}

/// Loads a shared library out of bytes, or, where there are none, of the file at a path; without options as if nothing was said.
#[pyfunction]
#[pyo3(signature = (data, label, names, ask, sources, path, options))]
#[expect(clippy::too_many_arguments, reason = "called from hoist/_load.py only")]
pub(crate) fn open_library(
    py: Python<'_>,
    data: Option<&Bound<'_, PyAny>>,
    label: &str,
    names: Given,
    ask: Option<Py<PyAny>>,
    sources: Vec<Bound<'_, PyAny>>,
    path: Option<PathBuf>,
    options: Option<&Bound<'_, PyAny>>,
) -> PyResult<LoadedLibrary> {
    let data = data.map(Held::of).transpose()?;
    let path = path.unwrap_or_default();
    let sources: Vec<Source> = sources.iter().map(Source::of).collect::<PyResult<_>>()?;
    let mut names = Names::new(names, ask);
    let raised = Raised::default();
    let (given, observers) = match options {
        Some(options) => {
            let refused = |error| options::refused(py, error);
            let observers = options.extract::<Observers>().map_err(refused)?;
            (options.extract().map_err(refused)?, observers.all(&raised)?)
        }
        None => (LibraryOptions::default(), Vec::new()),
    };
    let opened = py.detach(|| {
        let LibraryOptions { limit, lazy, needed } = given;
        let mut loader = LibraryLoader::new();
        for source in &sources {
            if let Source::Library(library) = source {
                loader = loader.library(library);
            }
        }
        if let Some(limit) = limit {
            loader = loader.limit(limit);
        }
        if lazy {
            loader = loader.lazy();
        }
        if let Some(needed) = &needed {
            loader = loader.needed(|name| find(needed, name, &raised));
        }
        for observer in observers {
            loader = loader.observer(observer);
        }
        let loader = loader.symbols((&mut names).or(sources));
        // SAFETY: who loads a library guarantees its constructors, and of a path its file.
        unsafe {
            match data {
                Some(data) => loader.open(data),
                None => loader.open_file(path),
            }
        }
    });
    if let Some(raised) = names.raised.take().or_else(|| raised.take()) {
        return Err(raised);
    }
    let library = opened.map_err(|error| {
        let mut failure = Objects { labels: &[], bytes: &[] }.loading(error);
        failure.prefix(label);
        failure.error(py)
    })?;
    Ok(LoadedLibrary::new(library))
}

/// The library that a function of Python's has by this name: one that is loaded, or bytes.
fn find(needed: &Py<PyAny>, name: Name<'_>, raised: &Raised) -> Option<NeededLibrary> {
    if raised.is_set() {
        return None;
    }
    let found = Python::try_attach(|py| {
        let found = needed.bind(py).call1((name.to_string(),))?;
        if found.is_none() {
            return Ok(None);
        }
        match found.cast::<LoadedLibrary>() {
            Ok(library) => Ok(Some(library.get().library(py)?.into())),
            Err(_) => Ok(Some(NeededLibrary::bytes(Held::of(&found)?))),
        }
    });
    // where the interpreter ends, nobody answers
    found.unwrap_or(Ok(None)).unwrap_or_else(|error| {
        raised.set(error);
        None
    })
}
