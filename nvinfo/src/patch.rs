//! Changes in place: plans made from a cubin, applied to its bytes when nothing borrows them any more.

use crate::attribute::Attribute;
use crate::error::{Error, ErrorKind};
use crate::function::Function;
use crate::names::eiattr;
use crate::payload::Payload;
use crate::value::AttributeValue;

/// One number to be changed in place: little-endian, of one, two or four bytes.
///
/// ```
/// use nvinfo::{Cubin, Patch};
///
/// let mut bytes = include_bytes!("../../fixtures/cuda/kernels-13.5-sm_80.cubin").to_vec();
/// let cubin = Cubin::parse(&bytes)?;
/// let kernel = cubin.kernel("shared_memory".into()).expect("the kernel is there");
/// let patches = kernel.patch_registers(64)?;
/// Patch::apply_all(patches, &mut bytes)?;
///
/// let cubin = Cubin::parse(&bytes)?;
/// let kernel = cubin.kernel("shared_memory".into()).expect("it still is");
/// assert_eq!(kernel.resources()?.registers, Some(64));
/// # Ok::<(), nvinfo::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// File offset of the number.
    pub at: u64,
    /// Its size in bytes: 1, 2 or 4.
    pub size: u8,
    /// What is there.
    pub was: u32,
    /// What is to be there.
    pub value: u32,
}

impl Patch {
    fn place<'m>(&self, file: &'m mut [u8]) -> Result<&'m mut [u8], Error> {
        let outside = Error::new(self.at, ErrorKind::Outside { file: file.len() as u64 });
        let place = usize::try_from(self.at)
            .ok()
            .and_then(|at| file.get_mut(at..)?.get_mut(..self.size.into()));
        let place = place.ok_or(outside)?;
        let found = place.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        if found != self.was {
            return Err(Error::new(self.at, ErrorKind::Changed { expected: self.was, found }));
        }
        Ok(place)
    }

    /// Makes the change. On error the file is as it was.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] or [`ErrorKind::Changed`] if this is not the file that the patch was made for.
    pub fn apply(&self, file: &mut [u8]) -> Result<(), Error> {
        let place = self.place(file)?;
        place.iter_mut().zip(self.value.to_le_bytes()).for_each(|(byte, new)| *byte = new);
        Ok(())
    }

    /// Makes all of these changes, or none.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_all(
        patches: impl IntoIterator<Item = Self, IntoIter: Clone>,
        file: &mut [u8],
    ) -> Result<(), Error> {
        let patches = patches.into_iter();
        for patch in patches.clone() {
            patch.place(file)?;
        }
        for patch in patches {
            patch.apply(file)?;
        }
        Ok(())
    }

    fn new(at: u64, size: u8, was: u32, value: u32, what: &'static str) -> Result<Self, Error> {
        let limit = u32::MAX.unbounded_shr(32u32.saturating_sub(u32::from(size).saturating_mul(8)));
        if value > limit {
            let kind = ErrorKind::TooLarge { what, value: value.into(), limit: limit.into() };
            return Err(Error::new(at, kind));
        }
        Ok(Self { at, size, was, value })
    }
}

impl Attribute<'_> {
    /// Sets the attribute's number: a value of one or two bytes, or one of four if that is all of it.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] if the number does not fit; [`ErrorKind::NoPlace`] if the value is not one number.
    pub fn patch(&self, number: u32) -> Result<Patch, Error> {
        const WHAT: &str = "the attribute's value";
        match self.value {
            AttributeValue::Byte(was, _) => {
                Patch::new(self.value_at(), 1, was.into(), number, WHAT)
            }
            AttributeValue::Half(was) => Patch::new(self.value_at(), 2, was.into(), number, WHAT),
            AttributeValue::Bytes(bytes) if bytes.len() == 4 => self.patch_word(0, number),
            _ => Err(Error::new(self.at, ErrorKind::NoPlace { what: WHAT })),
        }
    }

    /// Sets the four bytes at `4 * index` of a value of bytes.
    ///
    /// # Errors
    /// [`ErrorKind::NoPlace`] if the value has no such bytes.
    pub fn patch_word(&self, index: u32, number: u32) -> Result<Patch, Error> {
        let offset = u64::from(index).saturating_mul(4);
        let word = match self.value {
            AttributeValue::Bytes(bytes) => {
                usize::try_from(index).ok().and_then(|index| bytes.as_chunks().0.get(index))
            }
            _ => None,
        };
        let was = word.copied().map(u32::from_le_bytes);
        let was = was.ok_or(Error::new(
            self.at,
            ErrorKind::NoPlace { what: "a word of the attribute's value" },
        ))?;
        Patch::new(self.value_at().saturating_add(offset), 4, was, number, "the attribute's value")
    }
}

impl Function<'_> {
    /// Sets the number of registers: in `.nv.info`, and up to `sm_89` in the section header too.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] above 255; [`ErrorKind::NoPlace`] if the file records no number; as
    /// [`resources`](Self::resources) if it is damaged.
    pub fn patch_registers(
        &self,
        count: u32,
    ) -> Result<impl Iterator<Item = Patch> + Clone + use<>, Error> {
        const WHAT: &str = "the register count";
        let header = self.section_header();
        let place = self.sh_info_at();
        let in_header = match self.cubin().target().has_registers_in_header()
            && !self.is_subroutine()
        {
            true => Some(Patch::new(place.saturating_add(3), 1, header.info >> 24, count, WHAT)?),
            false => None,
        };
        let in_info = match self.patch_symbol_attribute(eiattr::REGCOUNT, count) {
            Err(Error { kind: ErrorKind::NoPlace { .. }, .. }) if in_header.is_some() => None,
            other => Some(other?),
        };
        if count > 255 {
            return Err(Error::new(
                place,
                ErrorKind::TooLarge { what: WHAT, value: count.into(), limit: 255 },
            ));
        }
        Ok(in_info.into_iter().chain(in_header))
    }

    /// Sets what an attribute of the module says of this function: `FRAME_SIZE`, `MIN_STACK_SIZE`, `MAX_STACK_SIZE`,
    /// `REGCOUNT` of [`eiattr`]. [`patch_registers`](Self::patch_registers) is for the last.
    ///
    /// # Errors
    /// [`ErrorKind::NoPlace`] if there is no such attribute of this function; others if the file is damaged.
    pub fn patch_symbol_attribute(&self, attribute: u8, value: u32) -> Result<Patch, Error> {
        for row in self.cubin().attributes()? {
            let row = row?;
            match row.payload() {
                Payload::OfSymbol { symbol, .. }
                    if symbol == self.index() && row.number == attribute =>
                {
                    return row.patch_word(1, value);
                }
                _ => {}
            }
        }
        Err(Error::new(0, ErrorKind::NoPlace { what: name_of(attribute) }))
    }

    /// Sets one number of an attribute of this function.
    ///
    /// # Errors
    /// [`ErrorKind::NoPlace`] if there is no such attribute; [`ErrorKind::TooLarge`] if the number does not fit; others if the
    /// file is damaged.
    pub fn patch_attribute(&self, attribute: u8, number: u32) -> Result<Patch, Error> {
        self.find_attribute(attribute)?.patch(number)
    }

    /// Sets the most threads of a block, by dimension. The file must have such a limit already.
    ///
    /// # Errors
    /// As [`patch_attribute`](Self::patch_attribute).
    pub fn patch_max_threads(&self, threads: [u32; 3]) -> Result<[Patch; 3], Error> {
        let row = self.find_attribute(eiattr::MAX_THREADS)?;
        let [x, y, z] = threads;
        Ok([row.patch_word(0, x)?, row.patch_word(1, y)?, row.patch_word(2, z)?])
    }

    fn find_attribute(&self, attribute: u8) -> Result<Attribute<'_>, Error> {
        for row in self.attributes()? {
            let row = row?;
            if row.number == attribute {
                return Ok(row);
            }
        }
        Err(Error::new(0, ErrorKind::NoPlace { what: name_of(attribute) }))
    }

    /// File offset of `sh_info` of the section of the code.
    fn sh_info_at(&self) -> u64 {
        let (file, header) = (self.cubin().file(), self.cubin().file().header());
        let row = u64::from(self.section()).saturating_mul(header.section_header_size.into());
        let field = if file.encoding().is_64() { 44 } else { 28 };
        header.section_headers.saturating_add(row).saturating_add(field)
    }
}

fn name_of(attribute: u8) -> &'static str {
    crate::attribute_name(attribute).unwrap_or("an attribute without a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_checks_what_was_there() {
        let mut file = [1, 2, 3, 4, 5, 6];
        let patch = Patch { at: 1, size: 4, was: 0x0504_0302, value: 7 };
        patch.apply(&mut file).unwrap();
        assert_eq!(file, [1, 7, 0, 0, 0, 6]);
        let changed = ErrorKind::Changed { expected: 0x0504_0302, found: 7 };
        assert_eq!(patch.apply(&mut file), Err(Error::new(1, changed)));
        let outside = Patch { at: 3, ..patch };
        assert_eq!(outside.apply(&mut file), Err(Error::new(3, ErrorKind::Outside { file: 6 })));
    }

    #[test]
    fn all_or_nothing() {
        let mut file = [1, 2];
        let good = Patch { at: 0, size: 1, was: 1, value: 9 };
        let bad = Patch { at: 1, size: 1, was: 1, value: 9 };
        assert!(Patch::apply_all([good, bad], &mut file).is_err());
        assert_eq!(file, [1, 2]);
    }

    #[test]
    fn numbers_fit_their_format() {
        let byte =
            Attribute { at: 8, number: eiattr::NUM_BARRIERS, value: AttributeValue::Byte(1, 0) };
        assert_eq!(byte.patch(16), Ok(Patch { at: 10, size: 1, was: 1, value: 16 }));
        let limit = ErrorKind::TooLarge { what: "the attribute's value", value: 256, limit: 255 };
        assert_eq!(byte.patch(256), Err(Error::new(10, limit)));
        let flag = Attribute { at: 8, number: 4, value: AttributeValue::None(0) };
        assert!(matches!(flag.patch(1).unwrap_err().kind, ErrorKind::NoPlace { .. }));
    }
}
