//! What holds device code, and where it was found.

use crate::bundle::{Bundle, BundleEntry, CompressedBundle};
use crate::offload::OffloadBinary;
use crate::region::Region;
use crate::span::Span;
use elf_core::Name;

/// Something that holds device code.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Container<'a> {
    /// NVIDIA's.
    Region(Region<'a>),
    /// LLVM's.
    Offload(OffloadBinary<'a>),
    /// clang-offload-bundler's.
    Bundle(Bundle<'a>),
    /// clang-offload-bundler's, compressed.
    CompressedBundle(CompressedBundle<'a>),
    /// No container: a file that is an ELF file for NVIDIA GPUs itself.
    Cubin(Span<'a>),
    /// No container: a file that is an ELF file for AMD's GPUs itself ([`CodeObjectHeader`](crate::CodeObjectHeader)).
    CodeObject(Span<'a>),
    /// No container: a section that is named for a target, with its image, or in linked files with all its images one after another.
    /// Its `image` is the whole section.
    TargetSection(BundleEntry<'a>),
}

impl Container<'_> {
    /// File offset of the first byte.
    #[must_use]
    pub const fn at(&self) -> u64 {
        match self {
            Self::Region(region) => region.at(),
            Self::Offload(binary) => binary.at(),
            Self::Bundle(bundle) => bundle.at(),
            Self::CompressedBundle(bundle) => bundle.at(),
            Self::Cubin(span) | Self::CodeObject(span) => span.at(),
            Self::TargetSection(section) => section.image.at(),
        }
    }

    /// Number of bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        match self {
            Self::Region(region) => region.size(),
            Self::Offload(binary) => binary.size(),
            Self::Bundle(bundle) => bundle.size(),
            Self::CompressedBundle(bundle) => bundle.size(),
            Self::Cubin(span) | Self::CodeObject(span) => span.size(),
            Self::TargetSection(section) => section.image.size(),
        }
    }
}

/// Where a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place<'a> {
    /// The member of the archive.
    pub member: Option<Name<'a>>,
    /// Index and name of the section.
    pub section: Option<(u32, Name<'a>)>,
    /// Whether the magic search found it: nothing else says that it is there.
    pub searched: bool,
}

/// A container in a host file.
#[derive(Clone, Copy, Debug)]
pub struct FoundContainer<'a> {
    /// Where it is.
    pub place: Place<'a>,
    /// What it is.
    pub container: Container<'a>,
}
