//! `open_library`: shared libraries out of bytes.

use crate::errors::Objects;
use crate::held::Held;
use crate::library::LoadedLibrary;
use crate::sources::{Given, Names, Source};
use exec_host::library::LibraryLoader;
use exec_host::symbols::Symbols as _;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Loads a shared library out of bytes.
#[pyfunction]
#[pyo3(signature = (data, label, names, ask, sources, origin, limit))]
#[expect(clippy::too_many_arguments, reason = "called from hoist/_load.py only")]
pub(crate) fn open_library(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    label: &str,
    names: Given,
    ask: Option<Py<PyAny>>,
    sources: Vec<Bound<'_, PyAny>>,
    origin: Option<PathBuf>,
    limit: Option<u64>,
) -> PyResult<LoadedLibrary> {
    let data = Held::of(data)?;
    let sources: Vec<Source> = sources.iter().map(Source::of).collect::<PyResult<_>>()?;
    let mut names = Names::new(names, ask);
    let opened = py.detach(|| {
        let mut loader = LibraryLoader::new();
        for source in &sources {
            if let Source::Library(library) = source {
                loader = loader.library(library);
            }
        }
        if let Some(limit) = limit {
            loader = loader.limit(limit);
        }
        if let Some(origin) = origin {
            loader = loader.origin(origin);
        }
        // SAFETY: who loads a library guarantees its constructors.
        unsafe { loader.symbols((&mut names).or(sources)).open(data) }
    });
    if let Some(raised) = names.raised.take() {
        return Err(raised);
    }
    let library = opened.map_err(|error| {
        let mut failure = Objects { labels: &[], bytes: &[] }.loading(error);
        failure.prefix(label);
        failure.error(py)
    })?;
    Ok(LoadedLibrary::new(library))
}
