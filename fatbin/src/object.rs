//! The sections of an object file, a shared library or an executable that may hold device code.

use crate::container::Place;
use crate::error::{Error, ErrorKind};
use crate::raw_llvm::{BUNDLE_MAGIC, SYCL_SECTION};
use crate::scan::{Look, Scan, Search};
use crate::span::Span;
use elf_core::names::{PT_LOAD, SHT_LLVM_OFFLOADING, SHT_NOBITS, SHT_PROGBITS};
use elf_core::{File, SectionFlags, SectionHeader};

/// What comes next in an object file.
pub(crate) enum Step<'a> {
    /// A section to look through.
    Section(Scan<'a>),
    /// A section that cannot be read.
    Error(Error),
    /// Nothing.
    End,
}

/// A walk over the sections: first those that tools make for device code, then, if wanted, ordinary data.
#[derive(Clone, Debug)]
pub(crate) struct ObjectWalk<'a> {
    file: File<'a>,
    /// The bytes of `file`, and where they lie in the host file.
    span: Span<'a>,
    place: Place<'a>,
    search: Search,
    pass: Pass,
    next: u32,
    found: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Named,
    Data,
    Segments,
    Done,
}

impl<'a> ObjectWalk<'a> {
    pub(crate) const fn new(
        file: File<'a>,
        span: Span<'a>,
        place: Place<'a>,
        search: Search,
    ) -> Self {
        Self { file, span, place, search, pass: Pass::Named, next: 0, found: false }
    }

    /// The next section of this pass that may hold device code.
    pub(crate) fn step(&mut self) -> Step<'a> {
        loop {
            let index = self.next;
            self.next = index.saturating_add(1);
            let step = match self.pass {
                Pass::Done => return Step::End,
                Pass::Segments => self.segment(index),
                Pass::Named | Pass::Data => self.section(index),
            };
            match step {
                None => (self.pass, self.next) = (self.after(), 0),
                Some(Ok(None)) => {}
                Some(Ok(Some(scan))) => return Step::Section(scan),
                Some(Err(error)) => return Step::Error(error),
            }
        }
    }

    /// The pass after this one.
    fn after(&self) -> Pass {
        match (self.pass, self.search) {
            (Pass::Named, Search::Never) | (Pass::Data | Pass::Segments | Pass::Done, _) => {
                Pass::Done
            }
            (Pass::Named, Search::Otherwise) if self.found => Pass::Done,
            (Pass::Named, _) if self.file.sections().is_empty() => Pass::Segments,
            (Pass::Named, _) => Pass::Data,
        }
    }

    /// Section `index`: none after the last, nothing in it if it is none for this pass.
    fn section(&mut self, index: u32) -> Option<Result<Option<Scan<'a>>, Error>> {
        let section = self.file.sections().get(usize::try_from(index).ok()?)?;
        // A name that cannot be read is no reason to miss the others.
        let name = self.file.section_name(&section).unwrap_or_default();
        let look = match (named(name.as_bytes(), &section), self.pass) {
            (Some(look), Pass::Named) => look,
            (None, Pass::Data) if is_data(&section) => Look::Anything { address: section.address },
            _ => return Some(Ok(None)),
        };
        if section.r#type == SHT_NOBITS || section.size == 0 {
            return Some(Ok(None)); // emptied by a tool that keeps debug information only
        }
        self.found |= self.pass == Pass::Named;
        let place =
            Place { section: Some((index, name)), searched: self.pass == Pass::Data, ..self.place };
        let bytes = self.span.part("section data", section.offset, section.size);
        Some(bytes.map(|bytes| Some(Scan::new(bytes, place, look))))
    }

    /// Segment `index` of a file without sections: none after the last. Linkers that do not separate code put constants into the
    /// segment of the code.
    fn segment(&self, index: u32) -> Option<Result<Option<Scan<'a>>, Error>> {
        let segment = self.file.segments().get(usize::try_from(index).ok()?)?;
        if segment.r#type != PT_LOAD || segment.file_size == 0 {
            return Some(Ok(None));
        }
        let place = Place { searched: true, ..self.place };
        let look = Look::Anything { address: segment.address };
        let bytes = self.span.part("segment data", segment.offset, segment.file_size);
        Some(bytes.map(|bytes| Some(Scan::new(bytes, place, look))))
    }
}

/// What a section that tools make for device code holds.
fn named(name: &[u8], section: &SectionHeader) -> Option<Look> {
    match name {
        b".nv_fatbin" | b"__nv_relfatbin" => Some(Look::Regions),
        b".hip_fatbin" => Some(Look::Bundles),
        _ if is_target_section(name) => Some(Look::Target),
        _ if section.r#type == SHT_LLVM_OFFLOADING => Some(Look::Offload),
        _ if name.starts_with(b".llvm.offloading") => Some(Look::Offload),
        _ => None,
    }
}

/// Whether a section holds images for the target that it is named for. For the host there is a byte, which says nothing.
pub(crate) fn is_target_section(name: &[u8]) -> bool {
    name == SYCL_SECTION
        || name.strip_prefix(BUNDLE_MAGIC).is_some_and(|id| !id.starts_with(b"host-"))
}

/// Whether a section is ordinary data.
fn is_data(section: &SectionHeader) -> bool {
    section.r#type == SHT_PROGBITS
        && section.flags.contains(SectionFlags::ALLOC)
        && !section.flags.intersects(SectionFlags::EXECINSTR | SectionFlags::COMPRESSED)
}

impl From<elf_core::ErrorKind> for ErrorKind {
    fn from(kind: elf_core::ErrorKind) -> Self {
        Self::Elf(kind)
    }
}
