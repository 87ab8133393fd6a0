//! Why a layout was refused, and where.

use core::fmt;
use elf_core::ApplyError;

/// Why objects could not be laid out or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Index of the object at fault.
    pub object: usize,
    /// Index of the section at fault, or 0.
    pub section: u32,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
// whole words are copied in fewer instructions where words are small
#[cfg_attr(not(target_pointer_width = "64"), repr(u32))]
pub enum ErrorKind {
    /// The file itself is damaged.
    Elf(elf_core::Error),
    /// A relocation of the section cannot be applied.
    Apply(ApplyError),
    /// The object is for another machine.
    Machine {
        /// Its `e_machine`.
        found: u16,
        /// The machine of the layout.
        expected: u16,
    },
    /// The class of the object does not fit the machine.
    Class,
    /// The object's `e_flags` say another ABI than those of an object before it: their code cannot call each other.
    Flags {
        /// What differs.
        what: &'static str,
        /// Its `e_flags`.
        found: u32,
        /// Index of the other object.
        first: usize,
        /// The `e_flags` of that.
        expected: u32,
    },
    /// The object's build attributes say another ABI than those of an object before it: their code cannot call each other.
    Attributes {
        /// What differs.
        what: &'static str,
        /// What the object has chosen: the value of the attribute.
        found: u32,
        /// Index of the other object.
        first: usize,
        /// What that has chosen.
        expected: u32,
    },
    /// The byte order of the object is not that of the first one.
    ByteOrder,
    /// The processors that the objects are for have little-endian code beside big-endian data, which
    /// [`write_be8`](crate::Layout::write_be8) writes; or that was asked of objects that have no such thing.
    CodeOrder,
    /// The file is no relocatable object (`ET_REL`).
    FileType(u16),
    /// The alignment of the section is no power of two.
    Alignment(u64),
    /// The image would not fit the address space.
    TooLarge,
    /// Lent storage is too small.
    Storage {
        /// What it is for.
        what: &'static str,
        /// Elements needed.
        needed: usize,
    },
    /// The image has no room for the layout.
    Image {
        /// Bytes there are.
        found: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// The base address is no multiple of the layout's alignment, not the one it was made for, or too high.
    Base {
        /// The address.
        base: u64,
        /// The alignment in bytes.
        alignment: u64,
    },
    /// The section's own address overlaps another section's, or is below the base.
    Overlap {
        /// The section's address.
        address: u64,
    },
    /// Code that becomes shorter moves other code so that it becomes longer, again and again.
    Unsettled,
    /// Two objects define the symbol.
    Duplicate {
        /// Index of the symbol in this object.
        symbol: u32,
        /// The object that has defined it before.
        first: usize,
    },
    /// A relocation asks for a symbol that nobody defines.
    Undefined {
        /// Index of the symbol.
        symbol: u32,
        /// `r_offset` of the relocation.
        offset: u64,
        /// Its `r_type`.
        r#type: u32,
        /// Name of the type.
        name: &'static str,
    },
    /// A relocation asks for a symbol in a section that is not loaded.
    NotLoaded {
        /// Index of the symbol.
        symbol: u32,
        /// `r_offset` of the relocation.
        offset: u64,
        /// Its `r_type`.
        r#type: u32,
        /// Name of the type.
        name: &'static str,
    },
    /// A relocation for thread-local variables asks for a symbol that is none.
    NotThreadLocal {
        /// Index of the symbol.
        symbol: u32,
        /// `r_offset` of the relocation.
        offset: u64,
        /// Its `r_type`.
        r#type: u32,
        /// Name of the type.
        name: &'static str,
    },
    /// A relocation asks for the one address of a variable of which every thread has its own.
    ThreadLocal {
        /// Index of the symbol.
        symbol: u32,
        /// `r_offset` of the relocation.
        offset: u64,
        /// Its `r_type`.
        r#type: u32,
        /// Name of the type.
        name: &'static str,
    },
    /// The resolver of an indirect function is not code of the objects.
    Resolver {
        /// Index of the symbol.
        symbol: u32,
    },
    /// A relocation asks for an indirect function (`STT_GNU_IFUNC`), whose resolver nobody runs.
    Indirect {
        /// Index of the symbol.
        symbol: u32,
        /// `r_offset` of the relocation.
        offset: u64,
        /// Its `r_type`.
        r#type: u32,
        /// Name of the type.
        name: &'static str,
    },
    /// A relocation asks for a local symbol of a discarded COMDAT group: another object's is kept.
    Discarded {
        /// Index of the symbol.
        symbol: u32,
        /// `r_offset` of the relocation.
        offset: u64,
        /// Its `r_type`.
        r#type: u32,
        /// Name of the type.
        name: &'static str,
    },
    /// The relocations mean another symbol table than the object's.
    SymbolTable {
        /// `sh_link` of the relocation section.
        link: u32,
    },
}

impl ErrorKind {
    /// Whether this is about the image as a whole, and about no object.
    #[must_use]
    pub const fn is_of_image(&self) -> bool {
        matches!(self, Self::Base { .. } | Self::Image { .. } | Self::Storage { .. })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Elf(error) => error.fmt(f),
            Self::Apply(error) => error.fmt(f),
            Self::Machine { found, expected } => write!(f, "machine {found}, expected {expected}"),
            Self::Class => write!(f, "32 or 64 bits: not those of the machine"),
            Self::Flags { what, found, first, expected } => {
                write!(
                    f,
                    "{what} is not that of object {first}: e_flags {found:#x}, there {expected:#x}"
                )
            }
            Self::Attributes { what, found, first, expected } => {
                write!(f, "{what} is not that of object {first}: {found}, there {expected}")
            }
            Self::ByteOrder => write!(f, "its byte order is not that of the first object"),
            Self::CodeOrder => {
                write!(f, "BE8 is for big-endian Arm, and since Armv7 all that there is for it")
            }
            Self::FileType(found) => write!(f, "file type {found} is not relocatable"),
            Self::Alignment(found) => write!(f, "alignment {found:#x} is no power of two"),
            Self::TooLarge => write!(f, "does not fit the address space"),
            Self::Storage { what, needed } => {
                write!(f, "storage for {what} is too small: {needed} needed")
            }
            Self::Image { found, needed } => {
                write!(f, "image of {found:#x} bytes is too small: {needed:#x} needed")
            }
            Self::Base { base, alignment } => {
                write!(f, "image cannot be at {base:#x}, with an alignment of {alignment:#x}")
            }
            Self::Unsettled => write!(f, "code does not come to rest while it becomes shorter"),
            Self::Overlap { address } => write!(f, "cannot be placed at its address {address:#x}"),
            Self::Duplicate { symbol, first } => {
                write!(f, "symbol {symbol} is defined in object {first} already")
            }
            Self::Undefined { symbol, offset, name, .. } => {
                write!(f, "{name} at offset {offset:#x}: symbol {symbol} is undefined")
            }
            Self::NotLoaded { symbol, offset, name, .. } => {
                write!(
                    f,
                    "{name} at offset {offset:#x}: symbol {symbol} is in a section that is not loaded"
                )
            }
            Self::NotThreadLocal { symbol, offset, name, .. } => {
                write!(f, "{name} at offset {offset:#x}: symbol {symbol} is not thread-local")
            }
            Self::ThreadLocal { symbol, offset, name, .. } => {
                write!(f, "{name} at offset {offset:#x}: symbol {symbol} is thread-local")
            }
            Self::Resolver { symbol } => {
                write!(
                    f,
                    "the resolver of the indirect function {symbol} is not code of the objects"
                )
            }
            Self::Indirect { symbol, offset, name, .. } => {
                write!(f, "{name} at offset {offset:#x}: symbol {symbol} is an indirect function")
            }
            Self::Discarded { symbol, offset, name, .. } => {
                write!(
                    f,
                    "{name} at offset {offset:#x}: symbol {symbol} is in a discarded section group"
                )
            }
            Self::SymbolTable { link } => {
                write!(f, "relocations mean section {link}, not the symbol table")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.section {
            0 => write!(f, "object {}: {}", self.object, self.kind),
            section => write!(f, "object {}: section {section}: {}", self.object, self.kind),
        }
    }
}

impl core::error::Error for Error {}

impl Error {
    /// An error of an object.
    pub(crate) const fn object(object: usize, kind: ErrorKind) -> Self {
        Self { object, section: 0, kind }
    }

    // the same code for all callers: there are many, and it is rarely run
    #[cold]
    #[inline(never)]
    const fn damaged(object: usize, section: u32, error: elf_core::Error) -> Self {
        Self { object, section, kind: ErrorKind::Elf(error) }
    }

    /// A damaged file.
    pub(crate) fn elf(object: usize, section: u32) -> impl Fn(elf_core::Error) -> Self {
        move |error| Self::damaged(object, section, error)
    }
}
