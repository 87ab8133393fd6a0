//! Links objects of any machine for an address.

use crate::border::Rows;
use crate::error::{Error, Known, Status, c_string};
use crate::faults::{elf, layout, words};
use crate::image::{
    HOIST_LINK_ALLOW_UNDEFINED, HOIST_LINK_NO_RELAX, Image, ImageSegment, ImageSymbol,
};
use crate::object::Object;
use crate::objects::{Input, List};
use crate::source::Source;
use archs::{Architecture, with_arch};
use elf_core::{Arch, File, Foreign, Name};
use elf_layout::archives::{MemberIndex, NameNumbers, UndefinedSymbols};
use elf_layout::{ErrorKind, ExternalSymbol, HeapStorage, Layout, Options, ThreadLocal};
use elf_layout::{is_linker_defined, undefined_symbols};

/// Bytes that any image may have, and how many times those of its objects.
const FLOOR: u64 = 1 << 30;
const TIMES: u64 = 64;
/// Undefined symbols that are told together.
const MOST: usize = 100;

fn parse(object: &Object) -> Result<File<'_>, Error> {
    let file = File::parse(&object.bytes).map_err(|error| Foreign::explain(&object.bytes, error));
    let file = file.map_err(|error| elf(&error, &object.label))?;
    Foreign::check_lto(&file).map_err(|error| elf(&error, &object.label))?;
    Ok(file)
}

/// The objects, and those members of archives that are asked for, in the order of linkers, and which of their names are one.
fn gather(list: &List) -> Result<(Vec<&Object>, NameNumbers), Error> {
    let (mut objects, mut undefined) = (Vec::new(), UndefinedSymbols::new());
    for input in &list.inputs {
        match input {
            Input::Object(object) => {
                let file = parse(object)?;
                undefined.add(&file).map_err(|error| elf(&error, &object.label))?;
                objects.push(object);
            }
            Input::Archive { members, .. } => {
                let damaged = |error: elf_layout::archives::MemberError| {
                    let label =
                        members.get(error.member).map_or("archive", |member| &*member.label);
                    elf(&error.error, label)
                };
                let index = members.iter().map(|member| &*member.bytes).collect();
                let index = MemberIndex::new(index).map_err(damaged)?;
                let taken = undefined.search(&index);
                objects.extend(taken.into_iter().filter_map(|member| members.get(member)));
            }
        }
    }
    Ok((objects, undefined.into_numbers()))
}

/// Links them for `base`.
pub(crate) fn link(
    list: &List,
    sources: &mut [Source],
    base: u64,
    flags: u32,
    limit: Option<u64>,
) -> Result<Image, Error> {
    let (objects, numbers) = gather(list)?;
    let files = objects.iter().map(|object| parse(object)).collect::<Result<Vec<_>, _>>()?;
    let first = files.first().zip(objects.first());
    let (first, object) = first.ok_or_else(|| Error::argument("there are no objects to link"))?;
    let machine = first.header().machine;
    let architecture = Architecture::of(machine, first.encoding().is_64()).ok_or_else(|| {
        let words =
            format!("{}: nothing is known of relocations of machine {machine}", object.label);
        Error::new(Status::Unsupported, words).file(&*object.label)
    })?;
    let labelled: Vec<Object> = objects.into_iter().cloned().collect();
    let relaxes = flags & HOIST_LINK_NO_RELAX == 0;
    let options = Options {
        base: Some(base),
        relax: relaxes,
        thread_local: if relaxes { ThreadLocal::LocalExec } else { ThreadLocal::AsCompiled },
        executable: true,
        hidden_externals: true,
        ..Options::default()
    };
    let input = files.iter().map(|file| file.bytes().len() as u64).sum::<u64>();
    let limit = limit.unwrap_or(FLOOR.max(input.saturating_mul(TIMES)));
    let allows = flags & HOIST_LINK_ALLOW_UNDEFINED != 0;
    let mut answer = |name: Name<'_>| {
        let found = sources.iter_mut().find_map(|source| source.elsewhere(name));
        found.or_else(|| (allows && !is_linker_defined(name)).then(|| ExternalSymbol::new(0)))
    };
    with_arch!(architecture, A => write::<A>(&files, (&labelled, &numbers), options, (base, limit), &mut answer))
}

fn write<A: Arch>(
    files: &[File<'_>],
    (objects, numbers): (&[Object], &NameNumbers),
    options: Options,
    (base, limit): (u64, u64),
    answer: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
) -> Result<Image, Error> {
    let mut storage = HeapStorage::new();
    let planned = storage.plan_numbered::<A>(files, numbers, options, answer);
    let mut planned = planned.map_err(|error| explain::<A>(error, files, objects, answer))?;
    planned.set_static_tls_block(planned.executable_tls_block());
    let size = planned.size();
    if size > limit {
        let words =
            format_args!("the image would have {size} bytes, more than the limit of {limit}");
        let limits = Some((0, limit.into()));
        let numbers = Known { value: Some(size), limits, ..Known::default() };
        return Err(Error::new(Status::TooLarge, words).with(numbers));
    }
    let mut bytes = zeros(size)?;
    planned.write_zeroed(&mut bytes, base).map_err(|error| layout(error, objects))?;
    Ok(image(&planned, bytes, base))
}

/// Zeros that take no memory before they are written to.
fn zeros(size: u64) -> Result<Vec<u8>, Error> {
    let none =
        || Error::new(Status::Memory, format_args!("no memory for an image of {size} bytes"));
    let size = usize::try_from(size).map_err(|_| none())?;
    // `vec!` would abort
    Vec::<u8>::new().try_reserve_exact(size).map_err(|_| none())?;
    Ok(vec![0; size])
}

/// What is wrong; of an undefined symbol, all that are undefined.
fn explain<A: Arch>(
    error: elf_layout::Error,
    files: &[File<'_>],
    objects: &[Object],
    answer: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
) -> Error {
    let told = layout(error, objects);
    if !matches!(error.kind, ErrorKind::Undefined { .. }) {
        return told;
    }
    let is_missing = &mut |name: Name<'_>| answer(name).is_none();
    let (all, more) = undefined_symbols::<A>(files, MOST, is_missing);
    let mut texts: Vec<_> = all.iter().map(|error| words(*error, objects)).collect();
    if more > 0 {
        texts.push(format!("and {more} more symbols are undefined"));
    }
    if texts.is_empty() { told } else { told.in_words(&texts.join("; ")) }
}

fn image<A: Arch>(layout: &Layout<'_, '_, A>, bytes: Vec<u8>, base: u64) -> Image {
    let mut names = Vec::new();
    let mut symbols = Vec::new();
    for (object, file) in layout.files().iter().enumerate() {
        let Ok(Some(table)) = file.symbol_table() else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols().iter()) {
            if symbol.is_undefined() {
                continue;
            }
            let Some(address) = layout.symbol(object, index) else { continue };
            let Some(name) = table.name_of(&symbol).ok().filter(|name| !name.is_empty()) else {
                continue;
            };
            let name = c_string(name.as_bytes());
            let row = ImageSymbol {
                name: name.as_ptr(),
                address: address.at(base),
                size: layout.symbol_size(object, index).unwrap_or(symbol.size),
                object,
                kind: symbol.r#type(),
                binding: symbol.binding(),
            };
            symbols.push(row);
            names.push(name);
        }
    }
    let segments = layout.segments().map(|segment| ImageSegment {
        address: base.wrapping_add(segment.offset),
        offset: segment.offset,
        size: segment.size,
        flags: segment.flags.bits(),
    });
    Image { bytes, base, symbols: Rows(symbols), segments: segments.collect(), names }
}
