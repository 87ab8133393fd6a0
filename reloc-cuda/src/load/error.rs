//! Why a cubin was not loaded, and where.

use core::fmt;
use elf_core::ApplyError;

/// Why a cubin was not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// Index of the section at fault, or 0.
    pub section: u32,
    /// What is wrong.
    pub kind: LoadErrorKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// The file is damaged.
    Elf(elf_core::Error),
    /// A relocation cannot be applied.
    Apply(ApplyError),
    /// The file is not for CUDA, or big-endian.
    NotCuda {
        /// `e_machine`.
        machine: u16,
    },
    /// The file is not linked.
    NotLinked {
        /// `e_type`.
        r#type: u16,
    },
    /// The storage lent for offsets is too small.
    Storage {
        /// How many there have to be.
        needed: usize,
    },
    /// An alignment is no power of two.
    Alignment(u64),
    /// The image would not fit the address space.
    TooLarge,
    /// The image cannot be at this address.
    Base {
        /// The address.
        base: u64,
        /// The alignment it must have.
        alignment: u64,
    },
    /// The memory lent for the image is too small.
    Image {
        /// Bytes there are.
        found: u64,
        /// Bytes needed.
        needed: u64,
    },
}

impl LoadError {
    pub(super) const fn new(section: u32, kind: LoadErrorKind) -> Self {
        Self { section, kind }
    }

    pub(super) fn elf(section: u32) -> impl Fn(elf_core::Error) -> Self {
        move |error| Self { section, kind: LoadErrorKind::Elf(error) }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.section != 0 {
            write!(f, "section {}: ", self.section)?;
        }
        match self.kind {
            LoadErrorKind::Elf(error) => error.fmt(f),
            LoadErrorKind::Apply(error) => error.fmt(f),
            LoadErrorKind::NotCuda { machine } => {
                write!(f, "machine {machine} is not CUDA (190), little-endian")
            }
            LoadErrorKind::NotLinked { r#type } => write!(f, "file type {type} is not linked (2)"),
            LoadErrorKind::Storage { needed } => {
                write!(f, "storage for offsets is too small: {needed} needed")
            }
            LoadErrorKind::Alignment(found) => {
                write!(f, "alignment {found:#x} is no power of two")
            }
            LoadErrorKind::TooLarge => write!(f, "does not fit the address space"),
            LoadErrorKind::Base { base, alignment } => {
                write!(f, "image cannot be at {base:#x}, with an alignment of {alignment:#x}")
            }
            LoadErrorKind::Image { found, needed } => {
                write!(f, "image of {found:#x} bytes is too small: {needed:#x} needed")
            }
        }
    }
}

impl core::error::Error for LoadError {}
