//! Values of 64 bits: extra fields of members that have them (APPNOTE 4.5.3), and the end of a directory that has them (4.3.14, 4.3.15).

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::structs::{Central, END, END64, End, End64, LOCATOR, Local, Locator, at, range};

/// The extra field.
const FIELD: u16 = 1;
/// The version of the format that has it.
const VERSION: u16 = 45;
/// In place of a value that stands in the extra field, or at the end of the directory of 64 bits.
const ELSEWHERE: u32 = u32::MAX;

/// What is known of a member, in the order of the extra field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) size: u64,
    pub(super) packed: u64,
    /// Where its local header is.
    pub(super) offset: u64,
}

/// Where a directory is, and what ends it.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) count: u64,
    /// Its end of 64 bits, up to what says where that is.
    wide: Option<Range<u64>>,
    /// Its end of 32 bits.
    end: u64,
}

/// A value as a field of 32 bits has it: whether it fits.
fn short(value: u64, is_elsewhere: bool) -> (U32, bool) {
    let fits = u32::try_from(value).ok().filter(|value| *value != ELSEWHERE && !is_elsewhere);
    (fits.unwrap_or(ELSEWHERE).into(), fits.is_some())
}

/// The extra field with values of 64 bits: where it is, with its header of four bytes.
fn found(extra: &[u8]) -> Option<Range<usize>> {
    let mut start = 0_usize;
    loop {
        let [a, b, c, d] = *extra.get(start..)?.first_chunk()?;
        let size = usize::from(u16::from_le_bytes([c, d]));
        let end = start.checked_add(4)?.checked_add(size)?;
        extra.get(start..end)?;
        if u16::from_le_bytes([a, b]) == FIELD {
            return Some(start..end);
        }
        start = end;
    }
}

/// Extra fields with these values in place of others of 64 bits, or none if there are none.
fn replaced(extra: &[u8], values: &[u64]) -> Result<Vec<u8>> {
    let mut new = match found(extra) {
        None => extra.to_vec(),
        Some(old) => {
            let kept = [extra.get(..old.start), extra.get(old.end..)];
            kept.into_iter().flatten().flatten().copied().collect()
        }
    };
    if !values.is_empty() {
        new.extend(FIELD.to_le_bytes());
        new.extend(u16::try_from(values.len().saturating_mul(8))?.to_le_bytes());
        values.iter().for_each(|value| new.extend(value.to_le_bytes()));
    }
    Ok(new)
}

impl Values {
    /// Those of a member, by its record in the directory and the extra fields of that.
    ///
    /// # Errors
    /// If one of 64 bits is not there.
    pub(super) fn of(central: &Central, extra: &[u8]) -> Result<Self> {
        let field = found(extra).and_then(|at| extra.get(at)?.get(4..));
        let mut rest = field.unwrap_or_default();
        let mut value = |short: U32| {
            if short != ELSEWHERE {
                return Ok(u64::from(short.get()));
            }
            let read = U64::read_from_prefix(rest).ok();
            let (value, behind) = read.context("has no value of 64 bits where one should be")?;
            rest = behind;
            anyhow::Ok(value.get())
        };
        Ok(Self {
            size: value(central.size)?,
            packed: value(central.packed)?,
            offset: value(central.offset)?,
        })
    }

    /// Writes these into a record of the directory; gives its extra fields. Those of a member that is as it was stay where they are.
    ///
    /// # Errors
    /// If the fields would be too large.
    pub(super) fn put(self, central: &mut Central, extra: &[u8], is_new: bool) -> Result<Vec<u8>> {
        let was = [central.size, central.packed, central.offset].map(|short| short == ELSEWHERE);
        let [size, packed, offset] = was;
        let (keep_size, keep_packed) = (size && !is_new, packed && !is_new);
        let (mut wide, mut is) = (Vec::new(), Vec::new());
        for (place, value, is_elsewhere) in [
            (&mut central.size, self.size, keep_size),
            (&mut central.packed, self.packed, keep_packed),
            (&mut central.offset, self.offset, offset),
        ] {
            let (value_there, fits) = short(value, is_elsewhere);
            *place = value_there;
            is.push(!fits);
            wide.extend((!fits).then_some(value));
        }
        if is != was {
            if !wide.is_empty() {
                central.needed = central.needed.get().max(VERSION).into();
            }
            let new = replaced(extra, &wide)?;
            central.extra = u16::try_from(new.len())?.into();
            return Ok(new);
        }
        let mut new = extra.to_vec();
        let field = found(extra).and_then(|at| new.get_mut(at)?.get_mut(4..));
        let places = field.unwrap_or_default().chunks_exact_mut(8);
        places.zip(&wide).for_each(|(place, value)| place.copy_from_slice(&value.to_le_bytes()));
        Ok(new)
    }

    /// Writes sizes into a local header; gives its extra fields.
    ///
    /// # Errors
    /// If the fields would be too large.
    pub(super) fn put_local(self, local: &mut Local, extra: &[u8]) -> Result<Vec<u8>> {
        // both are there, or none
        let is_wide = [self.size, self.packed].iter().any(|value| !short(*value, false).1);
        (local.size, local.packed) = (short(self.size, is_wide).0, short(self.packed, is_wide).0);
        let wide: &[u64] = if is_wide { &[self.size, self.packed] } else { &[] };
        if is_wide {
            local.needed = local.needed.get().max(VERSION).into();
        }
        let new = replaced(extra, wide)?;
        local.extra = u16::try_from(new.len())?.into();
        Ok(new)
    }

    /// Whether sizes behind the member's data have 64 bits, by the extra fields of its local header.
    pub(super) fn is_wide_behind(self, extra: &[u8]) -> bool {
        found(extra).is_some()
            || [self.size, self.packed].iter().any(|value| !short(*value, false).1)
    }
}

impl Directory {
    /// That of a file, by where its end of 32 bits is.
    ///
    /// # Errors
    /// If it is damaged, or bytes stand between its parts.
    pub(super) fn of(bytes: &[u8], end: u64) -> Result<Self> {
        let what = "the end of the directory";
        let last: End = at(bytes, end, what)?;
        ensure!(last.signature == END, "{what} at {end:#x} is none");
        let before = end.checked_sub(size_of::<Locator>() as u64);
        let locator = before.map(|before| at::<Locator>(bytes, before, what)).transpose()?;
        let locator = before.zip(locator).filter(|(_, locator)| locator.signature == LOCATOR);
        let directory = match locator {
            None => Self {
                start: last.offset.get().into(),
                size: last.size.get().into(),
                count: last.count.get().into(),
                wide: None,
                end,
            },
            Some((before, locator)) => {
                let start = locator.offset.get();
                let wide: End64 = at(bytes, start, what)?;
                let behind = start.checked_add(12).and_then(|at| at.checked_add(wide.rest.get()));
                let is_whole = wide.signature == END64
                    && behind == Some(before)
                    && before.saturating_sub(start) >= size_of::<End64>() as u64;
                ensure!(
                    is_whole,
                    "{what} of 64 bits is not at {start:#x}, or bytes stand behind it"
                );
                Self {
                    start: wide.offset.get(),
                    size: wide.size.get(),
                    count: wide.count.get(),
                    wide: Some(start..before),
                    end,
                }
            }
        };
        let behind = directory.start.checked_add(directory.size);
        ensure!(behind == Some(directory.end()), "has bytes before or between its parts");
        Ok(directory)
    }

    /// Where the last member's record ends.
    pub(super) fn end(&self) -> u64 {
        self.wide.as_ref().map_or(self.end, |wide| wide.start)
    }

    /// Writes what ends a directory of this size that begins at `start`, up to the comment of the file; gives where that was in the old one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write_end(
        &self,
        bytes: &[u8],
        (start, size): (u64, u64),
        out: &mut File,
    ) -> Result<u64> {
        let what = "the end of the directory";
        let mut end: End = at(bytes, self.end, what)?;
        let was = [end.size, end.offset].map(|value| self.wide.is_some() && value == ELSEWHERE);
        let ((short_size, is_small), (offset, is_near)) =
            (short(size, was[0]), short(start, was[1]));
        (end.size, end.offset) = (short_size, offset);
        let new = End64 {
            signature: END64.into(),
            rest: (size_of::<End64>() as u64 - 12).into(),
            made_by: VERSION.into(),
            needed: VERSION.into(),
            disk: U32::ZERO,
            directory_disk: U32::ZERO,
            count_here: self.count.into(),
            count: self.count.into(),
            size: U64::ZERO,
            offset: U64::ZERO,
        };
        let wide = match &self.wide {
            Some(old) => {
                let more = old.start + size_of::<End64>() as u64..old.end;
                Some((at(bytes, old.start, what)?, range(bytes, more)?))
            }
            None => (!is_small || !is_near).then_some((new, &[][..])),
        };
        if let Some((mut wide, more)) = wide {
            (wide.size, wide.offset) = (size.into(), start.into());
            out.write_all(wide.as_bytes())?;
            out.write_all(more)?;
            let offset = start.checked_add(size).context("is too large")?.into();
            let signature = LOCATOR.into();
            let locator = Locator { signature, disk: U32::ZERO, offset, disks: U32::new(1) };
            out.write_all(locator.as_bytes())?;
        }
        out.write_all(end.as_bytes())?;
        Ok(self.end + size_of::<End>() as u64)
    }
}

/// Whether a record is of a member that is in this file, not on another disk.
pub(super) fn is_here(disk: U16) -> bool {
    disk == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Seek as _};

    /// A field that is not ours.
    const OTHER: &[u8] = &[0xfe, 0xca, 3, 0, b'a', b'b', b'c'];

    const LARGE: u64 = 5 << 32;

    fn central(values: Values, extra: &[u8]) -> (Central, Vec<u8>) {
        let mut central = Central::read_from_bytes(&[0; size_of::<Central>()]).unwrap();
        let extra = values.put(&mut central, extra, true).unwrap();
        (central, extra)
    }

    #[test]
    fn values_stand_where_they_fit() {
        for (size, packed, offset, count) in [
            (1, 2, 3, 0),
            (LARGE, 2, 3, 1),
            (LARGE, LARGE + 1, 3, 2),
            (1, 2, LARGE, 1),
            (LARGE, LARGE + 1, LARGE + 2, 3),
            (u64::from(u32::MAX), 2, u64::from(u32::MAX) - 1, 1),
        ] {
            let values = Values { size, packed, offset };
            let (mut record, extra) = central(values, OTHER);
            let field = if count == 0 { 0 } else { 4 + 8 * count };
            assert_eq!(extra.len(), OTHER.len() + field);
            assert_eq!(usize::from(record.extra.get()), if count == 0 { 0 } else { extra.len() });
            assert_eq!(Values::of(&record, &extra).unwrap(), values);
            // what stays is the same to the byte, and a smaller offset stands where the larger one was
            let mut again = record;
            assert_eq!(values.put(&mut again, &extra, false).unwrap(), extra);
            assert_eq!(again.as_bytes(), record.as_bytes());
            let nearer = Values { offset: offset / 2, ..values };
            assert_eq!(nearer.put(&mut again, &extra, false).unwrap().len(), extra.len());
            assert_eq!(record.size, again.size);
            // a member that became small needs no field for its sizes
            let small = Values { size: 7, packed: 6, offset };
            let extra = small.put(&mut record, &extra, true).unwrap();
            assert_eq!(Values::of(&record, &extra).unwrap(), small);
            assert!(extra.starts_with(OTHER) && extra.len() <= OTHER.len() + 12);
            for end in 0..extra.len() {
                let _ = Values::of(&record, &extra[..end]);
            }
        }
        let (record, _) = central(Values { size: LARGE, packed: 1, offset: 1 }, &[]);
        assert!(Values::of(&record, OTHER).is_err());
    }

    #[test]
    fn local_headers_have_both_sizes() {
        for (size, packed) in [(1, 2), (LARGE, 2), (LARGE, LARGE)] {
            let mut local = Local::read_from_bytes(&[0; size_of::<Local>()]).unwrap();
            let values = Values { size, packed, offset: LARGE };
            let extra = values.put_local(&mut local, OTHER).unwrap();
            let is_wide = size == LARGE;
            assert_eq!(extra.len(), OTHER.len() + if is_wide { 20 } else { 0 });
            assert_eq!(local.needed, if is_wide { VERSION } else { 0 });
            assert_eq!(values.is_wide_behind(&extra), is_wide);
            assert_eq!((local.size == ELSEWHERE, local.packed == ELSEWHERE), (is_wide, is_wide));
        }
    }

    #[test]
    fn an_end_has_64_bits_where_it_needs_them() {
        let mut end = End::read_from_bytes(&[0; size_of::<End>()]).unwrap();
        (end.signature, end.count) = (END.into(), 0.into());
        let small = end.as_bytes().to_vec();
        let directory = Directory::of(&small, 0).unwrap();
        let written = |directory: &Directory, bytes: &[u8], start: u64| {
            let mut file = tempfile::tempfile().unwrap();
            directory.write_end(bytes, (start, 0), &mut file).unwrap();
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(written(&directory, &small, 0), small);
        let large = written(&directory, &small, LARGE);
        assert_eq!(large.len(), 56 + 20 + small.len());
        // the file is not so large
        assert!(Directory::of(&large, 76).is_err());
        let mut wide: End64 = at(&large, 0, "").unwrap();
        wide.offset = U64::ZERO;
        let mut locator: Locator = at(&large, 56, "").unwrap();
        locator.offset = U64::ZERO;
        let bytes = [wide.as_bytes(), locator.as_bytes(), &large[76..]].concat();
        let directory = Directory::of(&bytes, 76).unwrap();
        assert_eq!((directory.start, directory.end()), (0, 0));
        assert_eq!(written(&directory, &bytes, 0), bytes);
        assert_eq!(written(&directory, &bytes, LARGE), large);
        for place in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[place] ^= 0xff;
            let _ = Directory::of(&bytes, 76);
        }
    }
}
