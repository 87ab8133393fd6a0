//! The bytes of the image: sections copied, then relocated.

use super::Load;
use super::error::{LoadError, LoadErrorKind};
use super::resolve::Symbols;
use crate::Cuda;
use elf_core::names::{SHF_CUDA_MERCURY, SHT_NOBITS};
use elf_core::{Query, SectionHeader, SectionMut, apply};

impl Load<'_, '_> {
    /// Writes the image into `image`, to stand at device address `base`. All of its bytes are written, so that the same call
    /// gives the same bytes whatever was there.
    ///
    /// `answer` is asked for what the file does not have: undefined functions of the driver, texture headers, descriptors. A
    /// function's descriptor is its address unless `answer` knows better; a generic address is the plain one. Up to `sm_62` code has
    /// room for addresses of 32 bits only.
    ///
    /// # Errors
    /// [`LoadErrorKind::Base`] or [`LoadErrorKind::Image`] before anything is written; [`LoadErrorKind::Apply`] or
    /// [`LoadErrorKind::Elf`] with the image half written.
    pub fn write(
        &self,
        image: &mut [u8],
        base: u64,
        answer: &impl Fn(&Query) -> Option<u64>,
    ) -> Result<(), LoadError> {
        let refuse = |kind| Err(LoadError::new(0, kind));
        if base & self.alignment.wrapping_sub(1) != 0 || base.checked_add(self.size).is_none() {
            return refuse(LoadErrorKind::Base { base, alignment: self.alignment });
        }
        let found = image.len() as u64;
        let size = usize::try_from(self.size).ok();
        let Some(image) = size.and_then(|size| image.get_mut(..size)) else {
            return refuse(LoadErrorKind::Image { found, needed: self.size });
        };
        image.fill(0);
        for (index, section) in (0..u32::MAX).zip(self.file.sections()) {
            if section.r#type == SHT_NOBITS {
                continue;
            }
            let Some(place) = self.place(index, &section, image) else { continue };
            let data = self.file.section_data(&section).map_err(LoadError::elf(index))?;
            if let Some(data) = data.get(..place.len()) {
                place.copy_from_slice(data);
            }
        }
        for (index, section) in (0..u32::MAX).zip(self.file.sections()) {
            self.relocate(index, &section, image, base, answer)?;
        }
        Ok(())
    }

    /// The bytes of a section in the image.
    fn place<'m>(
        &self,
        index: u32,
        section: &SectionHeader,
        image: &'m mut [u8],
    ) -> Option<&'m mut [u8]> {
        let start = usize::try_from(self.section(index)?).ok()?;
        image.get_mut(start..)?.get_mut(..usize::try_from(section.size).ok()?)
    }

    fn relocate(
        &self,
        index: u32,
        section: &SectionHeader,
        image: &mut [u8],
        base: u64,
        answer: &impl Fn(&Query) -> Option<u64>,
    ) -> Result<(), LoadError> {
        if section.flags.bits() & SHF_CUDA_MERCURY != 0 {
            return Ok(());
        }
        let elf = LoadError::elf(index);
        let Some(rows) = self.file.relocations(section).map_err(&elf)? else { return Ok(()) };
        let target = self.file.section(section.info).map_err(&elf)?;
        let Some(offset) = self.section(section.info) else { return Ok(()) };
        let Some(bytes) = self.place(section.info, &target, image) else { return Ok(()) };
        let mut place = SectionMut { bytes, address: base.wrapping_add(offset), big_endian: false };
        let symbols = Symbols { load: self, base, answer };
        rows.try_for_each(|record| apply::<Cuda>(&record, &mut place, &symbols))
            .map_err(|error| LoadError::new(section.info, LoadErrorKind::Apply(error)))
    }
}
