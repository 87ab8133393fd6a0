//! Why objects could not be loaded.

use crate::library::LibraryError;
use core::fmt;

/// Why objects could not be loaded, or a function not be given out. Nothing stays mapped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An object is damaged.
    Elf {
        /// Its index.
        object: usize,
        /// What is wrong.
        error: elf_core::Error,
    },
    /// An object has data in the byte order that this process has not: code of AArch64 and Arm is the same, what it reads is not.
    ByteOrder {
        /// Its index.
        object: usize,
    },
    /// The objects cannot be laid out or relocated.
    Layout(elf_layout::Error),
    /// An object cannot be laid out or relocated.
    Object {
        /// What is wrong, with the names of sections and symbols.
        text: Box<str>,
        /// The same as positions.
        error: elf_layout::Error,
    },
    /// Nobody defines some symbols: neither the objects nor where they get symbols from.
    Undefined(Box<UndefinedSymbol>),
    /// The system gave no memory, or not the permissions.
    Map {
        /// Bytes asked for.
        size: u64,
        /// What the system said.
        cause: std::io::Error,
    },
    /// There is not so much address space.
    OutOfMemory {
        /// Bytes asked for.
        size: u64,
    },
    /// The image would be larger than the [limit](crate::Loader::limit).
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// Bytes it may have.
        limit: u64,
        /// The object with the largest section.
        object: usize,
        /// The index of that section.
        section: u32,
        /// The section's name, its control characters escaped; empty if it is not known.
        name: Box<str>,
        /// The size of that section in bytes.
        largest: u64,
    },
    /// Code compiled without `-fPIC` needs addresses below `limit`, where no room is left.
    NoLowMemory {
        /// Bytes asked for.
        size: u64,
        /// First address that is too high.
        limit: u64,
    },
    /// A section wants to be writable and executable at once.
    WriteExecute,
    /// A section says that the code of its object wants to execute the stack (`.note.GNU-stack`), as GCC's does that takes the address
    /// of a function inside of a function.
    ExecutableStack {
        /// The object's index.
        object: usize,
        /// The section's index.
        section: u32,
        /// The section's name, its control characters escaped; empty if it is not known.
        name: Box<str>,
    },
    /// A section carries an address of its own, which memory of this process cannot have.
    FixedAddress {
        /// The object's index.
        object: usize,
        /// The section's index.
        section: u32,
        /// The section's name, its control characters escaped; empty if it is not known.
        name: Box<str>,
        /// The address.
        address: u64,
    },
    /// The dynamic loader has no room for thread-local variables, or not at one TP offset in all threads.
    ThreadLocal {
        /// Size of a thread's variables in bytes.
        size: u64,
        /// What the loader said.
        cause: String,
        /// The object and the largest of its variables, with the most of them; empty if that is not known.
        text: Box<str>,
    },
    /// Code needs thread-local variables at one TP offset in all threads (initial exec, local exec), and the
    /// dynamic loader has no room there.
    NearThreadLocal {
        /// Size of a thread's variables in bytes.
        size: u64,
        /// What the loader said.
        cause: String,
        /// The relocation that needs it.
        error: elf_layout::Error,
        /// The same with the names of section and symbol.
        text: Box<str>,
    },
    /// No object defines the symbol.
    NoSymbol(String),
    /// The symbol is not code.
    NotFunction(String),
    /// The objects have constructors that were not run yet.
    NotInitialized,
    /// A section holds the beginning or the end of `_init` or `_fini`, between which code of other objects would run: start files of a
    /// program; or, of what is linked for elsewhere, any of it.
    Fragment {
        /// The object's index.
        object: usize,
        /// The section's index.
        section: u32,
        /// The section's name, its control characters escaped; empty if it is not known.
        name: Box<str>,
    },
    /// A constructor is not in the code of the objects.
    Initializer {
        /// The object's index.
        object: usize,
        /// The section's index.
        section: u32,
        /// The section's name, its control characters escaped; empty if it is not known.
        name: Box<str>,
        /// The address that was to be called.
        address: u64,
    },
    /// The unwinder of the process cannot take an unwinding table (`.eh_frame`).
    Unwinding {
        /// The object's index.
        object: usize,
        /// The section's index.
        section: u32,
        /// The section's name, its control characters escaped; empty if it is not known.
        name: Box<str>,
        /// What is wrong, and where in the section.
        error: elf_core::eh_frame::Error,
    },
    /// The arguments of a call are not those of the function, in number or type.
    Arguments {
        /// Number of the function's arguments.
        expected: usize,
        /// Number of those given.
        found: usize,
    },
    /// The module was not loaded as replaceable, or has no such function.
    NotReplaceable(String),
    /// A variable that shall stay where it is has another size than it had.
    SizeDiffers {
        /// Its name.
        name: String,
        /// Its size where it is, in bytes.
        old: u64,
        /// Its size in the new object, in bytes.
        new: u64,
    },
    /// A library could not be opened.
    Library(Box<dyn core::error::Error + Send + Sync>),
    /// An archive is damaged.
    Archive(elf_core::Error),
    /// The members of a thin archive are files of their own, and its folder is not known.
    ThinArchive,
    /// A file could not be read.
    File {
        /// Its path.
        path: std::path::PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A member of an archive is damaged.
    Member {
        /// Its name.
        name: String,
        /// What is wrong, at an offset in the member.
        error: elf_core::Error,
    },
    /// A file that an archive or a program names may not be read, or that of an archive could not be.
    Named(exec_core::FileError),
    /// A linked file could not be loaded as a library.
    Linked(Box<LibraryError>),
    /// An observer could not do its part.
    Observer(std::io::Error),
}

/// The symbols that nobody defines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UndefinedSymbol {
    /// What is wrong, with the names of sections and symbols.
    pub text: String,
    /// The name of the first.
    pub name: String,
    /// Which object asks for the first, and where.
    pub error: elf_layout::Error,
    /// The same of all, the first included: a hundred of them at most.
    pub all: Vec<elf_layout::Error>,
    /// How many more there are.
    pub more: usize,
}

impl Error {
    /// The place of an error that is about one section, its object and index, and where its name belongs.
    pub(crate) const fn section_mut(&mut self) -> Option<(usize, u32, &mut Box<str>)> {
        match self {
            Self::TooLarge { object, section, name, .. }
            | Self::FixedAddress { object, section, name, .. }
            | Self::ExecutableStack { object, section, name }
            | Self::Fragment { object, section, name }
            | Self::Initializer { object, section, name, .. }
            | Self::Unwinding { object, section, name, .. } => Some((*object, *section, name)),
            _ => None,
        }
    }

    /// The same of a block of another size: it was asked for a larger one.
    pub(crate) fn of_size(self, size: u64) -> Self {
        match self {
            Self::ThreadLocal { cause, text, .. } => Self::ThreadLocal { size, cause, text },
            error => error,
        }
    }
}

/// Object and section, by its name if that is known.
struct Place<'e>(usize, u32, &'e str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(object, section, name) = self;
        match *name {
            "" => write!(f, "object {object}: section {section}"),
            name => write!(f, "object {object}: section {name}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elf { object, error } => write!(f, "object {object}: {error}"),
            Self::ByteOrder { object } => {
                write!(f, "object {object}: its data are big-endian, and those of this process not")
            }
            Self::Layout(error) => error.fmt(f),
            Self::Object { text, .. } => f.write_str(text),
            Self::Undefined(undefined) => f.write_str(&undefined.text),
            Self::Map { size, cause } => write!(f, "no memory for {size:#x} bytes: {cause}"),
            Self::OutOfMemory { size } => write!(f, "{size:#x} bytes do not fit the address space"),
            Self::TooLarge { size, limit, object, section, name, largest } => write!(
                f,
                "{}: asks for {largest} bytes of an image of {size}, more than the limit of {limit}",
                Place(*object, *section, name)
            ),
            Self::NoLowMemory { size, limit } => {
                write!(
                    f,
                    "no memory for {size:#x} bytes below {limit:#x}, which code without -fPIC needs"
                )
            }
            Self::WriteExecute => write!(f, "a section is writable and executable at once"),
            Self::ExecutableStack { object, section, name } => {
                write!(
                    f,
                    "{}: code that wants to execute the stack",
                    Place(*object, *section, name)
                )
            }
            Self::FixedAddress { object, section, name, address } => {
                let place = Place(*object, *section, name);
                write!(f, "{place}: its address {address:#x} cannot be had")
            }
            Self::ThreadLocal { size, cause, text } => {
                write!(f, "{text}no room for {size:#x} bytes of thread-local variables: {cause}")
            }
            Self::NearThreadLocal { size, cause, text, .. } => {
                write!(
                    f,
                    "{text}: no room near the thread pointer for {size:#x} bytes of thread-local variables, which glibc has more of \
                     with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=BYTES, and a program that sets it aside \
                     (exec_host::StaticTlsReserve); code compiled with -fPIC needs none: {cause}"
                )
            }
            Self::NoSymbol(name) => write!(f, "no object defines {name}"),
            Self::NotFunction(name) => write!(f, "{name} is not code"),
            Self::NotInitialized => write!(f, "constructors were not run yet"),
            Self::Fragment { object, section, name } => {
                write!(
                    f,
                    "{}: a part of `_init` or `_fini` that is not run here (start files of a program)",
                    Place(*object, *section, name)
                )
            }
            Self::Initializer { object, section, name, address } => {
                let place = Place(*object, *section, name);
                write!(f, "{place}: constructor {address:#x} is outside the code")
            }
            Self::Unwinding { object, section, name, error } => {
                write!(f, "{}: unwinding table: {error}", Place(*object, *section, name))
            }
            Self::Arguments { expected, found } if expected == found => {
                write!(f, "an argument has the wrong type")
            }
            Self::Arguments { expected, found } => {
                write!(f, "{found} arguments, expected {expected}")
            }
            Self::NotReplaceable(name) => write!(f, "{name} cannot be replaced"),
            Self::SizeDiffers { name, old, new } => {
                write!(f, "variable {name} has {new} bytes, and {old} where it is")
            }
            Self::Library(error) => error.fmt(f),
            Self::Archive(error) => write!(f, "archive: {error}"),
            Self::Member { name, error } => write!(f, "archive: {name}: {error}"),
            Self::ThinArchive => write!(f, "a thin archive, which names files beside it"),
            Self::File { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Named(error) => error.fmt(f),
            Self::Linked(error) => error.fmt(f),
            Self::Observer(cause) => write!(f, "an observer of loads: {cause}"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Elf { error, .. } => Some(error),
            Self::Layout(error) | Self::Object { error, .. } => Some(error),
            Self::Undefined(undefined) => Some(&undefined.error),
            Self::Unwinding { error, .. } => Some(error),
            Self::Map { cause, .. } => Some(cause),
            Self::Library(error) => Some(&**error),
            Self::Archive(error) | Self::Member { error, .. } => Some(error),
            Self::Named(error) => Some(error),
            Self::Linked(error) => Some(&**error),
            Self::File { cause, .. } | Self::Observer(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<LibraryError> for Error {
    fn from(error: LibraryError) -> Self {
        Self::Linked(Box::new(error))
    }
}
