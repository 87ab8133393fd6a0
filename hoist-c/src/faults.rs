//! Errors of the layers below, as C sees them: with the names that they speak of.

use crate::error::{Error, Known, Status};
use crate::object::Object;
use core::fmt;
use elf_core::{ApplyError, ApplyErrorKind, File};
use elf_layout::explain::{section_name, symbol_name};
use exec_host::library::LibraryError;
use reloc_cuda::link::{LinkErrorKind, LinkErrors};
use std::path::Path;

/// A file could not be read or written.
pub(crate) fn io(cause: &std::io::Error, path: &Path) -> Error {
    let path = path.to_string_lossy();
    let numbers = Known { os_error: cause.raw_os_error(), ..Known::default() };
    Error::new(Status::File, format_args!("{path}: {cause}")).file(&*path).with(numbers)
}

/// A file is damaged.
pub(crate) fn elf(error: &elf_core::Error, label: &str) -> Error {
    let numbers = Known { offset: Some(error.at), ..Known::default() };
    Error::new(of_elf(error.kind), format_args!("{label}: {error}")).file(label).with(numbers)
}

pub(crate) const fn of_elf(kind: elf_core::ErrorKind) -> Status {
    match kind {
        elf_core::ErrorKind::FeatureOff(_) | elf_core::ErrorKind::Foreign(_) => Status::Unsupported,
        _ => Status::BadFile,
    }
}

/// A cubin is damaged, or none.
pub(crate) fn cubin(error: &nvinfo::Error, label: &str) -> Error {
    let numbers = Known { offset: Some(error.at), ..Known::default() };
    Error::new(Status::BadFile, format_args!("{label}: {error}")).file(label).with(numbers)
}

/// A container is damaged, or its payload cannot be unpacked.
pub(crate) fn container(error: &fatbin::Error, label: &str) -> Error {
    let (status, numbers) = of_container(error);
    Error::new(status, format_args!("{label}: {error}")).file(label).with(numbers)
}

/// What is known of an error of a container.
pub(crate) fn of_container(error: &fatbin::Error) -> (Status, Known) {
    use fatbin::ErrorKind as Kind;
    let mut numbers = Known { offset: Some(error.at), ..Known::default() };
    let status = match error.kind {
        Kind::TooLarge { size, limit } | Kind::Bomb { claimed: size, most: limit, .. } => {
            numbers.value = Some(size);
            numbers.limits = Some((0, limit.into()));
            Status::TooLarge
        }
        Kind::Obfuscated { .. } | Kind::NoCodec(_) | Kind::ThinArchive => Status::Unsupported,
        Kind::NoMemory(_) => Status::Memory,
        _ => Status::BadFile,
    };
    (status, numbers)
}

/// A value that did not fit, and its limits.
fn fit(kind: ApplyErrorKind) -> (Option<u64>, Option<(i128, i128)>) {
    match kind {
        ApplyErrorKind::Overflow { value, check } => (Some(value), Some(check.limits())),
        ApplyErrorKind::Unencodable { value } | ApplyErrorKind::Misaligned { value, .. } => {
            (Some(value), None)
        }
        ApplyErrorKind::OutsideSection { size } => {
            (None, Some((0, i128::from(size).saturating_sub(1))))
        }
        _ => (None, None),
    }
}

/// What is known of a relocation that could not be applied.
fn applied(error: &ApplyError) -> Known {
    let (value, limits) = fit(error.kind);
    Known {
        offset: Some(error.offset),
        relocation: Some(error.r#type),
        symbol: Some(error.symbol),
        value,
        limits,
        ..Known::default()
    }
}

/// Objects could not be laid out or relocated.
pub(crate) fn layout(error: elf_layout::Error, objects: &[Object]) -> Error {
    layout_as(error, objects, &words(error, objects))
}

/// An error in words, in which objects have their labels.
pub(crate) fn words(error: elf_layout::Error, objects: &[Object]) -> String {
    let files = objects.iter().map(|object| File::parse(&object.bytes));
    let Ok(files) = files.collect::<Result<Vec<_>, _>>() else { return error.to_string() };
    let label = |object: usize, f: &mut fmt::Formatter<'_>| match objects.get(object) {
        Some(object) => f.write_str(&object.label),
        None => write!(f, "object {object}"),
    };
    error.explain(&files).with_labels(&label).to_string()
}

fn layout_as(error: elf_layout::Error, objects: &[Object], message: &str) -> Error {
    use elf_layout::ErrorKind as Kind;
    let at = |offset, r#type, symbol| Known {
        offset: Some(offset),
        relocation: Some(r#type),
        symbol: Some(symbol),
        ..Known::default()
    };
    let mut relocation = None;
    let (status, mut numbers) = match error.kind {
        Kind::Apply(apply) => {
            relocation = apply.name;
            (Status::Relocation, applied(&apply))
        }
        Kind::Undefined { offset, r#type, symbol, name } => {
            relocation = Some(name);
            (Status::UndefinedSymbol, at(offset, r#type, symbol))
        }
        Kind::Indirect { offset, r#type, symbol, name }
        | Kind::NotLoaded { offset, r#type, symbol, name }
        | Kind::Discarded { offset, r#type, symbol, name }
        | Kind::NotThreadLocal { offset, r#type, symbol, name }
        | Kind::ThreadLocal { offset, r#type, symbol, name } => {
            relocation = Some(name);
            (Status::Relocation, at(offset, r#type, symbol))
        }
        Kind::Duplicate { symbol, .. } | Kind::Resolver { symbol } => {
            (Status::Layout, Known { symbol: Some(symbol), ..Known::default() })
        }
        Kind::Elf(elf) => (of_elf(elf.kind), Known { offset: Some(elf.at), ..Known::default() }),
        Kind::FileType(_) | Kind::Machine { .. } | Kind::Class => {
            (Status::Unsupported, Known::default())
        }
        Kind::TooLarge => (Status::TooLarge, Known::default()),
        _ => (Status::Layout, Known::default()),
    };
    let object = objects.get(error.object).filter(|_| !error.kind.is_of_image());
    let Some(object) = object else { return Error::new(status, message).with(numbers) };
    numbers.object = Some(error.object);
    numbers.section = Some(error.section).filter(|&section| section != 0);
    let mut told = Error::new(status, message).file(&*object.label).with(numbers);
    if let Some(name) = relocation {
        told = told.relocation(name);
    }
    let Ok(file) = File::parse(&object.bytes) else { return told };
    if let Some(name) = numbers.section.and_then(|section| section_name(&file, section)) {
        told = told.section(name.as_bytes());
    }
    let symbol = || {
        let (index, table) = (numbers.symbol?, file.symbol_table().ok()??);
        symbol_name(&file, &table, index, &table.get(index).ok()?).ok()
    };
    match symbol() {
        Some(name) => told.symbol(name.as_bytes()),
        None => told,
    }
}

/// The words of an error, with the label of object `number` where they begin with its number.
fn relabelled(message: &str, number: usize, objects: &[Object]) -> String {
    let rest = message.strip_prefix(&format!("object {number}: "));
    match rest.zip(objects.get(number)) {
        Some((rest, object)) => format!("{}: {rest}", object.label),
        None => message.to_owned(),
    }
}

/// Objects could not be loaded. `objects` are those that were given.
pub(crate) fn host(error: &exec_host::Error, objects: &[Object]) -> Error {
    use exec_host::Error as Host;
    let none = Known::default();
    let of = |status, numbers| {
        let number = numbers_object(&numbers);
        let told =
            Error::new(status, relabelled(&error.to_string(), number, objects)).with(numbers);
        match numbers.object.and_then(|number| objects.get(number)) {
            Some(object) => told.file(&*object.label),
            None => told,
        }
    };
    let at = |object: usize, section: u32| Known {
        object: Some(object),
        section: Some(section),
        ..none
    };
    match error {
        Host::Elf { object, error } => {
            of(of_elf(error.kind), Known { object: Some(*object), offset: Some(error.at), ..none })
        }
        Host::Layout(error) | Host::Object { error, .. } => layout(*error, objects),
        Host::Undefined(undefined) => {
            let mut texts: Vec<_> =
                undefined.all.iter().map(|error| words(*error, objects)).collect();
            if undefined.more > 0 {
                texts.push(format!("and {} more symbols are undefined", undefined.more));
            }
            let told = layout_as(undefined.error, objects, &texts.join("; "));
            told.symbol(undefined.name.as_str())
        }
        Host::ByteOrder { object } => {
            of(Status::Unsupported, Known { object: Some(*object), ..none })
        }
        Host::Map { cause, .. } => {
            of(Status::Memory, Known { os_error: cause.raw_os_error(), ..none })
        }
        Host::OutOfMemory { size } => of(Status::Memory, Known { value: Some(*size), ..none }),
        Host::NoLowMemory { size, limit } => {
            let limits = Some((0, i128::from(*limit)));
            of(Status::Memory, Known { value: Some(*size), limits, ..none })
        }
        Host::TooLarge { size, limit, object, section, .. } => {
            let limits = Some((0, i128::from(*limit)));
            of(Status::TooLarge, Known { value: Some(*size), limits, ..at(*object, *section) })
        }
        Host::FixedAddress { object, section, address, .. } => {
            of(Status::Layout, Known { value: Some(*address), ..at(*object, *section) })
        }
        Host::Fragment { object, section, .. } | Host::ExecutableStack { object, section, .. } => {
            of(Status::Unsupported, at(*object, *section))
        }
        Host::Initializer { object, section, address, .. } => {
            of(Status::BadFile, Known { value: Some(*address), ..at(*object, *section) })
        }
        Host::Unwinding { object, section, .. } => of(Status::BadFile, at(*object, *section)),
        Host::WriteExecute => of(Status::Layout, none),
        Host::ThreadLocal { .. } | Host::NearThreadLocal { .. } => of(Status::ThreadLocal, none),
        Host::NoSymbol(name) => of(Status::NotFound, none).symbol(name.as_str()),
        Host::NotFunction(name) => of(Status::NotFunction, none).symbol(name.as_str()),
        Host::NotInitialized => Error::new(
            Status::NotInitialized,
            format_args!("{error}: hoist_module_initialize runs them"),
        ),
        Host::NotReplaceable(name) => of(Status::NotReplaceable, none).symbol(name.as_str()),
        Host::SizeDiffers { name, old, new } => {
            let limits = Some((i128::from(*old), i128::from(*old)));
            of(Status::Layout, Known { value: Some(*new), limits, ..none }).symbol(name.as_str())
        }
        Host::Library(error) => {
            // the words of the dynamic loader
            let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
            Error::new(Status::Library, format_args!("{error}{cause}"))
        }
        Host::Archive(error) | Host::Member { error, .. } => {
            of(of_elf(error.kind), Known { offset: Some(error.at), ..none })
        }
        Host::ThinArchive => of(Status::Unsupported, none),
        Host::File { path, cause } => io(cause, path),
        Host::Named(exec_core::FileError::System { path, cause }) => io(cause, path),
        Host::Named(_) => of(Status::File, none),
        Host::Linked(error) => library(error),
        Host::Observer(cause) => {
            of(Status::Other, Known { os_error: cause.raw_os_error(), ..none })
        }
        _ => of(Status::Other, none),
    }
}

/// The number of the object, or one that no object has.
fn numbers_object(numbers: &Known) -> usize {
    numbers.object.unwrap_or(usize::MAX)
}

/// A shared library could not be loaded.
fn library(error: &LibraryError) -> Error {
    use elf_image::ErrorKind as Kind;
    let of = |status| Error::new(status, error);
    match error {
        LibraryError::Image(image) => match image.kind {
            Kind::Elf(elf) => {
                of(of_elf(elf.kind)).with(Known { offset: Some(elf.at), ..Known::default() })
            }
            Kind::Type(_) | Kind::Machine { .. } | Kind::Class { .. } => of(Status::Unsupported),
            _ => of(Status::BadFile),
        },
        LibraryError::Relocation { error, name } => {
            let told = of(Status::Relocation).symbol(name.as_str());
            let Kind::Relocation(apply) = &error.kind else { return told };
            let told = told.with(applied(apply));
            match apply.name {
                Some(relocation) => told.relocation(relocation),
                None => told,
            }
        }
        LibraryError::Undefined { name, .. } => of(Status::UndefinedSymbol).symbol(name.as_str()),
        LibraryError::Needed { name, .. } => of(Status::Library).file(name.as_str()),
        LibraryError::Refused { .. } => of(Status::Unsupported),
        LibraryError::TooLarge { size, limit } => of(Status::TooLarge).with(Known {
            value: Some(*size),
            limits: Some((0, i128::from(*limit))),
            ..Known::default()
        }),
        LibraryError::NoSymbol(name) => of(Status::NotFound).symbol(name.as_str()),
        LibraryError::NotFunction(name) => of(Status::NotFunction).symbol(name.as_str()),
        _ => of(Status::BadFile),
    }
}

/// Cubins could not be linked: fields are those of the first error, words those of all.
pub(crate) fn links(errors: &LinkErrors, objects: &[Object]) -> Error {
    let name = |object: usize| match objects.get(object) {
        Some(object) => object.label.to_string(),
        None => format!("object {object}"),
    };
    let texts = errors.0.iter().map(|error| error.with_names(name).to_string());
    let message = texts.collect::<Vec<_>>().join("; ");
    let Some(first) = errors.0.first() else { return Error::new(Status::Layout, message) };
    let object = Known { object: Some(first.object), ..Known::default() };
    let told = |status, numbers| {
        let told = Error::new(status, &message).with(numbers);
        match objects.get(first.object) {
            Some(object) => told.file(&*object.label),
            None => told,
        }
    };
    let too_large = |size: u64, limit: u64| {
        told(
            Status::TooLarge,
            Known { value: Some(size), limits: Some((0, limit.into())), ..object },
        )
    };
    match &first.kind {
        LinkErrorKind::Nothing => Error::argument("no objects"),
        LinkErrorKind::Cubin(error) => {
            told(Status::BadFile, Known { offset: Some(error.at), ..object })
        }
        LinkErrorKind::NotRelocatable
        | LinkErrorKind::Form
        | LinkErrorKind::Toolkit { .. }
        | LinkErrorKind::Architecture { .. }
        | LinkErrorKind::Section(_) => told(Status::Unsupported, object),
        LinkErrorKind::Undefined(name) => {
            told(Status::UndefinedSymbol, object).symbol(name.as_str())
        }
        LinkErrorKind::Apply { section, error } => {
            let numbers = Known { object: object.object, ..applied(error) };
            let told = told(Status::Relocation, numbers).section(section.as_str());
            match error.name {
                Some(name) => told.relocation(name),
                None => told,
            }
        }
        LinkErrorKind::Relocation { section, offset, r#type } => {
            let numbers = Known { offset: Some(*offset), relocation: Some(*r#type), ..object };
            told(Status::Relocation, numbers).section(section.as_str())
        }
        LinkErrorKind::SharedTooLarge { kernel, size, limit } => {
            too_large(*size, *limit).symbol(kernel.as_str())
        }
        LinkErrorKind::ConstantsTooLarge { size, limit } => too_large(*size, *limit),
        kind => {
            let told = told(Status::Layout, object);
            match kind.conflict() {
                Some((symbol, _)) => told.symbol(symbol),
                None => told,
            }
        }
    }
}
