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

    /// Puts something in front of what takes the place of the range that starts at `at`, or there between two bytes.
    ///
    /// # Errors
    /// If `at` lies inside a range that is replaced.
    pub(crate) fn insert(&mut self, at: u64, new: Vec<With>) -> Result<()> {
        let before = self.ranges.range(..at).next_back();
        if before.is_some_and(|(_, (end, _))| *end > at) {
            return Err(Error::new(at, ErrorKind::Overlap));
        }
        let (_, with) = self.ranges.entry(at).or_insert((at, Vec::new()));
        with.splice(0..0, new);
        Ok(())
    }

    /// Takes those of a range away: offsets, and the bytes that are to stand there.
    pub(crate) fn take(&mut self, range: &Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut behind = self.ranges.split_off(&range.start);
        let mut rest = behind.split_off(&range.end);
        self.ranges.append(&mut rest);
        let mut taken = Vec::new();
        for (at, (_, with)) in behind {
            let bytes = with.into_iter().map(|with| match with {
                With::Made(bytes) => bytes,
                _ => Vec::new(),
            });
            taken.push((at, bytes.flatten().collect()));
        }
        taken
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
