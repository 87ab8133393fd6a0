//! `link`: objects as an image for an address, for any machine; nothing is run or mapped.

use crate::errors::{Failure, Field, Objects, format};
use crate::held::Held;
use crate::options;
use archs::{Architecture, with_arch};
use elf_core::names::{STT_FILE, STT_SECTION};
use elf_core::{Arch, File, Name};
use elf_layout::archives::{MemberIndex, NameNumbers, UndefinedSymbols};
use elf_layout::explain::section_name;
use elf_layout::{ExternalSymbol, HeapStorage, ImageMode, Layout, Options};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use std::collections::HashMap;

/// An image, and what is where: offsets count from its start.
struct Image {
    bytes: Vec<u8>,
    alignment: u64,
    sections: Vec<(usize, String, u64, u64)>,
    symbols: Vec<(usize, String, u64, u64)>,
    segments: Vec<(u64, u64, String)>,
    got: (u64, u64),
}

/// How objects are linked: as `hoist.link` documents it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LinkOptions {
    base: u64,
    /// Alignment of sections in one piece; else segments on pages.
    packed: Option<u64>,
    page_size: u64,
    relax: bool,
    /// What undefined symbols are taken for, if they are.
    undefined: Option<u64>,
    limit: u64,
}

/// The objects of a link: those given, and members of archives that they ask for; and which of their names are one.
fn gather(
    given: &[(String, Held)],
    wanted: &[String],
) -> Result<(Vec<String>, Vec<Held>, NameNumbers), Failure> {
    let (mut labels, mut objects) = (Vec::new(), Vec::new());
    let mut undefined = UndefinedSymbols::new();
    wanted.iter().for_each(|name| undefined.require(Name::from(name.as_str())));
    for (label, bytes) in given {
        let damaged = |error: elf_core::Error| {
            let mut failure = format(&error, error.at);
            failure.prefix(label);
            failure
        };
        if !bytes.as_ref().starts_with(elf_core::archive::MAGIC) {
            undefined.add(&File::parse(bytes.as_ref()).map_err(damaged)?).map_err(damaged)?;
            labels.push(label.clone());
            objects.push(bytes.clone());
            continue;
        }
        let archive = elf_core::archive::Archive::parse(bytes.as_ref()).map_err(damaged)?;
        let (mut names, mut members) = (Vec::new(), Vec::new());
        for member in archive.members() {
            let member = member.map_err(damaged)?;
            names.push(member.name.to_string());
            members.push(member.data.unwrap_or_default());
        }
        let index = MemberIndex::new(members).map_err(|error| damaged(error.error))?;
        for number in undefined.search(&index) {
            let (Some(name), Some(member)) = (names.get(number), index.members().get(number))
            else {
                continue;
            };
            labels.push(format!("{label}({name})"));
            objects.push(Held::from(member.to_vec()));
        }
    }
    Ok((labels, objects, undefined.into_numbers()))
}

fn image(
    (labels, bytes, numbers): (&[String], &[Held], &NameNumbers),
    names: &HashMap<String, u64>,
    given: &LinkOptions,
) -> Result<Image, Failure> {
    let objects = Objects { labels, bytes };
    let mut files = Vec::new();
    for (object, bytes) in bytes.iter().enumerate() {
        let damaged = |error| objects.loading(exec_host::Error::Elf { object, error });
        files.push(File::parse(bytes.as_ref()).map_err(damaged)?);
    }
    let Some(first) = files.first() else { return Err(Failure::new("LinkError", "no objects")) };
    let machine = first.header().machine;
    let Some(architecture) = Architecture::of(machine, first.encoding().is_64()) else {
        let name =
            elf_core::names::machine(machine).map_or_else(|| machine.to_string(), String::from);
        return Err(Failure::new("FormatError", format!("no relocations for machine {name}"))
            .with("value", Field::Number(machine.into())));
    };
    let mode = match given.packed {
        Some(section_alignment) => ImageMode::Packed { section_alignment },
        None => ImageMode::Segments { page_size: given.page_size },
    };
    let options = Options {
        mode,
        base: Some(given.base),
        relax: given.relax,
        executable: true,
        hidden_externals: true,
        ..Options::default()
    };
    let mut externals = |name: Name<'_>| {
        let known = name.to_str().and_then(|name| names.get(name).copied());
        let allowed = given.undefined.filter(|_| !elf_layout::is_linker_defined(name));
        known.or(allowed).map(ExternalSymbol::new)
    };
    let explain = |error: elf_layout::Error| {
        let label = |object: usize, f: &mut core::fmt::Formatter<'_>| {
            f.write_str(labels.get(object).map_or("", String::as_str))
        };
        objects.layout(error, error.explain(&files).with_labels(&label).to_string())
    };
    let mut room = HeapStorage::new();
    with_arch!(architecture, A => {
        let mut layout = room.plan_numbered::<A>(&files, numbers, options, &mut externals).map_err(explain)?;
        layout.set_static_tls_block(layout.executable_tls_block());
        written(&layout, &objects, given).map_err(|error| error.map_or_else(|| too_large(layout.size(), given.limit), explain))
    })
}

pub(crate) fn too_large(size: u64, limit: u64) -> Failure {
    Failure::new(
        "ResourceError",
        format!("an image of {size} bytes, more than the limit of {limit}"),
    )
    .with("size", Field::Number(size))
    .with("limit", Field::Number(limit))
}

/// The image of a layout; the error is nothing if it would be too large.
fn written<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    given: &LinkOptions,
) -> Result<Image, Option<elf_layout::Error>> {
    let size =
        usize::try_from(layout.size()).ok().filter(|_| layout.size() <= given.limit).ok_or(None)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| None)?;
    bytes.resize(size, 0);
    layout.write_zeroed(&mut bytes, given.base).map_err(Some)?;
    let (mut sections, mut symbols) = (Vec::new(), Vec::new());
    for (object, held) in objects.bytes.iter().enumerate() {
        let Ok(file) = File::parse(held.as_ref()) else { continue };
        for index in 0..u32::try_from(file.sections().len()).unwrap_or(0) {
            let (Some(offset), Some(size)) =
                (layout.section(object, index), layout.section_size(object, index))
            else {
                continue;
            };
            sections.push((
                object,
                section_name(&file, index).unwrap_or_default().to_string(),
                offset,
                size,
            ));
        }
        let Ok(Some(table)) = file.symbol_table() else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols().iter()).skip(1) {
            let is_own = layout.definition(object, index) == Some((object, index));
            if symbol.is_undefined() || !is_own || matches!(symbol.r#type(), STT_SECTION | STT_FILE)
            {
                continue;
            }
            let (Some(address), Ok(name)) = (layout.symbol(object, index), table.name_of(&symbol))
            else {
                continue;
            };
            let size = layout.symbol_size(object, index).unwrap_or(symbol.size);
            symbols.push((object, name.to_string(), address.at(given.base), size));
        }
    }
    let segments =
        layout.segments().map(|one| (one.offset, one.size, permissions(one.flags))).collect();
    Ok(Image {
        bytes,
        alignment: layout.alignment(),
        sections,
        symbols,
        segments,
        got: layout.got(),
    })
}

/// `r-x`.
pub(crate) fn permissions(flags: elf_core::SegmentFlags) -> String {
    use elf_core::SegmentFlags as F;
    let one = |flag, letter| if flags.contains(flag) { letter } else { '-' };
    [one(F::READ, 'r'), one(F::WRITE, 'w'), one(F::EXECUTE, 'x')].iter().collect()
}

/// Links objects: the image as a `bytearray`, and a dictionary of what is where.
#[pyfunction]
#[pyo3(signature = (objects, names, wanted, options))]
pub(crate) fn link<'py>(
    py: Python<'py>,
    objects: Vec<(String, Bound<'py, PyAny>)>,
    names: HashMap<String, u64>,
    wanted: Vec<String>,
    options: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyDict>)> {
    let options: LinkOptions = options.extract().map_err(|error| options::refused(py, error))?;
    let given = objects
        .into_iter()
        .map(|(label, bytes)| Ok((label, Held::of(&bytes)?)))
        .collect::<PyResult<Vec<_>>>()?;
    let linked = py.detach(|| {
        let (labels, bytes, numbers) = gather(&given, &wanted)?;
        image((&labels, &bytes, &numbers), &names, &options).map(|image| (labels, image))
    });
    let (labels, image) = linked.map_err(|failure| failure.error(py))?;
    let rows = |rows: Vec<(usize, String, u64, u64)>, base: u64| {
        let one = |(object, name, address, size): (usize, String, u64, u64)| {
            let row = PyDict::new(py);
            row.set_item("name", name)?;
            row.set_item("address", address.wrapping_add(base))?;
            row.set_item("size", size)?;
            row.set_item("object", labels.get(object))?;
            Ok(row)
        };
        rows.into_iter().map(one).collect::<PyResult<Vec<_>>>()
    };
    let what = PyDict::new(py);
    what.set_item("alignment", image.alignment)?;
    what.set_item("sections", rows(image.sections, options.base)?)?;
    what.set_item("symbols", rows(image.symbols, 0)?)?;
    what.set_item("segments", image.segments)?;
    what.set_item("got", image.got)?;
    Ok((PyByteArray::new(py, &image.bytes), what))
}
