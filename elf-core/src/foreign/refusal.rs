//! The errors of files that are something else.

use super::Foreign;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::SHT_PROGBITS;
use crate::views::section::{SectionFlags, SectionHeader};

impl Foreign {
    /// The error of a file that is not read, with what it is instead of an ELF file, if that is known.
    #[must_use]
    pub fn explain(bytes: &[u8], error: Error) -> Error {
        match (error.kind, Self::of(bytes)) {
            (ErrorKind::NotElf, Some(foreign)) => {
                Error { at: error.at, kind: ErrorKind::Foreign(foreign) }
            }
            _ => error,
        }
    }

    /// Refuses an object without machine code: GCC's `-flto` without `-ffat-lto-objects`.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] with [`SlimLto`](Self::SlimLto).
    pub fn check_lto(file: &File<'_>) -> Result<(), Error> {
        let mut sections = file.sections().iter();
        sections.find_map(|section| Self::slim_lto(file, &section)).map_or(Ok(()), Err)
    }

    /// The error of an object without machine code if this is the section that says so, for those who look at all sections anyway.
    #[must_use]
    pub fn slim_lto(file: &File<'_>, section: &SectionHeader) -> Option<Error> {
        // most sections are loaded, or belong to one that is: their names are not read
        let is_loaded = section.flags.contains(SectionFlags::ALLOC);
        if is_loaded || section.r#type != SHT_PROGBITS {
            return None;
        }
        let name = file.section_name(section).unwrap_or_default();
        if !name.as_bytes().starts_with(b".gnu.lto_.lto.") {
            return None;
        }
        // since GCC 10; two numbers of the version come first (`struct lto_section` of lto-streamer.h)
        let data = file.section_data(section).unwrap_or_default();
        let is_slim = data.get(4).is_some_and(|&slim| slim != 0);
        is_slim.then_some(Error { at: section.offset, kind: ErrorKind::Foreign(Self::SlimLto) })
    }
}
