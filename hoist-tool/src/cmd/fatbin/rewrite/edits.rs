//! Changes to a file, written to another: what does not change is copied, zeros are holes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Range;

use anyhow::{Context as _, Result, ensure};

use super::Blob;
use crate::mapped::Mapped;

/// What stands in place of a range.
#[derive(Clone, Debug)]
enum With {
    Bytes(Blob),
    Zeros(u64),
}

/// Ranges of a file, and what takes their place: as many bytes, or more, or fewer.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// From the start of the range to its end and what takes its place. At the file's end a range is empty.
    ranges: BTreeMap<u64, (u64, Vec<With>)>,
}

impl Edits {
    /// Puts bytes in place of a range.
    ///
    /// # Errors
    /// If it overlaps a range that is replaced already.
    pub fn replace(&mut self, range: Range<u64>, bytes: impl Into<Blob>) -> Result<()> {
        self.insert(range, With::Bytes(bytes.into()))
    }

    /// Puts zeros in place of a range.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn zeros(&mut self, range: Range<u64>) -> Result<()> {
        let size = range.end.saturating_sub(range.start);
        if size == 0 { Ok(()) } else { self.insert(range, With::Zeros(size)) }
    }

    /// Overwrites as many bytes as there are.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.replace(at..at.saturating_add(bytes.len() as u64), bytes.to_vec())
    }

    /// Adds bytes, or zeros, at the end of what a range has become.
    pub(super) fn append(&mut self, at: u64, zeros: u64, bytes: impl Into<Blob>) {
        let (_, with) = self.ranges.entry(at).or_insert((at, Vec::new()));
        if zeros > 0 {
            with.push(With::Zeros(zeros));
        }
        with.push(With::Bytes(bytes.into()));
    }

    fn insert(&mut self, range: Range<u64>, with: With) -> Result<()> {
        let before = self.ranges.range(..range.end).next_back();
        let free = before.is_none_or(|(_, (end, _))| *end <= range.start)
            && !self.ranges.contains_key(&range.start);
        ensure!(free, "two changes to the bytes at offset {:#x}", range.start);
        self.ranges.insert(range.start, (range.end, vec![with]));
        Ok(())
    }

    /// Takes over the changes to a part of the file that starts at `start`.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub(super) fn include(&mut self, start: u64, part: Self) -> Result<()> {
        for (at, (end, with)) in part.ranges {
            let at = at.saturating_add(start);
            let mut with = with.into_iter();
            let Some(first) = with.next() else { continue };
            self.insert(at..end.saturating_add(start), first)?;
            if let Some((_, all)) = self.ranges.get_mut(&at) {
                all.extend(with);
            }
        }
        Ok(())
    }

    /// By how many bytes the file grows.
    #[must_use]
    pub fn growth(&self) -> i64 {
        let size = |with: &With| match with {
            With::Bytes(bytes) => bytes.len() as u64,
            With::Zeros(size) => *size,
        };
        self.ranges.iter().fold(0_i64, |sum, (start, (end, with))| {
            let new: u64 = with.iter().map(size).sum();
            sum.saturating_add_unsigned(new).saturating_sub_unsigned(end.saturating_sub(*start))
        })
    }

    /// Writes the changed file, of which little is in memory at a time.
    ///
    /// # Errors
    /// If that fails, or a range leaves `file`.
    pub fn write(&self, file: &Mapped, out: &mut File) -> Result<()> {
        let mut at = 0;
        for (start, (end, with)) in &self.ranges {
            copy(file, at..*start, out).context("changes overlap")?;
            for with in with {
                match with {
                    With::Bytes(bytes) => {
                        out.write_all(bytes)?;
                        bytes.rest();
                    }
                    With::Zeros(size) => {
                        out.seek(SeekFrom::Current(i64::try_from(*size)?))?;
                    }
                }
            }
            at = *end;
        }
        copy(file, at..file.bytes().len() as u64, out).context("a change leaves the file")?;
        let size = out.stream_position()?;
        Ok(out.set_len(size)?)
    }
}

/// Writes a range of a file piece by piece.
fn copy(file: &Mapped, range: Range<u64>, out: &mut File) -> Result<()> {
    const PIECE: usize = 8 << 20;
    let part = usize::try_from(range.start)?..usize::try_from(range.end)?;
    let bytes = file.bytes().get(part).context("no such bytes")?;
    file.reads(range.start..range.start.saturating_add(PIECE as u64));
    for (at, piece) in (range.start..).step_by(PIECE).zip(bytes.chunks(PIECE)) {
        let end = at.saturating_add(piece.len() as u64);
        file.reads(end..range.end.min(end.saturating_add(PIECE as u64)));
        out.write_all(piece)?;
        file.done_with(at..end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn bytes_zeros_cuts_and_more() {
        let mut edits = Edits::default();
        edits.put(1, b"XY").unwrap();
        edits.zeros(4..6).unwrap();
        edits.replace(6..8, Vec::new()).unwrap();
        edits.append(10, 2, b"end".to_vec());
        assert!(edits.put(2, b"?").is_err() && edits.zeros(5..9).is_err());
        let mut file = tempfile::tempfile().unwrap();
        edits.write(&Mapped::of(b"0123456789".to_vec()), &mut file).unwrap();
        let mut written = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut written).unwrap();
        assert_eq!(written, b"0XY3\0\089\0\0end");
        assert_eq!(edits.growth(), 3);
    }
}
