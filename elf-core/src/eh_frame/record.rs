//! The records that a table consists of.

use super::error::{Error, ErrorKind};
use super::reader::Reader;

/// A record of the table: an entry of either kind.
pub(super) struct Record<'a> {
    /// Its offset.
    pub(super) at: u64,
    /// 0, or the distance from this word back to the CIE.
    pub(super) id: u32,
    /// What follows the word.
    pub(super) content: Reader<'a>,
    /// The offset of the next record.
    pub(super) end: u64,
}

impl<'a> Record<'a> {
    /// The record at an offset; nothing at the end.
    pub(super) fn at(bytes: &'a [u8], at: u64) -> Result<Option<Self>, Error> {
        let error = |kind| Error { at, kind };
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let Some((length, content)) = rest.split_first_chunk::<4>() else {
            // the unwinder reads a length here, of which the zeros behind the section are a part
            return match rest.iter().find(|byte| **byte != 0) {
                Some(_) => Err(error(ErrorKind::Outside { what: "length" })),
                None => Ok(None),
            };
        };
        let length = u32::from_le_bytes(*length);
        let left = content.len() as u64;
        let content = match length {
            0 => return Ok(None),
            0xffff_fff0.. => return Err(error(ErrorKind::LongLength { length })),
            _ => usize::try_from(length).ok().and_then(|length| content.get(..length)),
        };
        let Some((id, content)) = content.and_then(<[u8]>::split_first_chunk::<4>) else {
            return Err(error(ErrorKind::Length { length, left }));
        };
        let end = at.saturating_add(4).saturating_add(length.into());
        let content = Reader::new(content, end);
        Ok(Some(Self { at, id: u32::from_le_bytes(*id), content, end }))
    }
}
