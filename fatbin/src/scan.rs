//! A part of a host file that may hold device code, and looking through it.

use crate::bundle::{Bundle, BundleEntry, CompressedBundle};
use crate::container::{Container, FoundContainer, Place};
use crate::error::Error;
use crate::offload::OffloadBinary;
use crate::raw_llvm::{BUNDLE_MAGIC, COMPRESSED_BUNDLE_MAGIC, SYCL_SECTION};
use crate::region::Region;
use crate::search::{self, Next, Windows};
use crate::span::Span;
use core::iter::FusedIterator;
use elf_core::Name;

/// When ordinary data is searched for magic numbers, which reads all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Search {
    /// Never: only the sections that tools make for device code.
    Never,
    /// In files that have no such section: cuFFT, and programs made before CUDA 5.
    Otherwise,
    /// In all files. Libraries with a section for device code often have more of it elsewhere: cuRAND 10.4 nine times as many
    /// regions (`.data`), cuBLASLt 13.10 another 299 (`.cask_resource`), cuSPARSE 12.5 another 34.
    #[default]
    Always,
}

/// What a look through a file met.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A container.
    Found(FoundContainer<'a>),
    /// Ordinary data that was searched, in which nothing begins: a program that maps files can let go of these pages.
    Passed(Span<'a>),
}

/// What to look for in a run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Regions one after another, with zeros between.
    Regions,
    /// OffloadBinaries one after another, with zeros between.
    Offload,
    /// Bundles, compressed or not, with zeros between.
    Bundles,
    /// Containers among other bytes, which lie at `address` in memory.
    Anything { address: u64 },
    /// One cubin.
    Cubin,
    /// One ELF file for AMD's GPUs.
    CodeObject,
    /// What a section holds that is named for a target.
    Target,
}

/// A part of a file that may hold device code: a section, a segment, or a file as a whole. Gives its containers in order, and between
/// them up to a megabyte of other bytes at a time; an error is the last.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    rest: Option<Span<'a>>,
    place: Place<'a>,
    look: Look,
}

impl<'a> Scan<'a> {
    pub(crate) const fn new(rest: Span<'a>, place: Place<'a>, look: Look) -> Self {
        Self { rest: Some(rest), place, look }
    }

    /// What is still to be looked through.
    #[must_use]
    pub const fn rest(&self) -> Option<Span<'a>> {
        self.rest
    }

    /// All bytes that will be read, because nothing says what is in them; none where headers lead from one to the next.
    #[must_use]
    pub fn searched(&self) -> Option<Span<'a>> {
        self.rest.filter(|_| matches!(self.look, Look::Anything { .. }))
    }

    /// What will be searched, in parts of a megabyte: each may be looked through on another core, and what that says
    /// ([`Window::first`](crate::Window::first)) is for [`pass`](Self::pass).
    #[must_use]
    pub fn windows(&self) -> Windows<'a> {
        match self.look {
            Look::Anything { address } => Windows::new(self.rest, address),
            _ => Windows::new(None, 0),
        }
    }

    /// Goes on at file offset `to`, if it lies ahead in what is searched: nothing begins before it. The caller knows that from
    /// [`Window::first`](crate::Window::first); containers in what is passed are not found.
    pub fn pass(&mut self, to: u64) {
        if let (Look::Anything { address }, Some(rest)) = (self.look, self.rest)
            && let Some(step) = to.checked_sub(rest.at())
            && let Some(behind) = rest.tail(step)
        {
            self.rest = Some(behind);
            self.look = Look::Anything { address: address.wrapping_add(step) };
        }
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Result<Step<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let container = match self.look {
            Look::Cubin => Ok(Container::Cubin(rest)),
            Look::CodeObject => Ok(Container::CodeObject(rest)),
            Look::Target => Ok(Container::TargetSection(BundleEntry {
                id: self.place.section.map_or(Name(b""), |(_, name)| target_of(name)),
                image: rest,
            })),
            Look::Anything { address } => {
                let next = search::next(rest, address)?;
                let (Next::Found(_, behind) | Next::Passed(behind)) = next;
                let step = behind.at().saturating_sub(rest.at());
                self.look = Look::Anything { address: address.wrapping_add(step) };
                self.rest = Some(behind);
                return match next {
                    Next::Found(container, _) => {
                        Some(Ok(Step::Found(FoundContainer { place: self.place, container })))
                    }
                    Next::Passed(_) => Some(rest.part("data", 0, step).map(Step::Passed)),
                };
            }
            look => {
                let start = rest.without_leading_zeros();
                if start.size() == 0 {
                    return None;
                }
                let container = container(start, look);
                if let Ok(container) = &container {
                    self.rest = start.tail(container.size());
                }
                container
            }
        };
        Some(
            container.map(|container| Step::Found(FoundContainer { place: self.place, container })),
        )
    }
}

impl FusedIterator for Scan<'_> {}

/// The id of the target that a section is named for (ClangOffloadBundler, "Supported File Formats"); none where the name is cut to 8 bytes.
fn target_of(section: Name<'_>) -> Name<'_> {
    match section.as_bytes() {
        SYCL_SECTION => Name(b"sycl"),
        name => Name(name.strip_prefix(BUNDLE_MAGIC).unwrap_or_default()),
    }
}

/// The container at the start of `span`.
fn container<'a>(span: Span<'a>, look: Look) -> Result<Container<'a>, Error> {
    match (look, span.magic()) {
        (Look::Offload, _) => OffloadBinary::parse(span).map(Container::Offload),
        (Look::Bundles, COMPRESSED_BUNDLE_MAGIC) => {
            CompressedBundle::parse(span).map(Container::CompressedBundle)
        }
        (Look::Bundles, _) => Bundle::parse(span).map(Container::Bundle),
        _ => Region::parse(span).map(Container::Region),
    }
}
