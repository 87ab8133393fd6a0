//! `load`: objects into this process.

use crate::errors::Objects;
use crate::held::Held;
use crate::loaded::Loaded;
use crate::observers::{Observers, Raised};
use crate::options;
use crate::sources::{Given, Names, Opened, Source};
use exec_host::symbols::{Symbols as _, keep_data};
use exec_host::{CodeArena, Loader};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// What loads if nothing else is said: freed memory of small modules is used again.
static PLAIN: LazyLock<Loader> = LazyLock::new(|| Loader::new().reuse_memory(true));

/// Memory that small modules share.
///
/// Modules of less than some 16 KiB that are loaded with the same arena lie in the same pages: millions of them find room, and
/// each costs less. Others have memory of their own, as without an arena.
#[pyclass(frozen, module = "hoist")]
pub(crate) struct Arena(CodeArena);

#[pymethods]
impl Arena {
    #[new]
    fn new() -> Self {
        Self(CodeArena::new())
    }

    /// What it holds: a dictionary of `modules` (their number), `mapped`, `code`, `read_only` and `writable` (bytes).
    fn statistics(&self) -> std::collections::BTreeMap<&'static str, u64> {
        let all = self.0.statistics();
        [
            ("modules", all.modules),
            ("mapped", all.mapped),
            ("code", all.code),
            ("read_only", all.read_only),
            ("writable", all.writable),
        ]
        .into()
    }
}

/// How a load is done: as `hoist.load` documents it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LoadOptions {
    replaceable: bool,
    dual_mapping: bool,
    huge_pages: bool,
    relax: bool,
    limit: Option<u64>,
    arena: Option<Py<Arena>>,
    copy_relocations: bool,
}

impl LoadOptions {
    fn loader(&self) -> Loader {
        let mut loader = PLAIN
            .clone()
            .replaceable(self.replaceable)
            .dual_mapping(self.dual_mapping)
            .huge_pages(self.huge_pages)
            .relax(self.relax);
        if let Some(limit) = self.limit {
            loader = loader.limit(limit);
        }
        if let Some(arena) = &self.arena {
            loader = loader.arena(&arena.get().0);
        }
        loader
    }
}

/// Loads objects, each a label and its bytes; without options as if nothing was said.
#[pyfunction]
#[pyo3(signature = (objects, names, ask, sources, libraries, process, keep, options))]
#[expect(clippy::too_many_arguments, reason = "called from hoist/_load.py only")]
pub(crate) fn load(
    py: Python<'_>,
    objects: Vec<(String, Bound<'_, PyAny>)>,
    names: Given,
    ask: Option<Py<PyAny>>,
    sources: Vec<Bound<'_, PyAny>>,
    libraries: Vec<PathBuf>,
    process: bool,
    keep: Option<&Bound<'_, Loaded>>,
    options: Option<&Bound<'_, PyAny>>,
) -> PyResult<Loaded> {
    let (labels, bytes): (Vec<String>, Vec<_>) = objects.into_iter().unzip();
    let bytes: Vec<Held> = bytes.iter().map(Held::of).collect::<PyResult<_>>()?;
    let sources: Vec<Source> = sources.iter().map(Source::of).collect::<PyResult<_>>()?;
    let keep = keep.map(|loaded| loaded.get().module(py)).transpose()?;
    let raised = Raised::default();
    let (mut loader, mut copies) = (PLAIN.clone(), false);
    if let Some(options) = options {
        let refused = |error| options::refused(py, error);
        let wanted: LoadOptions = options.extract().map_err(refused)?;
        (loader, copies) = (wanted.loader(), wanted.copy_relocations);
        for observer in options.extract::<Observers>().map_err(refused)?.all(&raised)? {
            loader = loader.observer(observer);
        }
    }
    let objects = Objects { labels: &labels, bytes: &bytes };
    let mut names = Names::new(names, ask);
    let loaded = py.detach(|| {
        let opened = Opened::new(&libraries, process, copies)?;
        let given = bytes.iter().map(|bytes| match &keep {
            Some(old) => keep_data(bytes.as_ref(), old).map(Held::from),
            None => Ok(bytes.clone()),
        });
        let given = given.collect::<Result<Vec<Held>, _>>()?;
        let symbols = (&mut names).or(sources).or(opened);
        loader.load(given, symbols)
    });
    if let Some(raised) = names.raised.take().or_else(|| raised.take()) {
        return Err(raised);
    }
    let module = loaded.map_err(|error| objects.loading(error).error(py))?;
    Ok(Loaded::new(Arc::new(module), labels, names.kept()))
}
