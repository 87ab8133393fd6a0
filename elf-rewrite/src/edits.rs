//! Ranges of a file, and what takes their place.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};

/// What stands in place of a range.
#[derive(Clone, Debug)]
pub(crate) enum With {
    /// Contents that the caller gave, by their number.
    Given(usize, u64),
    /// Tables that are written anew.
    Made(Vec<u8>),
    /// Bytes that the file has elsewhere.
    Kept(Range<u64>),
    Zeros(u64),
}

impl With {
    pub(crate) const fn size(&self) -> u64 {
        match self {
            Self::Given(_, size) | Self::Zeros(size) => *size,
            Self::Made(bytes) => bytes.len() as u64,
            Self::Kept(range) => range.end.saturating_sub(range.start),
        }
    }

    /// The same in a file of which this is a part that starts at `start`.
    fn behind(self, start: u64) -> Self {
        match self {
            Self::Kept(range) => {
                Self::Kept(range.start.saturating_add(start)..range.end.saturating_add(start))
            }
            other => other,
        }
    }
}

/// Ranges of a file, and what takes their place: as many bytes, or more, or fewer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits {
    /// From the start of the range to its end and what takes its place. At the file's end a range is empty.
    ranges: BTreeMap<u64, (u64, Vec<With>)>,
}

impl Edits {
    /// Puts something in place of a range.
    ///
    /// # Errors
    /// If it overlaps a range that is replaced already.
    pub(crate) fn replace(&mut self, range: Range<u64>, with: Vec<With>) -> Result<()> {
        let before = self.ranges.range(..range.end).next_back();
        let free = before.is_none_or(|(_, (end, _))| *end <= range.start)
            && !self.ranges.contains_key(&range.start);
        if !free {
            return Err(Error::new(range.start, ErrorKind::Overlap));
        }
        self.ranges.insert(range.start, (range.end, with));
        Ok(())
    }

    /// Puts zeros in place of a range.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub(crate) fn zeros(&mut self, range: Range<u64>) -> Result<()> {
        let size = range.end.saturating_sub(range.start);
        if size == 0 { Ok(()) } else { self.replace(range, vec![With::Zeros(size)]) }
    }

    /// Overwrites as many bytes as there are.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let end = at.saturating_add(bytes.len() as u64);
        self.replace(at..end, vec![With::Made(bytes.to_vec())])
    }

    /// Adds zeros, and then something, at the end of what a range has become.
    pub(crate) fn append(&mut self, at: u64, zeros: u64, new: With) {
        let (_, with) = self.ranges.entry(at).or_insert((at, Vec::new()));
        if zeros > 0 {
            with.push(With::Zeros(zeros));
        }
        with.push(new);
    }

    /// Takes over the changes to a part of the file that starts at `start`.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub(crate) fn include(&mut self, start: u64, part: Self) -> Result<()> {
        for (at, (end, with)) in part.ranges {
            let with = with.into_iter().map(|with| with.behind(start)).collect();
            self.replace(at.saturating_add(start)..end.saturating_add(start), with)?;
        }
        Ok(())
    }

    /// By how many bytes the file grows.
    pub(crate) fn growth(&self) -> i64 {
        self.ranges.iter().fold(0_i64, |sum, (start, (end, with))| {
            let new = with.iter().fold(0_u64, |sum, with| sum.saturating_add(with.size()));
            sum.saturating_add_unsigned(new).saturating_sub_unsigned(end.saturating_sub(*start))
        })
    }

    /// Whether all ranges, and what they are replaced by, lie in a file of so many bytes.
    pub(crate) fn check(&self, size: u64) -> Result<()> {
        let outside = |at: u64| Err(Error::outside(at, "a change"));
        for (start, (end, with)) in &self.ranges {
            if end < start || *end > size {
                return outside(*start);
            }
            for with in with {
                if let With::Kept(range) = with
                    && (range.end < range.start || range.end > size)
                {
                    return outside(range.start);
                }
            }
        }
        Ok(())
    }

    /// What a file of `size` bytes consists of now, from its start to its end: a range that is kept, and what follows it.
    pub(crate) fn parts(&self, size: u64) -> impl Iterator<Item = (Range<u64>, &[With])> {
        let ends = self.ranges.values().map(|(end, _)| *end);
        let starts = self.ranges.keys().copied().chain([size]);
        let kept = core::iter::once(0).chain(ends).zip(starts).map(|(from, to)| from..to);
        kept.zip(self.ranges.values().map(|(_, with)| with.as_slice()).chain([&[][..]]))
    }
}
