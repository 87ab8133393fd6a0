//! Errors in words: an error holds positions, the files that it speaks of have the names.

use core::fmt::{self, Display, Write as _};
use elf_core::names::{self, STT_SECTION};
use elf_core::{ApplyError, ApplyErrorKind, Definition, File, Name, Symbol, SymbolTable};

use crate::error::{Error, ErrorKind};

/// What an object is called, and how a name is shown.
type ShowLabel<'e> = &'e dyn Fn(usize, &mut fmt::Formatter<'_>) -> fmt::Result;
type ShowName = fn(Name<'_>, &mut fmt::Formatter<'_>) -> fmt::Result;

/// An error together with the files that it speaks of: shown, it has the names of sections and symbols.
#[derive(Clone, Copy)]
pub struct Explained<'e, 'a> {
    error: Error,
    files: &'e [File<'a>],
    label: ShowLabel<'e>,
    name: ShowName,
}

impl Error {
    /// The error in words with names, which are those of `files`: the objects of the layout in their order. Objects are called by
    /// their numbers.
    ///
    /// ```
    /// use elf_core::File;
    /// use elf_layout::{Options, HeapStorage};
    /// use reloc_x86::X86_64;
    ///
    /// let bytes = include_bytes!("../../fixtures/x86_64/missing.o");
    /// let files = [File::parse(bytes)?];
    /// let mut room = HeapStorage::new();
    /// let error = room.plan::<X86_64>(&files, Options::default(), &mut |_| None).err().unwrap();
    /// assert_eq!(
    ///     error.explain(&files).to_string(),
    ///     "object 0: section .text: R_X86_64_PLT32 at offset 0x5: symbol hoist_fixture_missing is undefined"
    /// );
    /// # Ok::<(), elf_core::Error>(())
    /// ```
    #[must_use]
    pub fn explain<'e, 'a>(self, files: &'e [File<'a>]) -> Explained<'e, 'a> {
        let label = &|object: usize, f: &mut fmt::Formatter<'_>| write!(f, "object {object}");
        Explained { error: self, files, label, name: |name, f| name.fmt(f) }
    }
}

impl<'e> Explained<'e, '_> {
    /// The same with names for the objects.
    #[must_use]
    pub fn with_labels(self, label: ShowLabel<'e>) -> Self {
        Self { label, ..self }
    }

    /// The same with names of symbols shown in another way: demangled, for instance.
    #[must_use]
    pub fn with_names(self, name: ShowName) -> Self {
        Self { name, ..self }
    }
}

impl Display for Explained<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { object, section, kind } = self.error;
        let Some(file) = self.files.get(object) else { return kind.fmt(f) };
        if kind.is_of_image() {
            return kind.fmt(f);
        }
        let symbol = |index| Quoted { name: symbol_of(file, index), show: self.name };
        (self.label)(object, f)?;
        f.write_str(": ")?;
        if section != 0 {
            match section_name(file, section) {
                Some(name) => write!(f, "section {name}: ")?,
                None => write!(f, "section {section}: ")?,
            }
        }
        let relocation = |f: &mut fmt::Formatter<'_>, name, offset: u64, index, what: &str| {
            write!(f, "{name} at offset {offset:#x}: symbol {} {what}", symbol(index))
        };
        match kind {
            ErrorKind::Apply(error) => apply(error, &symbol(error.symbol), f),
            ErrorKind::Undefined { symbol, offset, name, .. } => {
                relocation(f, name, offset, symbol, "is undefined")
            }
            ErrorKind::NotLoaded { symbol, offset, name, .. } => {
                relocation(f, name, offset, symbol, "is in a section that is not loaded")
            }
            ErrorKind::Discarded { symbol, offset, name, .. } => {
                relocation(f, name, offset, symbol, "is in a discarded section group")
            }
            ErrorKind::NotThreadLocal { symbol, offset, name, .. } => {
                relocation(f, name, offset, symbol, "is not thread-local")
            }
            ErrorKind::ThreadLocal { symbol, offset, name, .. } => {
                relocation(f, name, offset, symbol, "is thread-local")
            }
            ErrorKind::Indirect { symbol, offset, name, .. } => {
                relocation(f, name, offset, symbol, "is an indirect function")
            }
            ErrorKind::Resolver { symbol: index } => {
                let symbol = symbol(index);
                write!(
                    f,
                    "the resolver of the indirect function {symbol} is not code of the objects"
                )
            }
            ErrorKind::Duplicate { symbol: index, first } => {
                write!(f, "symbol {} is defined in ", symbol(index))?;
                (self.label)(first, f)?;
                f.write_str(" already")
            }
            ErrorKind::Machine { found, expected } => {
                f.write_str("is for ")?;
                machine(found, f)?;
                f.write_str(", not for ")?;
                machine(expected, f)?;
                f.write_str(" as the first object")
            }
            ErrorKind::Flags { what, found, first, expected } => {
                write!(f, "{what} is not that of ")?;
                (self.label)(first, f)?;
                write!(f, ": e_flags {found:#x}, there {expected:#x}")
            }
            ErrorKind::Attributes { what, found, first, expected } => {
                write!(f, "{what} is not that of ")?;
                (self.label)(first, f)?;
                write!(f, ": {found}, there {expected}")
            }
            ErrorKind::FileType(found) => match names::file_type(found) {
                Some(name) => write!(f, "is no relocatable object but {name}"),
                None => write!(f, "is no relocatable object but of file type {found}"),
            },
            kind => kind.fmt(f),
        }
    }
}

fn machine(number: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match names::machine(number) {
        Some(name) => f.write_str(name),
        None => write!(f, "machine {number}"),
    }
}

/// Why a relocation against `symbol` was not applied.
fn apply(error: ApplyError, symbol: &Quoted<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        ApplyErrorKind::Unresolved(role) => write!(f, "no {role}"),
        // the reason, without what is said already
        _ => write!(AfterColon { f, begun: false }, "{error}"),
    }
}

/// What is written behind the first colon.
struct AfterColon<'f, 'b> {
    f: &'f mut fmt::Formatter<'b>,
    begun: bool,
}

impl fmt::Write for AfterColon<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.begun {
            return self.f.write_str(text);
        }
        let Some((_, rest)) = text.split_once(": ") else { return Ok(()) };
        self.begun = true;
        self.f.write_str(rest)
    }
}

/// The name of section `index`, if it has one that can be read.
#[must_use]
pub fn section_name<'a>(file: &File<'a>, index: u32) -> Option<Name<'a>> {
    file.section(index).and_then(|section| file.section_name(&section)).ok()
}

/// The name of symbol `index` of `table`, which is `symbol`: that of its section, if it stands for one and has no name itself.
///
/// # Errors
/// If a name or a section is not where the file says.
pub fn symbol_name<'a>(
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

fn symbol_of<'a>(file: &File<'a>, index: u32) -> Option<Name<'a>> {
    let table = file.symbol_table().ok()??;
    symbol_name(file, &table, index, &table.get(index).ok()?).ok()
}

/// A symbol's name, or that it has none.
struct Quoted<'a> {
    name: Option<Name<'a>>,
    show: ShowName,
}

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) if !name.is_empty() => (self.show)(name, f),
            Some(_) => f.write_str("no symbol"),
            None => f.write_str("an unknown symbol"),
        }
    }
}
