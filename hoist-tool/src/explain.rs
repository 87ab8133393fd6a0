//! Errors of a layout in words: file, section, offset, type, symbol, value and limit by name, in one line.

use core::fmt::{self, Display};

use elf_core::names::{self, STT_SECTION};
use elf_core::{ApplyError, ApplyErrorKind, Definition, File, Name, Symbol, SymbolTable};
use elf_layout::{Error, ErrorKind};

use crate::objects::Objects;
use crate::printable::Printable;

/// Several errors, each with a line of its own: what is wrong in several places.
#[derive(Debug)]
pub struct Lines(pub Vec<String>);

impl Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl core::error::Error for Lines {}

/// An error of a layout together with the objects that it speaks of.
#[derive(Clone, Copy)]
pub struct Explained<'e, 'a> {
    error: Error,
    objects: &'e Objects<'a>,
}

impl<'a> Objects<'a> {
    /// Says what is wrong, by name.
    #[must_use]
    pub fn explain(&self, error: Error) -> anyhow::Error {
        anyhow::Error::msg(Explained { error, objects: self }.to_string())
    }
}

impl Display for Explained<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { object, section, kind } = self.error;
        let objects = self.objects;
        let Some(file) = objects.files().get(object) else { return kind.fmt(f) };
        if matches!(
            kind,
            ErrorKind::Base { .. } | ErrorKind::Image { .. } | ErrorKind::Storage { .. }
        ) {
            // of the image as a whole
            return kind.fmt(f);
        }
        let symbol = |index| Quoted(objects.symbol_name(object, index));
        write!(f, "{}: ", objects.label(object))?;
        if section != 0 {
            match section_name(file, section) {
                Some(name) => write!(f, "section {}: ", Printable::from(name))?,
                None => write!(f, "section {section}: ")?,
            }
        }
        match kind {
            ErrorKind::Apply(error) => apply(error, symbol(error.symbol), f),
            ErrorKind::Undefined { symbol: index, offset, name, .. } => {
                write!(f, "{name} at offset {offset:#x}: symbol {} is undefined", symbol(index))
            }
            ErrorKind::NotLoaded { symbol: index, offset, name, .. } => {
                let symbol = symbol(index);
                write!(
                    f,
                    "{name} at offset {offset:#x}: symbol {symbol} is in a section that is not loaded"
                )
            }
            ErrorKind::Dropped { symbol: index, offset, name, .. } => {
                let symbol = symbol(index);
                write!(
                    f,
                    "{name} at offset {offset:#x}: symbol {symbol} is in a section group that is not taken"
                )
            }
            ErrorKind::NotThreadLocal { symbol: index, offset, name, .. } => {
                let symbol = symbol(index);
                write!(f, "{name} at offset {offset:#x}: symbol {symbol} is not thread-local")
            }
            ErrorKind::ThreadLocal { symbol: index, offset, name, .. } => {
                let symbol = symbol(index);
                write!(f, "{name} at offset {offset:#x}: symbol {symbol} is thread-local")
            }
            ErrorKind::Resolver { symbol: index } => {
                let symbol = symbol(index);
                write!(
                    f,
                    "the resolver of the indirect function {symbol} is not code of the objects"
                )
            }
            ErrorKind::Indirect { symbol: index, offset, name, .. } => {
                write!(
                    f,
                    "{name} at offset {offset:#x}: symbol {} is an indirect function",
                    symbol(index)
                )
            }
            ErrorKind::Duplicate { symbol: index, first } => {
                write!(f, "symbol {} is defined in {} already", symbol(index), objects.label(first))
            }
            ErrorKind::Machine { found, expected } => {
                let name = |number| {
                    names::machine(number).map_or_else(|| format!("machine {number}"), String::from)
                };
                write!(f, "is for {}, not for {} as the first object", name(found), name(expected))
            }
            ErrorKind::Flags { what, found, first, expected } => {
                write!(
                    f,
                    "{what} is not that of {}: e_flags {found:#x}, there {expected:#x}",
                    objects.label(first)
                )
            }
            ErrorKind::FileType(found) => match names::file_type(found) {
                Some(name) => write!(f, "is no relocatable object but {name}"),
                None => write!(f, "is no relocatable object but of file type {found}"),
            },
            kind => kind.fmt(f),
        }
    }
}

/// Why a relocation against `symbol` was not applied.
fn apply(error: ApplyError, symbol: Quoted<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (error.name, error.kind) {
        // what a GOT entry would hold
        (None, ApplyErrorKind::Unresolved(role)) => {
            return write!(f, "no {role} for symbol {symbol}");
        }
        (Some(name), _) => write!(f, "{name}")?,
        (None, _) => write!(f, "relocation type {}", error.r#type)?,
    }
    write!(f, " at offset {:#x} against {symbol}: ", error.offset)?;
    match error.kind {
        ApplyErrorKind::UnknownType => write!(f, "unknown type"),
        ApplyErrorKind::Dynamic => write!(f, "only a dynamic loader resolves this type"),
        ApplyErrorKind::OutsideSection { size } => {
            write!(f, "outside the section of {size:#x} bytes")
        }
        ApplyErrorKind::Unresolved(role) => write!(f, "no {role}"),
        // value and limits, without what is said already
        _ => f.write_str(error.to_string().split_once(": ").map_or("", |(_, rest)| rest)),
    }
}

/// The name of section `index`, if it has one that can be read.
#[must_use]
pub fn section_name<'a>(file: &File<'a>, index: u32) -> Option<Name<'a>> {
    file.section(index).and_then(|section| file.section_name(&section)).ok()
}

/// The name of symbol `index` of `table`: that of its section, if it stands for one and has no name itself.
///
/// # Errors
/// If a name or a section is not where the file says.
pub fn name_in<'a>(
    file: &File<'a>,
    table: &SymbolTable<'a>,
    index: u32,
    symbol: &Symbol,
) -> Result<Name<'a>, elf_core::Error> {
    let name = table.name_of(symbol)?;
    if symbol.r#type() != STT_SECTION || !name.is_empty() {
        return Ok(name);
    }
    match table.section_of(index, symbol)? {
        Definition::Section(section) => file.section_name(&file.section(section)?),
        _ => Ok(name),
    }
}

/// A symbol's name, or that it has none.
struct Quoted<'a>(Option<Name<'a>>);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) if !name.is_empty() => Printable::from(name).fmt(f),
            Some(_) => f.write_str("no symbol"),
            None => f.write_str("an unknown symbol"),
        }
    }
}
