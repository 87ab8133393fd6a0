//! Errors as exceptions: their classes are in `hoist/errors.py`, which documents their attributes.

use crate::held::Held;
use elf_core::{ApplyError, ApplyErrorKind, File};
use elf_layout::ErrorKind;
use elf_layout::explain::{section_name, symbol_name};
use exec_host::library::LibraryError;
use pyo3::prelude::*;

/// An attribute of an exception.
pub(crate) enum Field {
    Number(u64),
    Signed(i64),
    Text(String),
    Texts(Vec<String>),
}

/// What went wrong, to become an exception where the interpreter is held.
pub(crate) struct Failure {
    class: &'static str,
    message: String,
    fields: Vec<(&'static str, Field)>,
}

impl Failure {
    pub(crate) fn new(class: &'static str, message: impl ToString) -> Self {
        Self { class, message: message.to_string(), fields: Vec::new() }
    }

    /// The same with an attribute.
    pub(crate) fn with(mut self, name: &'static str, field: Field) -> Self {
        self.fields.push((name, field));
        self
    }

    /// The exception.
    pub(crate) fn error(self, py: Python<'_>) -> PyErr {
        self.make(py).unwrap_or_else(|error| error)
    }

    fn make(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import("hoist.errors")?.getattr(self.class)?;
        let value = class.call1((self.message,))?;
        for (name, field) in self.fields {
            match field {
                Field::Number(number) => value.setattr(name, number)?,
                Field::Signed(number) => value.setattr(name, number)?,
                Field::Text(text) => value.setattr(name, text)?,
                Field::Texts(texts) => value.setattr(name, texts)?,
            }
        }
        Ok(PyErr::from_value(value))
    }
}

/// What is gone is used.
pub(crate) fn unloaded(py: Python<'_>, what: &str) -> PyErr {
    Failure::new("UnloadedError", format!("{what} was unloaded")).error(py)
}

/// The objects that an error may speak of, and what to call them.
pub(crate) struct Objects<'a> {
    pub(crate) labels: &'a [String],
    pub(crate) bytes: &'a [Held],
}

impl Objects<'_> {
    fn label(&self, object: usize) -> Option<&str> {
        self.labels.get(object).map(String::as_str)
    }

    /// A text in which objects have numbers, with their names.
    fn named(&self, text: &str) -> String {
        let one = |text: &str| {
            let (number, rest) = text.strip_prefix("object ")?.split_once(':')?;
            Some(format!("{}:{rest}", self.label(number.parse().ok()?)?))
        };
        let all: Vec<String> =
            text.split("; ").map(|part| one(part).unwrap_or_else(|| part.to_owned())).collect();
        // an object that was there before
        let mut text = all.join("; ");
        for (number, label) in self.labels.iter().enumerate() {
            text = text
                .replace(&format!("in object {number} already"), &format!("in {label} already"));
            text = text.replace(&format!("that of object {number}:"), &format!("that of {label}:"));
        }
        text
    }

    /// What an error of the executor says.
    pub(crate) fn loading(&self, error: exec_host::Error) -> Failure {
        use exec_host::Error as E;
        let message = self.named(&chain(&error));
        match error {
            E::Layout(error) | E::Object { error, .. } => self.layout(error, message),
            E::NearThreadLocal { size, error, .. } => {
                self.layout(error, message).of("ResourceError").with("size", Field::Number(size))
            }
            E::Undefined(undefined) => {
                let mut names: Vec<String> =
                    undefined.all.iter().filter_map(|error| self.symbol_of(error)).collect();
                names.dedup();
                let symbol = Field::Text(undefined.name.clone());
                self.layout(undefined.error, message)
                    .of("UndefinedSymbolError")
                    .with("symbol", symbol)
                    .with("symbols", Field::Texts(names))
            }
            E::Elf { object, error } => self
                .at(object, None, Failure::new("FormatError", message))
                .with("offset", Field::Number(error.at)),
            E::ByteOrder { object } => self.at(object, None, Failure::new("FormatError", message)),
            E::Archive(error) => {
                Failure::new("FormatError", message).with("offset", Field::Number(error.at))
            }
            E::Member { name, error } => Failure::new("FormatError", message)
                .with("member", Field::Text(name))
                .with("offset", Field::Number(error.at)),
            E::ThinArchive => Failure::new("FormatError", message),
            E::TooLarge { size, limit, object, section, .. } => self
                .at(object, Some(section), Failure::new("ResourceError", message))
                .with("size", Field::Number(size))
                .with("limit", Field::Number(limit)),
            E::Map { size, .. } | E::OutOfMemory { size } | E::ThreadLocal { size, .. } => {
                Failure::new("ResourceError", message).with("size", Field::Number(size))
            }
            E::NoLowMemory { size, limit } => Failure::new("ResourceError", message)
                .with("size", Field::Number(size))
                .with("limit", Field::Number(limit)),
            E::FixedAddress { object, section, address, .. }
            | E::Initializer { object, section, address, .. } => self
                .at(object, Some(section), Failure::new("LinkError", message))
                .with("value", Field::Number(address)),
            E::Fragment { object, section, .. }
            | E::ExecutableStack { object, section, .. }
            | E::Unwinding { object, section, .. } => {
                self.at(object, Some(section), Failure::new("LinkError", message))
            }
            E::NoSymbol(name) => no_symbol(&name),
            E::NotFunction(name) => {
                Failure::new("NoSymbolError", format!("{name} is not a function"))
                    .with("symbol", Field::Text(name))
            }
            E::NotInitialized => {
                Failure::new("LinkError", format!("{message}: Module.initialize runs them"))
            }
            E::NotReplaceable(name) => Failure::new(
                "ReplaceError",
                format!("{message}: load its module with replaceable=True"),
            )
            .with("symbol", Field::Text(name)),
            E::SizeDiffers { name, old, new } => Failure::new("ReplaceError", message)
                .with("symbol", Field::Text(name))
                .with("value", Field::Number(new))
                .with("limit", Field::Number(old)),
            E::Linked(error) => linked(&error, message),
            E::Library(_) | E::File { .. } | E::Named(_) => Failure::new("LibraryError", message),
            _ => Failure::new("LinkError", message),
        }
    }

    /// What an error of a layout says, whose text is known.
    pub(crate) fn layout(&self, error: elf_layout::Error, message: String) -> Failure {
        let class = match error.kind {
            ErrorKind::Apply(_) => "RelocationError",
            ErrorKind::Undefined { .. } => "UndefinedSymbolError",
            ErrorKind::Elf(_)
            | ErrorKind::FileType(_)
            | ErrorKind::Class
            | ErrorKind::Machine { .. } => "FormatError",
            _ => "LinkError",
        };
        let section = (error.section != 0).then_some(error.section);
        let mut failure = self.at(error.object, section, Failure::new(class, message));
        if let Some(symbol) = self.symbol_of(&error) {
            failure = failure.with("symbol", Field::Text(symbol));
        }
        match error.kind {
            ErrorKind::Apply(error) => relocation(failure, &error),
            ErrorKind::Elf(error) => failure.with("offset", Field::Number(error.at)),
            ErrorKind::Undefined { offset, name, .. }
            | ErrorKind::NotLoaded { offset, name, .. }
            | ErrorKind::Discarded { offset, name, .. }
            | ErrorKind::NotThreadLocal { offset, name, .. }
            | ErrorKind::ThreadLocal { offset, name, .. }
            | ErrorKind::Indirect { offset, name, .. } => failure
                .with("offset", Field::Number(offset))
                .with("relocation", Field::Text(name.to_owned())),
            _ => failure,
        }
    }

    /// An error at an object and a section.
    fn at(&self, object: usize, section: Option<u32>, mut failure: Failure) -> Failure {
        if let Some(label) = self.label(object) {
            failure = failure.with("file", Field::Text(label.to_owned()));
        }
        let Some(section) = section else { return failure };
        let name = self.bytes.get(object).and_then(|bytes| {
            let file = File::parse(bytes.as_ref()).ok()?;
            Some(section_name(&file, section)?.to_string())
        });
        match name {
            Some(name) => failure.with("section", Field::Text(name)),
            None => failure,
        }
    }

    /// The name of the symbol that an error of a layout speaks of.
    fn symbol_of(&self, error: &elf_layout::Error) -> Option<String> {
        let index = match error.kind {
            ErrorKind::Apply(error) => error.symbol,
            ErrorKind::Undefined { symbol, .. }
            | ErrorKind::NotLoaded { symbol, .. }
            | ErrorKind::Discarded { symbol, .. }
            | ErrorKind::NotThreadLocal { symbol, .. }
            | ErrorKind::ThreadLocal { symbol, .. }
            | ErrorKind::Indirect { symbol, .. }
            | ErrorKind::Resolver { symbol }
            | ErrorKind::Duplicate { symbol, .. } => symbol,
            _ => return None,
        };
        let file = File::parse(self.bytes.get(error.object)?.as_ref()).ok()?;
        let table = file.symbol_table().ok()??;
        Some(symbol_name(&file, &table, index, &table.get(index).ok()?).ok()?.to_string())
    }
}

impl Failure {
    /// The same of another class.
    fn of(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }
}

/// What a relocation met.
fn relocation(failure: Failure, error: &ApplyError) -> Failure {
    let name = error.name.map_or_else(|| error.r#type.to_string(), str::to_owned);
    let failure =
        failure.with("offset", Field::Number(error.offset)).with("relocation", Field::Text(name));
    match error.kind {
        ApplyErrorKind::Overflow { value, check } => {
            let (least, most) = check.limits();
            failure
                .with("value", Field::Signed(value.cast_signed()))
                .with("least", Field::Signed(least as i64))
                .with("limit", Field::Number(most as u64))
        }
        ApplyErrorKind::Unencodable { value } | ApplyErrorKind::Misaligned { value, .. } => {
            failure.with("value", Field::Signed(value.cast_signed()))
        }
        ApplyErrorKind::OutsideSection { size } => failure.with("limit", Field::Number(size)),
        _ => failure,
    }
}

/// What an error of a library says, with what is behind it; other errors say that themselves.
fn chain(error: &exec_host::Error) -> String {
    let mut text = error.to_string();
    let exec_host::Error::Library(cause) = error else { return text };
    let mut source = cause.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// There is no such symbol.
pub(crate) fn no_symbol(name: &str) -> Failure {
    Failure::new("NoSymbolError", format!("no symbol {name}"))
        .with("symbol", Field::Text(name.to_owned()))
}

/// What is wrong with a library in memory.
fn linked(error: &LibraryError, message: String) -> Failure {
    match error {
        LibraryError::NoSymbol(name) => no_symbol(name),
        LibraryError::NotFunction(name) => {
            Failure::new("NoSymbolError", format!("{name} is not a function"))
                .with("symbol", Field::Text(name.clone()))
        }
        LibraryError::Undefined { name, .. } => {
            Failure::new("UndefinedSymbolError", message).with("symbol", Field::Text(name.clone()))
        }
        LibraryError::Relocation { error, name } => {
            let told =
                Failure::new("RelocationError", message).with("symbol", Field::Text(name.clone()));
            match &error.kind {
                elf_image::ErrorKind::Relocation(error) => relocation(told, error),
                _ => told,
            }
        }
        LibraryError::TooLarge { size, limit } => Failure::new("ResourceError", message)
            .with("size", Field::Number(*size))
            .with("limit", Field::Number(*limit)),
        LibraryError::Image(_) => Failure::new("FormatError", message),
        _ => Failure::new("LibraryError", message),
    }
}

/// What a format says is wrong at an offset.
pub(crate) fn format(error: &impl core::fmt::Display, offset: u64) -> Failure {
    Failure::new("FormatError", error).with("offset", Field::Number(offset))
}

impl Failure {
    /// Puts the name of a file before the text.
    pub(crate) fn prefix(&mut self, label: &str) {
        self.message.insert_str(0, &format!("{label}: "));
        self.fields.push(("file", Field::Text(label.to_owned())));
    }
}
