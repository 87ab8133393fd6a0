//! Objects as one piece of code that runs where it is put: for JIT compilers that have memory of their own.

use crate::errors::{Failure, Objects};
use crate::held::{Held, LONG};
use crate::link::too_large;
use crate::sources::Names;
use archs::{Architecture, with_arch};
use elf_core::names::{SHT_CREL, SHT_REL, SHT_RELA};
use elf_core::{Arch, Definition, File, Kind, Name, Page, Role, Special, find};
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
    let is_long = held.as_ref().len() >= LONG;
    with_arch!(architecture, A => {
        let planned = if is_long {
            py.detach(|| room.plan::<A>(&files, options, &mut externals))
        } else {
            room.plan::<A>(&files, options, &mut externals)
        };
        if let Some(raised) = names.raised.take() {
            return Err(raised);
        }
        let explain = |error: elf_layout::Error| objects.layout(error, error.explain(&files).to_string()).error(py);
        let layout = planned.map_err(explain)?;
        let size = layout.size();
        let size = usize::try_from(size).ok().filter(|_| size <= limit).ok_or_else(|| too_large(size, limit).error(py))?;
        let mut written = Ok(());
        let mut write = |place: &mut [u8]| {
            let mut all = || layout.write_zeroed(place, base.unwrap_or(ANYWHERE[0]));
            written = if is_long { py.detach(all) } else { all() };
            Ok(())
        };
        let image = PyBytes::new_with(py, size, &mut write)?;
        written.map_err(explain)?;
        if base.is_none() && !is_relative(&layout, file) {
            let mut elsewhere = Vec::new();
            elsewhere.try_reserve_exact(size).map_err(|_| too_large(size as u64, limit).error(py))?;
            elsewhere.resize(size, 0);
            py.detach(|| layout.write_zeroed(&mut elsewhere, ANYWHERE[1])).map_err(explain)?;
            if elsewhere != image.as_bytes() {
                return Err(Failure::new("LinkError", "the code must know its address, which is not known yet").error(py));
            }
        }
        Ok(image)
    })
}

/// Whether relocations come to distances in the image and nothing else, which are the same wherever it is. Most objects are found to
/// be so by this; of others the bytes for two addresses are compared.
fn is_relative<A: Arch>(layout: &Layout<'_, '_, A>, file: &File<'_>) -> bool {
    let (_, got) = layout.got();
    if got != 0 || layout.stubs().next().is_some() {
        return false;
    }
    let Ok(Some(symbols)) = file.symbol_table() else { return true };
    file.sections().iter().all(|header| {
        let is_applied = matches!(header.r#type, SHT_RELA | SHT_REL | SHT_CREL)
            && layout.section(0, header.info).is_some();
        if !is_applied {
            return true;
        }
        let Ok(Some(records)) = file.relocations(&header) else { return false };
        records
            .try_for_each(|record| {
                let is_here = symbols.get(record.symbol).is_ok_and(|symbol| {
                    let place = symbols.section_of(record.symbol, &symbol);
                    matches!(place, Ok(Definition::Section(_)))
                });
                let is_distance = find(A::KINDS, record.r#type).is_some_and(is_distance);
                if is_here && is_distance { Ok(()) } else { Err(()) }
            })
            .is_ok()
    })
}

/// Whether it is how far a symbol is from the place, whatever the instruction.
fn is_distance(kind: &Kind) -> bool {
    let value = &kind.value;
    matches!(value.of, Role::Address | Role::Plt)
        && matches!(value.minus, Role::Place)
        && matches!(value.page, Page::Neither)
        && kind.select.is_none()
        && matches!(kind.special, Special::None)
}
