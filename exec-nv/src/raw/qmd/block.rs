//! A block that is being filled.

use super::field::{Bits, Field, MAX_SIZE, Version};
use crate::raw::error::Error;

/// Blocks lie at multiples of this many bytes, below 2^40: `SEND_PCAS_A` takes the address without its low 8 bits.
pub const ALIGNMENT: u64 = 256;

/// A block that is being filled. New ones are zero but for their version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qmd {
    version: &'static Version,
    bytes: [u8; MAX_SIZE],
}

impl Qmd {
    /// A block of zeros that names its version.
    ///
    /// # Errors
    /// None for the versions of this crate: their fields take their own numbers.
    pub fn new(version: &'static Version) -> Result<Self, Error> {
        let mut qmd = Self { version, bytes: [0; MAX_SIZE] };
        qmd.set(Field::MajorVersion, version.major)?;
        Ok(qmd)
    }

    /// What it is laid out as.
    #[must_use]
    pub const fn version(&self) -> &'static Version {
        self.version
    }

    /// The block as the engine reads it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.version.size).unwrap_or(&self.bytes)
    }

    /// Sets a field.
    ///
    /// # Errors
    /// [`Error::NoField`] if this version lacks it, [`Error::DoesNotFit`]; the block is then as it was.
    pub fn set(&mut self, field: Field, value: u64) -> Result<&mut Self, Error> {
        self.set_at(field, 0, value)
    }

    /// Sets a field of which there are several: banks, releases.
    ///
    /// # Errors
    /// As [`set`](Self::set); [`Error::NoField`] also for an `index` that the version does not have.
    pub fn set_at(&mut self, field: Field, index: u32, value: u64) -> Result<&mut Self, Error> {
        let bits = self.bits(field, index)?;
        if bits.width() < 64 && value >> bits.width() != 0 {
            return Err(Error::DoesNotFit { field, value, bits: bits.width() });
        }
        for bit in 0..bits.width() {
            let at = bits.low.saturating_add(bit);
            if let Some(byte) = self.bytes.get_mut(at as usize / 8) {
                let mask = 1_u8 << (at % 8);
                let is_set = value >> bit & 1 == 1;
                *byte = if is_set { *byte | mask } else { *byte & !mask };
            }
        }
        Ok(self)
    }

    /// What a field holds.
    ///
    /// # Errors
    /// [`Error::NoField`].
    pub fn get(&self, field: Field, index: u32) -> Result<u64, Error> {
        let bits = self.bits(field, index)?;
        Ok((0..bits.width()).fold(0, |value, bit| {
            let at = bits.low.saturating_add(bit);
            let byte = self.bytes.get(at as usize / 8).copied().unwrap_or(0);
            value | u64::from(byte >> (at % 8) & 1) << bit
        }))
    }

    fn bits(&self, field: Field, index: u32) -> Result<Bits, Error> {
        let missing = Error::NoField { field, index, version: self.version.major };
        self.version.bits(field, index).ok_or(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{V3, V4, V5};
    use super::*;

    const VERSIONS: [&Version; 3] = [&V3, &V4, &V5];

    #[test]
    fn every_field_gives_back_what_was_put_and_moves_nothing_else() {
        for version in VERSIONS {
            for row in version.rows {
                for index in row.first..row.first + row.count {
                    let mut qmd = Qmd { version, bytes: [0; MAX_SIZE] };
                    let before = qmd.clone();
                    let bits = version.bits(row.field, index).unwrap();
                    let most = u64::MAX >> (64 - bits.width());
                    qmd.set_at(row.field, index, most).unwrap();
                    assert_eq!(qmd.get(row.field, index), Ok(most), "{:?}", row.field);
                    let changed: Vec<u32> = (0..MAX_SIZE as u32 * 8)
                        .filter(|&at| {
                            let bit = |qmd: &Qmd| qmd.bytes[at as usize / 8] >> (at % 8) & 1;
                            bit(&qmd) != bit(&before)
                        })
                        .collect();
                    assert_eq!(changed, (bits.low..=bits.high).collect::<Vec<_>>());
                    if bits.width() < 64 {
                        let kept = qmd.clone();
                        let error = qmd.set_at(row.field, index, most + 1).unwrap_err();
                        assert!(matches!(error, Error::DoesNotFit { .. }));
                        assert_eq!(qmd, kept, "an error leaves the block as it was");
                    }
                }
            }
        }
    }

    #[test]
    fn a_field_that_a_version_lacks_is_named() {
        let mut qmd = Qmd::new(&V3).unwrap();
        let error = qmd.set(Field::ClusterWidth, 1).unwrap_err();
        assert_eq!(error.to_string(), "QMD version 3 has no field ClusterWidth[0]");
        let error = qmd.set_at(Field::ConstantBankValid, 8, 1).unwrap_err();
        assert_eq!(error.to_string(), "QMD version 3 has no field ConstantBankValid[8]");
    }

    #[test]
    fn a_new_block_says_its_version_and_nothing_else() {
        for (version, size, byte) in
            [(&V3, 256, (72, 0x30)), (&V4, 384, (72, 0x40)), (&V5, 384, (58, 0x50))]
        {
            let qmd = Qmd::new(version).unwrap();
            assert_eq!(qmd.bytes().len(), size);
            let set: Vec<_> =
                qmd.bytes().iter().copied().enumerate().filter(|&(_, byte)| byte != 0).collect();
            assert_eq!(set, [byte]);
        }
    }
}
