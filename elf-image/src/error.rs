//! Why a file cannot become an image.

use core::fmt;
use elf_core::ApplyError;

/// Why a file could not become an image, or not be relocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Number of the program header at fault, if it is one.
    pub segment: Option<u32>,
    /// What is wrong.
    pub kind: ErrorKind,
}

impl Error {
    pub(crate) const fn new(kind: ErrorKind) -> Self {
        Self { segment: None, kind }
    }

    pub(crate) const fn of(segment: u32, kind: ErrorKind) -> Self {
        Self { segment: Some(segment), kind }
    }
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A table of the file is damaged.
    Elf(elf_core::Error),
    /// The file is neither an executable nor a shared object, by its `e_type`.
    Type(u16),
    /// The file is for another machine.
    Machine {
        /// Its `e_machine`.
        found: u16,
        /// That of the architecture.
        expected: u16,
    },
    /// The file is for the machine, and not of its class: x32, or code of AArch64 with addresses of 32 bits.
    Class {
        /// Whether its class is that of 64 bits.
        is_64: bool,
    },
    /// Nothing is loaded: there is no `PT_LOAD` segment with memory.
    NoSegments,
    /// The segment begins before one that stands earlier in the file.
    Order {
        /// Its address.
        address: u64,
        /// Number of the one before it.
        before: u32,
    },
    /// The segment begins inside of another.
    Overlap {
        /// Its address.
        address: u64,
        /// Number of the other one.
        with: u32,
    },
    /// The alignment is no power of two.
    Alignment(u64),
    /// Address and file offset differ modulo the alignment (gABI ch. 7, "Program Loading").
    Misaligned {
        /// Address.
        address: u64,
        /// File offset.
        offset: u64,
        /// Alignment in bytes.
        alignment: u64,
    },
    /// The segment has more bytes in the file than in memory.
    FileSize {
        /// Bytes in the file.
        file: u64,
        /// Bytes in memory.
        memory: u64,
    },
    /// The segment, or all of them together, end behind the last address.
    TooLarge {
        /// First address.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// What a segment describes is not in the image.
    Outside {
        /// Address in the file.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// More segments than anything has.
    TooMany {
        /// How many there may be.
        limit: u32,
    },
    /// Physical and virtual addresses of the segments are not equally far apart, and there are relocations.
    Distances,
    /// The memory has another size than the image.
    Memory {
        /// Bytes that the image takes.
        size: u64,
        /// Bytes that were given.
        given: u64,
    },
    /// The address is not one that the image can have: a fixed one has one only, others a multiple of their alignment.
    Base {
        /// The address.
        base: u64,
        /// The image's own first address.
        start: u64,
        /// Its alignment in bytes.
        alignment: u64,
    },
    /// Segments of different permissions share a page, one of them writable and one executable.
    SharedPage {
        /// Address of the page in the file.
        address: u64,
    },
    /// The size of a page is no power of two.
    PageSize(u64),
    /// A relocation cannot be applied; its offset is the address that the file has.
    Relocation(ApplyError),
    /// A relocation is not relative: it needs what only symbols tell.
    NotRelative(ApplyError),
    /// A part of a row is left behind those of a table of relocations.
    Rows {
        /// `DT_*`.
        tag: u64,
        /// Its bytes.
        left: u64,
    },
    /// A map of `DT_RELR` stands before all addresses: it speaks of no place.
    Map {
        /// Its address in the file.
        address: u64,
    },
    /// There are relocations of a form that loaders do not know.
    Form {
        /// `DT_*`.
        tag: u64,
    },
}

impl From<elf_core::Error> for Error {
    fn from(error: elf_core::Error) -> Self {
        Self::new(ErrorKind::Elf(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(segment) = self.segment {
            write!(f, "segment {segment}: ")?;
        }
        match self.kind {
            ErrorKind::Elf(error) => error.fmt(f),
            ErrorKind::Type(found) => {
                write!(f, "a file of type {found}, neither an executable nor a shared object")
            }
            ErrorKind::Machine { found, expected } => {
                write!(f, "a file for machine {found}, not {expected}")
            }
            ErrorKind::Class { is_64 } => {
                let (found, expected) = if is_64 { (64, 32) } else { (32, 64) };
                write!(f, "a file with addresses of {found} bits, not {expected}")
            }
            ErrorKind::NoSegments => write!(f, "no segment is loaded"),
            ErrorKind::Order { address, before } => {
                write!(f, "its address {address:#x} is below that of segment {before}")
            }
            ErrorKind::Overlap { address, with } => {
                write!(f, "its address {address:#x} is inside of segment {with}")
            }
            ErrorKind::Alignment(alignment) => {
                write!(f, "alignment {alignment:#x} is no power of two")
            }
            ErrorKind::Misaligned { address, offset, alignment } => write!(
                f,
                "address {address:#x} and file offset {offset:#x} differ modulo the alignment {alignment:#x}"
            ),
            ErrorKind::FileSize { file, memory } => {
                write!(f, "{file:#x} bytes in the file are more than the {memory:#x} in memory")
            }
            ErrorKind::TooLarge { address, size } => {
                write!(f, "{size:#x} bytes at {address:#x} leave the address space")
            }
            ErrorKind::Outside { address, size } => {
                write!(f, "{size:#x} bytes at {address:#x} are not in the image")
            }
            ErrorKind::TooMany { limit } => write!(f, "more than {limit} segments are loaded"),
            ErrorKind::Distances => {
                write!(
                    f,
                    "physical and virtual addresses are not equally far apart in all segments"
                )
            }
            ErrorKind::Memory { size, given } => {
                write!(f, "the image takes {size:#x} bytes of memory, and {given:#x} were given")
            }
            ErrorKind::Base { base, start, alignment } => write!(
                f,
                "an image of address {start:#x} and alignment {alignment:#x} cannot stand at {base:#x}"
            ),
            ErrorKind::SharedPage { address } => {
                write!(f, "the page at {address:#x} would be writable and executable")
            }
            ErrorKind::PageSize(size) => write!(f, "a page of {size:#x} bytes"),
            ErrorKind::Relocation(error) => write!(f, "relocation {error}"),
            ErrorKind::NotRelative(error) => {
                write!(f, "relocation {error}, and it is not a relative one")
            }
            ErrorKind::Rows { tag, left } => write!(
                f,
                "{left} bytes, a part of a row, are left of the relocations of the dynamic section's tag {tag:#x}"
            ),
            ErrorKind::Map { address } => write!(
                f,
                "the map of relative relocations at {address:#x} stands before all addresses"
            ),
            ErrorKind::Form { tag } => write!(
                f,
                "relocations of the dynamic section's tag {tag:#x}, which are not relative ones"
            ),
        }
    }
}

impl core::error::Error for Error {}
