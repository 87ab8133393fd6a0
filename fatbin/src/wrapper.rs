//! What a host program finds its device code by: wrappers, and the ids of modules.

use crate::error::{Error, ErrorKind};
use crate::pointer::{Pointer, Pointers};
use crate::raw;
use crate::span::Span;
use core::iter::FusedIterator;
use elf_core::{File, Name, SectionHeader};

/// A wrapper: a region and what goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// File offset of the wrapper, counted from the start of its ELF file.
    pub at: u64,
    /// [`raw::WRAPPER_MAGIC`] or [`raw::HIP_WRAPPER_MAGIC`].
    pub magic: u32,
    /// 1, or 2 from the device linker.
    pub version: u32,
    /// The region, or the bundle.
    pub data: Pointer,
    /// Version 2: an array of pointers to regions that were linked before. Else nothing.
    pub second: Pointer,
}

/// The wrappers in `.nvFatBinSegment` and `.hipFatBinSegment` in order.
///
/// Their pointers are read through the relocations that apply to them, in object files (`R_*_64` against a section) and in
/// shared libraries and position-independent programs (`R_*_RELATIVE`); where there is none, the bytes in the file hold
/// (programs at fixed addresses, and relative relocations packed in `SHT_RELR`).
///
/// Regions need no wrapper: shipped libraries have some without, and [`walk`](crate::walk) finds these too.
#[must_use]
pub const fn wrappers<'a>(file: &'a File<'a>) -> Wrappers<'a> {
    Wrappers { file, section: 0, rest: None }
}

/// The wrappers of a file in order: what [`wrappers`] gives. An error ends the section in which it is.
#[derive(Clone, Debug)]
pub struct Wrappers<'a> {
    file: &'a File<'a>,
    /// Index of the next section.
    section: u32,
    /// What is left of the section at hand.
    rest: Option<(Pointers<'a>, Span<'a>)>,
}

impl<'a> Wrappers<'a> {
    /// Begins with a section.
    fn open(&mut self, index: u32, section: SectionHeader) -> Result<(), Error> {
        let pointers = Pointers::open(self.file, index, section)?;
        let span = pointers.span()?;
        self.rest = Some((pointers, span));
        Ok(())
    }
}

impl Iterator for Wrappers<'_> {
    type Item = Result<Wrapper, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((pointers, span)) = self.rest.take() {
                // Linkers pad: zeros are no wrapper.
                let start = span.without_leading_zeros();
                if start.size() != 0 {
                    let wrapper = read(&pointers, start);
                    if wrapper.is_ok() {
                        let rest = start.tail(size_of::<raw::Wrapper>() as u64);
                        self.rest = rest.map(|rest| (pointers, rest));
                    }
                    return Some(wrapper);
                }
            }
            let index = self.section;
            let section = self.file.sections().get(usize::try_from(index).ok()?)?;
            self.section = index.saturating_add(1);
            let name = self.file.section_name(&section).unwrap_or_default();
            if (name == ".nvFatBinSegment" || name == ".hipFatBinSegment")
                && let Err(error) = self.open(index, section)
            {
                return Some(Err(error));
            }
        }
    }
}

impl FusedIterator for Wrappers<'_> {}

/// The wrapper at the start of `span`.
fn read(pointers: &Pointers<'_>, span: Span<'_>) -> Result<Wrapper, Error> {
    let raw: &raw::Wrapper = span.row("wrapper", 0)?;
    let (at, magic) = (span.at(), raw.magic.get());
    if !matches!(magic, raw::WRAPPER_MAGIC | raw::HIP_WRAPPER_MAGIC) {
        return Err(span.error(0, ErrorKind::Magic { what: "wrapper", found: magic }));
    }
    let data = pointers.get(at.saturating_add(8), raw.data.get())?;
    let second = pointers.get(at.saturating_add(16), raw.second.get())?;
    Ok(Wrapper { at, magic, version: raw.version.get(), data, second })
}

/// The ids of modules in `__nv_module_id`, each with its file offset: `__NV_MODULE_ID` for code compiled as a whole,
/// `_<hash>_<length>_<file>_<hash>` for relocatable code, `def <id>` from the device linker (measured).
///
/// # Errors
/// [`ErrorKind::Elf`] if the section leaves the file.
pub fn module_ids<'a>(file: &File<'a>) -> Result<ModuleIds<'a>, Error> {
    let is_ids = |section: &SectionHeader| {
        file.section_name(section).is_ok_and(|name| name == "__nv_module_id")
    };
    let Some(section) = file.sections().iter().find(is_ids) else {
        return Ok(ModuleIds(Span::new(&[], 0)));
    };
    Ok(ModuleIds(Span::new(file.section_data(&section)?, section.offset)))
}

/// The ids of modules in order, each with its file offset: what [`module_ids`] gives.
#[derive(Clone, Debug)]
pub struct ModuleIds<'a>(Span<'a>);

impl<'a> Iterator for ModuleIds<'a> {
    type Item = (u64, Name<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.0.without_leading_zeros();
        let id = start.until_nul().unwrap_or(start.bytes());
        self.0 = start.tail(id.len() as u64)?;
        (!id.is_empty()).then_some((start.at(), Name(id)))
    }
}

impl FusedIterator for ModuleIds<'_> {}
