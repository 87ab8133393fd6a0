//! The relocations of a section, by its type.

use crate::error::Error;
#[cfg(not(all(feature = "packed-relocations", feature = "mips64")))]
use crate::error::ErrorKind;
use crate::file::File;
use crate::names::{EM_MIPS, SHT_REL, SHT_RELA};
#[cfg(feature = "packed-relocations")]
use crate::records::packed;
use crate::records::relocations::Relocations;
use crate::views::section::SectionHeader;

impl<'a> File<'a> {
    /// The relocations of a section of type `SHT_RELA`, `SHT_REL`, `SHT_RELR`, `SHT_CREL`, Android's or AArch64's forms of
    /// them; `None` for other types.
    ///
    /// `sh_info` is the section they apply to (in `ET_REL`), `sh_link` the symbol table they mean.
    ///
    /// # Errors
    /// As [`rows`](Self::rows); of packed forms [`ErrorKind::Outside`](crate::ErrorKind::Outside) or
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), as [`Crel::parse`](crate::Crel::parse) and
    /// [`AndroidPacked::parse`](crate::AndroidPacked::parse) say.
    #[inline]
    pub fn relocations(&self, section: &SectionHeader) -> Result<Option<Relocations<'a>>, Error> {
        let is_64_le = self.encoding().is_64() && !self.encoding().is_big_endian();
        let mips = is_64_le && self.header().machine == EM_MIPS;
        Ok(Some(match section.r#type {
            #[cfg(feature = "mips64")]
            SHT_RELA if mips => Relocations::Mips64ElRela(self.rows(section)?),
            #[cfg(feature = "mips64")]
            SHT_REL if mips => Relocations::Mips64ElRel(self.rows(section)?),
            #[cfg(not(feature = "mips64"))]
            SHT_RELA | SHT_REL if mips => return Err(feature_off("mips64", section)),
            SHT_RELA => Relocations::Rela(self.rows(section)?),
            SHT_REL => Relocations::Rel(self.rows(section)?),
            _ => return packed::relocations(self, *section),
        }))
    }
}

/// The relocations are of a form that is left out.
#[cfg(not(all(feature = "packed-relocations", feature = "mips64")))]
#[cold]
const fn feature_off(feature: &'static str, section: &SectionHeader) -> Error {
    Error { at: section.offset, kind: ErrorKind::FeatureOff(feature) }
}

/// Without the reader of packed forms they are known, to be told of.
#[cfg(not(feature = "packed-relocations"))]
mod packed {
    use super::feature_off;
    use crate::error::Error;
    use crate::file::File;
    use crate::names::{
        EM_AARCH64, SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL, SHT_ANDROID_RELA, SHT_ANDROID_RELR,
        SHT_CREL, SHT_RELR,
    };
    use crate::records::relocations::Relocations;
    use crate::views::section::SectionHeader;

    pub(super) fn relocations<'a>(
        file: &File<'a>,
        section: SectionHeader,
    ) -> Result<Option<Relocations<'a>>, Error> {
        match section.r#type {
            SHT_AARCH64_AUTH_RELR if file.header().machine != EM_AARCH64 => Ok(None),
            SHT_RELR
            | SHT_ANDROID_RELR
            | SHT_AARCH64_AUTH_RELR
            | SHT_CREL
            | SHT_ANDROID_REL
            | SHT_ANDROID_RELA => Err(feature_off("packed-relocations", &section)),
            _ => Ok(None),
        }
    }
}
