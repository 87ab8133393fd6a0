//! Where a decision is made: a record among its neighbours, and the bytes that it is for.

use crate::records::relocations::Relocations;
use crate::views::record::Record;
use core::cell::Cell;

/// A record, the others of its section, and the section's bytes as the file has them.
#[derive(Clone, Copy)]
pub struct Site<'b> {
    /// The bytes of the section; none of one that holds only zeros.
    pub bytes: &'b [u8],
    /// The record.
    pub record: &'b Record,
    pub(crate) neighbours: Neighbours<'b>,
}

/// Where the other records are.
#[derive(Clone, Copy)]
pub(crate) enum Neighbours<'b> {
    /// In a table, the record at this index.
    Table(&'b Relocations<'b>, usize, &'b Steps),
    /// In a packed form; the record that follows is known.
    Packed(&'b Relocations<'b>, Option<&'b Record>, &'b Steps),
    /// In a slice, the record at this index.
    Slice(&'b [Record], usize),
}

/// How many records may still be read one after the other to find others: a file that makes every search a long one ends it.
pub(crate) struct Steps(Cell<u64>);

impl Steps {
    /// For a section of so many records.
    pub(crate) const fn new(records: usize) -> Self {
        Self(Cell::new((records as u64).saturating_mul(64).saturating_add(4096)))
    }

    fn take(&self) -> Option<()> {
        self.0.set(self.0.get().checked_sub(1)?);
        Some(())
    }
}

impl<'b> Site<'b> {
    /// Record `index` of `records`, for code that no file has; `None` if there is no such record.
    #[must_use]
    pub fn new(bytes: &'b [u8], records: &'b [Record], index: usize) -> Option<Self> {
        let record = records.get(index)?;
        Some(Self { bytes, record, neighbours: Neighbours::Slice(records, index) })
    }

    /// The `N` bytes that start `before` bytes before the place.
    #[must_use]
    pub fn around<const N: usize>(&self, before: u64) -> Option<&'b [u8; N]> {
        let start = usize::try_from(self.record.offset.checked_sub(before)?).ok()?;
        self.bytes.get(start..)?.first_chunk::<N>()
    }

    /// The record that follows in the table.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<Record> {
        match self.neighbours {
            Neighbours::Table(records, index, _) => in_table(records, index.checked_add(1)?),
            Neighbours::Packed(_, next, _) => next.copied(),
            Neighbours::Slice(records, index) => records.get(index.checked_add(1)?).copied(),
        }
    }

    /// The record so many behind this one in the table; `None` in packed forms.
    #[must_use]
    pub fn following(&self, count: usize) -> Option<Record> {
        match self.neighbours {
            Neighbours::Table(_, index, _) | Neighbours::Slice(_, index) => {
                self.at(index.checked_add(count)?)
            }
            Neighbours::Packed(..) => None,
        }
    }

    /// Record `index`; `None` of packed forms, which would have to be read up to there.
    fn at(&self, index: usize) -> Option<Record> {
        match self.neighbours {
            Neighbours::Table(records, ..) => in_table(records, index),
            Neighbours::Slice(records, _) => records.get(index).copied(),
            Neighbours::Packed(..) => None,
        }
    }

    /// Index of the first record that is not before `offset`, of records that are sorted.
    fn first_at(&self, offset: u64) -> usize {
        let count = match self.neighbours {
            Neighbours::Table(records, ..) => records.len(),
            Neighbours::Slice(records, _) => records.len(),
            Neighbours::Packed(..) => 0,
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match self.at(middle) {
                Some(record) if record.offset < offset => low = middle.saturating_add(1),
                _ => high = middle,
            }
        }
        low
    }

    /// The record that follows `record` in a table sorted by offset, if `record` is one of the first 16 at its offset: the same answer
    /// wherever it is asked for. `None` in packed forms.
    #[must_use]
    pub fn next_of(&self, record: &Record) -> Option<Record> {
        let first = self.first_at(record.offset);
        let mut indices = first..first.saturating_add(16);
        let found = indices.find(|index| self.at(*index) == Some(*record))?;
        self.at(found.checked_add(1)?)
    }

    /// The record at `offset` of one of these types; `None` if there are several that differ. Sorted tables are searched in halves; others
    /// from the start, as long as all searches of a section together read no more than 64 times its records.
    #[must_use]
    pub fn find(&self, offset: u64, types: &[u32]) -> Option<Record> {
        // most of them, in fewer steps; the search below finds them as well, where code is scarcer than time
        if cfg!(target_pointer_width = "64")
            && let Some(found) = self.find_shortly_before(offset, types)
        {
            return found.record.filter(|_| found.is_single);
        }
        let mut found = Candidate { offset, types, record: None, is_single: true };
        let mut index = self.first_at(offset);
        while let Some(record) = self.at(index).filter(|record| record.offset == offset)
            && self.take_step()
        {
            found.look_at(&record);
            index = index.wrapping_add(1);
        }
        if found.record.is_none() {
            let mut look_at = |record: Record| {
                let is_left = self.take_step();
                if is_left {
                    found.look_at(&record);
                }
                is_left
            };
            match self.neighbours {
                Neighbours::Table(records, ..) | Neighbours::Packed(records, ..) => {
                    records.iter().all(&mut look_at)
                }
                Neighbours::Slice(records, _) => records.iter().copied().all(look_at),
            };
        }
        found.record.filter(|_| found.is_single)
    }

    /// The same if it stands among the few records before this one, as most do; `None` where more has to be known.
    #[inline]
    fn find_shortly_before<'t>(&self, offset: u64, types: &'t [u32]) -> Option<Candidate<'t>> {
        if self.record.offset <= offset {
            return None;
        }
        let found = Candidate { offset, types, record: None, is_single: true };
        match self.neighbours {
            Neighbours::Table(Relocations::Rela(table), index, _)
                if let Some(rows) = table.native() =>
            {
                let before = rows.get(..index).unwrap_or_default();
                found.among(before.iter().rev().map(|&row| row.into()))
            }
            Neighbours::Table(_, index, _) | Neighbours::Slice(_, index) => {
                found.among((0..index).rev().map_while(|index| self.at(index)))
            }
            Neighbours::Packed(..) => None,
        }
    }

    /// Whether another record may be read.
    fn take_step(&self) -> bool {
        match self.neighbours {
            Neighbours::Table(.., steps) | Neighbours::Packed(.., steps) => steps.take().is_some(),
            Neighbours::Slice(..) => true,
        }
    }
}

/// The record at an offset, unless several there differ.
struct Candidate<'t> {
    offset: u64,
    types: &'t [u32],
    record: Option<Record>,
    is_single: bool,
}

impl Candidate<'_> {
    /// It, if it is among the first few of these records, which do not fall below its offset before.
    #[inline]
    fn among(mut self, mut records: impl Iterator<Item = Record>) -> Option<Self> {
        for _ in 0..12 {
            match records.next().filter(|record| record.offset >= self.offset) {
                Some(record) => self.look_at(&record),
                None => return self.record.is_some().then_some(self),
            }
        }
        None
    }

    #[inline]
    fn look_at(&mut self, record: &Record) {
        if record.offset == self.offset && self.types.contains(&record.r#type) {
            self.is_single &= self.record.is_none_or(|first| first == *record);
            self.record = Some(*record);
        }
    }
}

/// Record `index` of a table; `None` of packed forms, which would have to be read up to there.
// a part of every search where there is room for code
#[cfg_attr(target_pointer_width = "64", inline)]
fn in_table(records: &Relocations<'_>, index: usize) -> Option<Record> {
    match records {
        Relocations::Rela(table) => table.get(index),
        Relocations::Rel(table) => table.get(index),
        #[cfg(any(feature = "packed-relocations", feature = "mips64"))]
        _ => None,
    }
}
