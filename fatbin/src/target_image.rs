//! The images in a section that is named for a target: a linked file has a table of them.

use crate::error::Error;
use crate::pointer::Pointers;
use crate::raw_llvm::{TARGET_IMAGES_SECTION, TargetImage};
use crate::span::Span;
use core::iter::FusedIterator;
use elf_core::File;

/// The images that a linked file has a table of (`.tgtimg`, by Intel's compilers for SYCL), in order: parts of the sections that are
/// [`Container::TargetSection`](crate::Container::TargetSection). None if there is no such table; an error is the last.
///
/// # Errors
/// If the table or its relocations leave the file.
pub fn target_images<'a>(file: &'a File<'a>) -> Result<TargetImages<'a>, Error> {
    let has_name = |index: u32| {
        let section = file.section(index).ok()?;
        let name = file.section_name(&section).unwrap_or_default();
        (name.as_bytes() == TARGET_IMAGES_SECTION).then_some((index, section))
    };
    let count = u32::try_from(file.sections().len()).unwrap_or(u32::MAX);
    let Some((index, section)) = (0..count).find_map(has_name) else {
        return Ok(TargetImages { file, rest: None });
    };
    let pointers = Pointers::open(file, index, section)?;
    let span = pointers.span()?;
    Ok(TargetImages { file, rest: Some((pointers, span)) })
}

/// The images of a table: what [`target_images`] gives.
#[derive(Clone, Debug)]
pub struct TargetImages<'a> {
    file: &'a File<'a>,
    rest: Option<(Pointers<'a>, Span<'a>)>,
}

impl<'a> Iterator for TargetImages<'a> {
    type Item = Result<Span<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (pointers, span) = self.rest.take().filter(|(_, span)| span.size() != 0)?;
        let image = image(self.file, &pointers, span);
        if image.is_ok() {
            let rest = span.tail(size_of::<TargetImage>() as u64);
            self.rest = rest.map(|rest| (pointers, rest));
        }
        Some(image)
    }
}

impl FusedIterator for TargetImages<'_> {}

/// The image of the row at the start of `row`.
fn image<'a>(
    file: &'a File<'a>,
    pointers: &Pointers<'a>,
    row: Span<'a>,
) -> Result<Span<'a>, Error> {
    const WHAT: &str = "target image";
    let raw: &TargetImage = row.row(WHAT, 0)?;
    let pointer = pointers.get(row.at(), raw.address.get())?;
    // one that leads nowhere is outside of the file
    let at = pointer.file_offset(file).unwrap_or(u64::MAX);
    Span::new(file.bytes(), 0).part(WHAT, at, raw.size.get())
}
