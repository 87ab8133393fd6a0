//! The relocations of a section of a packed form.

use crate::error::Error;
use crate::file::File;
use crate::names::{
    EM_AARCH64, SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL, SHT_ANDROID_RELA, SHT_ANDROID_RELR,
    SHT_CREL, SHT_RELR,
};
use crate::records::android::AndroidPacked;
use crate::records::crel::Crel;
use crate::records::relocations::Relocations;
use crate::records::relr::{self, Relr};
use crate::views::section::SectionHeader;

/// The relocations of a section of one of these types; `None` for other types.
#[inline(never)]
pub(super) fn relocations<'a>(
    file: &File<'a>,
    section: SectionHeader,
) -> Result<Option<Relocations<'a>>, Error> {
    let (machine, is_64) = (file.header().machine, file.encoding().is_64());
    Ok(Some(match section.r#type {
        SHT_RELR | SHT_ANDROID_RELR => {
            relative(file, &section, relr::relative_type(machine, is_64))?
        }
        SHT_AARCH64_AUTH_RELR if machine == EM_AARCH64 => {
            relative(file, &section, relr::AARCH64_AUTH_RELATIVE)?
        }
        SHT_CREL => {
            Relocations::Crel(Crel::parse(file.section_data(&section)?, is_64, section.offset)?)
        }
        SHT_ANDROID_REL | SHT_ANDROID_RELA => {
            // Each relocation has a place of its own, most of them in the file.
            let (data, limit) = (file.section_data(&section)?, file.bytes().len());
            let has_addends = section.r#type == SHT_ANDROID_RELA;
            Relocations::Android(AndroidPacked::parse(
                data,
                has_addends,
                is_64,
                limit,
                section.offset,
            )?)
        }
        _ => return Ok(None),
    }))
}

fn relative<'a>(
    file: &File<'a>,
    section: &SectionHeader,
    r#type: u32,
) -> Result<Relocations<'a>, Error> {
    let relr = Relr::new(file.rows(section)?, file.encoding().is_64(), r#type, section.offset)?;
    Ok(Relocations::Relr(relr))
}
