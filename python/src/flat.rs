//! Objects as one piece of code that runs where it is put: for JIT compilers that have memory of their own.

use crate::errors::{Failure, Objects};
use crate::held::Held;
use crate::link::too_large;
use crate::sources::Names;
use archs::{Architecture, with_arch};
use elf_core::{File, Name};
use elf_layout::{ExternalSymbol, HeapStorage, ImageMode, Layout, Options};
use exec_host::symbols::{Found, Symbols as _};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;

/// Two addresses as far from each other as can be.
const ANYWHERE: [u64; 2] = [0x1_0000_0000, 0x7fff_0000_0000];

/// The sections of an object in file order, relocated for `base`, or, without one, for any address: then code that must know its
/// address is refused. `ask` is asked for what the object does not define. At most `limit` bytes.
#[pyfunction]
#[pyo3(signature = (data, base, ask, limit = 1 << 30))]
pub(crate) fn flat<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    base: Option<u64>,
    ask: Option<Py<PyAny>>,
    limit: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = [Held::of(data)?];
    let [held] = &bytes;
    let objects = Objects { labels: &[], bytes: &bytes };
    let damaged = |error| objects.loading(exec_host::Error::Elf { object: 0, error }).error(py);
    let files = [File::parse(held.as_ref()).map_err(damaged)?];
    let [file] = &files;
    let Some(architecture) = Architecture::of(file.header().machine, file.encoding().is_64())
    else {
        return Err(Failure::new("FormatError", "no relocations for this machine").error(py));
    };
    let mut names = Names::new(HashMap::new(), ask);
    let mut externals = |name: Name<'_>| match names.find(name)? {
        Found::At(external) | Found::Kept(external, _) => {
            Some(ExternalSymbol::function(external.address()))
        }
        _ => None,
    };
    let options =
        Options { mode: ImageMode::Packed { section_alignment: 1 }, base, ..Options::default() };
    let mut room = HeapStorage::new();
    let image = with_arch!(architecture, A => {
        let explain = |error: elf_layout::Error| objects.layout(error, error.explain(&files).to_string());
        let write = |layout: &Layout<'_, '_, A>, base| {
            let size = layout.size();
            let large = || too_large(size, limit);
            let size = usize::try_from(size).ok().filter(|_| size <= limit).ok_or_else(large)?;
            let mut image = Vec::new();
            image.try_reserve_exact(size).map_err(|_| large())?;
            image.resize(size, 0);
            layout.write_zeroed(&mut image, base).map(|()| image).map_err(explain)
        };
        room.plan::<A>(&files, options, &mut externals).map_err(explain).and_then(|layout| {
            let Some(base) = base else {
                let image = write(&layout, ANYWHERE[0])?;
                return Ok((image == write(&layout, ANYWHERE[1])?).then_some(image));
            };
            write(&layout, base).map(Some)
        })
    });
    if let Some(raised) = names.raised.take() {
        return Err(raised);
    }
    match image {
        Ok(Some(image)) => Ok(PyBytes::new(py, &image)),
        Ok(None) => {
            Err(Failure::new("LinkError", "the code must know its address, which is not known yet")
                .error(py))
        }
        Err(failure) => Err(failure.error(py)),
    }
}
