//! Host files: where device code hides in them.

use crate::coff::CoffWalk;
use crate::container::{FoundContainer, Place};
use crate::error::{Error, ErrorKind};
use crate::object::{self, ObjectWalk};
use crate::raw::REGION_MAGIC;
use crate::raw_llvm::{BUNDLE_MAGIC, COMPRESSED_BUNDLE_MAGIC, OFFLOAD_MAGIC};
use crate::scan::{Look, Scan, Search, Step};
use crate::span::Span;
use core::iter::FusedIterator;
use elf_core::Name;
use elf_core::archive::{Archive, Members};
use elf_core::names::{EM_AMDGPU, EM_CUDA};

/// All containers of device code in a file, whatever it is: an executable, a shared library or an object file of any ELF
/// machine, or of Windows; an archive of such; a fatbin, an OffloadBinary or a bundle of its own; a cubin, a code object. Any other file is searched.
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
                Ok(file) if file.header().machine == EM_AMDGPU => {
                    self.next = Some(Ok(Scan::new(span, place, Look::CodeObject)))
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

/// The containers in a host file in order: what [`walk`] gives.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    scans: Scans<'a>,
    scan: Option<Scan<'a>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<FoundContainer<'a>, Error>;

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
