//! Why a library could not be loaded.

use core::fmt;

/// Why a linked file could not be loaded as a library, or a symbol of it not be given out. Nothing stays mapped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LibraryError {
    /// The file is damaged, or for another machine.
    Image(elf_image::Error),
    /// A relocation could not be applied.
    Relocation {
        /// What is wrong.
        error: elf_image::Error,
        /// The name of the symbol.
        name: String,
    },
    /// Nobody defines a symbol.
    Undefined {
        /// Its name.
        name: String,
        /// The version that is asked for, if one is.
        version: Option<String>,
    },
    /// A library that it needs could not be had.
    Needed {
        /// Its name (`DT_NEEDED`).
        name: String,
        /// What the dynamic loader said.
        cause: String,
    },
    /// A library that it needs does not define a version that it needs of it.
    Version {
        /// The library's name (`DT_NEEDED`).
        file: String,
        /// The version.
        version: String,
    },
    /// It is a program, or one of the libraries that the dynamic loader itself has to load.
    Refused {
        /// Why.
        reason: String,
    },
    /// Its image is larger than it may be ([`LibraryLoader::limit`](super::LibraryLoader::limit)).
    TooLarge {
        /// Bytes of the image.
        size: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// A constructor or destructor is neither in its code nor what one of its references means, or their list is not in its memory; or the
    /// resolver of an indirect function is not in its code.
    Initializer {
        /// The address that was to be called.
        address: u64,
    },
    /// The unwinder of the process cannot take its unwinding tables. Where that asks for tables (`_dl_find_object` of glibc 2.35), they are
    /// checked when it does: the library is loaded, and one with errors is as if it had none.
    Unwinding(elf_core::eh_frame::Error),
    /// Neither it nor what it needs has this symbol.
    NoSymbol(String),
    /// The symbol is not code.
    NotFunction(String),
}

impl From<elf_image::Error> for LibraryError {
    fn from(error: elf_image::Error) -> Self {
        Self::Image(error)
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(error) => error.fmt(f),
            Self::Relocation { error, name } if name.is_empty() => error.fmt(f),
            Self::Relocation { error, name } => write!(f, "{error}: {name}"),
            Self::Undefined { name, version: Some(version) } => {
                write!(f, "symbol {name}, version {version}, is undefined")
            }
            Self::Undefined { name, version: None } => write!(f, "symbol {name} is undefined"),
            Self::Needed { name, cause } => write!(f, "needs {name}: {cause}"),
            Self::Version { file, version } => {
                write!(f, "needs version {version} of {file}, which does not define it")
            }
            Self::Refused { reason } => f.write_str(reason),
            Self::TooLarge { size, limit } => {
                write!(f, "an image of {size:#x} bytes is larger than the limit of {limit:#x}")
            }
            Self::Initializer { address } => {
                let what = "constructor, destructor or resolver";
                write!(f, "{what} {address:#x} is outside the library's code")
            }
            Self::Unwinding(error) => write!(f, "unwinding table: {error}"),
            Self::NoSymbol(name) => {
                write!(f, "neither the library nor what it needs defines {name}")
            }
            Self::NotFunction(name) => write!(f, "{name} is not code"),
        }
    }
}

impl core::error::Error for LibraryError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Image(error) | Self::Relocation { error, .. } => Some(error),
            Self::Unwinding(error) => Some(error),
            _ => None,
        }
    }
}
