//! Host files: where device code hides in them.

use crate::bundle::{Bundle, CompressedBundle};
use crate::coff::CoffWalk;
use crate::error::{Error, ErrorKind};
use crate::object::{self, ObjectWalk};
use crate::offload::OffloadBinary;
use crate::raw::REGION_MAGIC;
use crate::raw_llvm::{BUNDLE_MAGIC, COMPRESSED_BUNDLE_MAGIC, OFFLOAD_MAGIC};
use crate::region::Region;
use crate::search::{self, Next};
use crate::span::Span;
use core::iter::FusedIterator;
use elf_core::Name;
use elf_core::archive::{Archive, Members};
use elf_core::names::EM_CUDA;

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
            Self::Cubin(span) => span.at(),
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
            Self::Cubin(span) => span.size(),
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
pub struct Found<'a> {
    /// Where it is.
    pub place: Place<'a>,
    /// What it is.
    pub container: Container<'a>,
}

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

/// All containers of device code in a file, whatever it is: an executable, a shared library or an object file of any ELF
/// machine, or of Windows; an archive of such; a fatbin, an OffloadBinary or a bundle of its own; a cubin. Any other file is searched.
///
/// Only headers are read. Offsets count from the start of `bytes`, also those in an archive's members. A section that
/// cannot be read is an error, and the walk goes on behind it.
///
/// ```
/// // A region without entries.
/// let bytes = b"\x50\xed\x55\xba\x01\0\x10\0\0\0\0\0\0\0\0\0";
/// let found = fatbin::walk(bytes, fatbin::Search::default()).next().unwrap()?;
/// assert_eq!(found.container.at(), 0);
/// # Ok::<_, fatbin::Error>(())
/// ```
#[must_use]
pub fn walk(bytes: &[u8], search: Search) -> Walk<'_> {
    Walk { scans: scans(bytes, search), scan: None }
}

/// The parts of a file that [`walk`] looks through, one after another. Each may be looked through on another core.
#[must_use]
pub fn scans(bytes: &[u8], search: Search) -> Scans<'_> {
    let span = Span::new(bytes, 0);
    let mut scans = Scans { search, archive: None, object: None, next: None };
    match Archive::parse(bytes) {
        Ok(archive) if archive.is_thin() => {
            scans.next = Some(Err(span.error(0, ErrorKind::ThinArchive)))
        }
        Ok(archive) => scans.archive = Some(archive.members()),
        Err(_) => scans.open(span, None),
    }
    scans
}

/// The parts of a file that may hold device code: what [`scans`] gives. A part that cannot be read is an error, and others follow.
#[derive(Clone, Debug)]
pub struct Scans<'a> {
    search: Search,
    archive: Option<Members<'a>>,
    object: Option<Object<'a>>,
    next: Option<Result<Scan<'a>, Error>>,
}

/// A file with sections.
#[derive(Clone, Debug)]
enum Object<'a> {
    Elf(ObjectWalk<'a>),
    Coff(CoffWalk<'a>),
}

impl<'a> Object<'a> {
    fn step(&mut self) -> object::Step<'a> {
        match self {
            Self::Elf(walk) => walk.step(),
            Self::Coff(walk) => walk.step(),
        }
    }
}

impl<'a> Scans<'a> {
    /// Begins with a file: the whole, or a member of an archive.
    fn open(&mut self, span: Span<'a>, member: Option<Name<'a>>) {
        let place = Place { member, ..Place::default() };
        let magic = span.magic();
        if magic == u32::from_le_bytes(*b"\x7fELF") {
            match elf_core::File::parse(span.bytes()) {
                Ok(file) if file.header().machine == EM_CUDA => {
                    self.next = Some(Ok(Scan::new(span, place, Look::Cubin)))
                }
                Ok(file) => {
                    let walk = ObjectWalk::new(file, span, place, self.search);
                    self.object = Some(Object::Elf(walk));
                }
                Err(error) => {
                    self.next = Some(Err(span.error(error.at, ErrorKind::Elf(error.kind))))
                }
            }
            return;
        }
        if let Some(coff) = CoffWalk::new(span, place, self.search) {
            self.object = Some(Object::Coff(coff));
            return;
        }
        let look = match magic {
            REGION_MAGIC => Look::Regions,
            OFFLOAD_MAGIC => Look::Offload,
            COMPRESSED_BUNDLE_MAGIC => Look::Bundles,
            _ if span.bytes().starts_with(BUNDLE_MAGIC) => Look::Bundles,
            _ if self.search == Search::Never => return,
            _ => Look::Anything { address: 0 },
        };
        let searched = matches!(look, Look::Anything { .. });
        self.next = Some(Ok(Scan::new(span, Place { searched, ..place }, look)));
    }

    /// Goes on to the next member of the archive; false after the last.
    fn next_member(&mut self) -> bool {
        match self.archive.as_mut().and_then(Members::next) {
            None => return false,
            Some(Err(error)) => self.next = Some(Err(error.into())),
            Some(Ok(member)) => {
                let span = member.data.map(|data| Span::new(data, member.offset));
                span.into_iter().for_each(|span| self.open(span, Some(member.name)));
            }
        }
        true
    }
}

impl<'a> Iterator for Scans<'a> {
    type Item = Result<Scan<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(next) = self.next.take() {
                return Some(next);
            }
            match self.object.as_mut().map(Object::step) {
                Some(object::Step::Section(scan)) => return Some(Ok(scan)),
                Some(object::Step::Error(error)) => return Some(Err(error)),
                Some(object::Step::End) => self.object = None,
                None if self.next_member() => {}
                None => return None,
            }
        }
    }
}

impl FusedIterator for Scans<'_> {}

/// What a look through a file met.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A container.
    Found(Found<'a>),
    /// Ordinary data that was searched, in which nothing begins: a program that maps files can let go of these pages.
    Passed(Span<'a>),
}

/// The containers in a host file in order: what [`walk`] gives.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    scans: Scans<'a>,
    scan: Option<Scan<'a>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Found<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.scan.as_mut().and_then(Iterator::next) {
                Some(Ok(Step::Passed(_))) => {}
                Some(Ok(Step::Found(found))) => return Some(Ok(found)),
                Some(Err(error)) => return Some(Err(error)),
                None => match self.scans.next()? {
                    Ok(scan) => self.scan = Some(scan),
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}

impl FusedIterator for Walk<'_> {}

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
}

/// A part of a file that may hold device code: a section, a segment, or a file as a whole. Gives its containers in order, and between
/// them some megabytes of other bytes at a time; an error is the last.
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
}

impl<'a> Iterator for Scan<'a> {
    type Item = Result<Step<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let container = match self.look {
            Look::Cubin => Ok(Container::Cubin(rest)),
            Look::Anything { address } => {
                let next = search::next(rest, address)?;
                let (Next::Found(_, behind) | Next::Passed(behind)) = next;
                let step = behind.at().saturating_sub(rest.at());
                self.look = Look::Anything { address: address.wrapping_add(step) };
                self.rest = Some(behind);
                return match next {
                    Next::Found(container, _) => {
                        Some(Ok(Step::Found(Found { place: self.place, container })))
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
        Some(container.map(|container| Step::Found(Found { place: self.place, container })))
    }
}

impl FusedIterator for Scan<'_> {}

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
