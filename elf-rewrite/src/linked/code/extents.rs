//! Where functions begin, and where data lies among code: bytes are instructions only from a start on, and a table that is decoded
//! as if it were code refers to anything.

use std::ops::Range;

use elf_core::names::{
    PT_GNU_EH_FRAME, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT,
};
use elf_core::raw64::Shdr;
use zerocopy::byteorder::LE;

use crate::elf::Elf;
use crate::error::Result;

/// Encodings of the words in an index of frames that are read here (LSB Core, "DWARF Exception Header Encoding"): a number of 4 bytes,
/// by which sign; relative to what.
const UDATA4: u8 = 0x03;
const SDATA4: u8 = 0x0b;
const DATAREL: u8 = 0x30;

/// What is known of code before it is decoded.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// Addresses at which code begins, in order: functions, and labels of assembly.
    starts: Vec<u64>,
    /// Addresses of functions, in order, apart from one another.
    functions: Vec<Range<u64>>,
    /// Addresses of data, in order, apart from one another.
    data: Vec<Range<u64>>,
}

impl Extents {
    /// What symbols and the index of frames say.
    ///
    /// # Errors
    /// If a table of symbols lies outside the file.
    pub(super) fn of(elf: &Elf<'_>) -> Result<Self> {
        let (mut labels, mut functions, mut data) = (Vec::new(), Vec::new(), Vec::new());
        let is_table = |table: &&Shdr<LE>| matches!(table.sh_type.get(), SHT_SYMTAB | SHT_DYNSYM);
        for table in elf.tables.iter().filter(is_table) {
            for symbol in elf.symbols(table)? {
                let (value, size) = (symbol.st_value.get(), symbol.st_size.get());
                match symbol.st_info & 0xf {
                    _ if value == 0 => {}
                    STT_FUNC | STT_GNU_IFUNC => functions.push(value..value.saturating_add(size)),
                    STT_OBJECT if size != 0 => data.push(value..value.saturating_add(size)),
                    STT_NOTYPE => labels.push(value),
                    _ => {}
                }
            }
        }
        for segment in elf.file.segments().iter().filter(|it| it.r#type == PT_GNU_EH_FRAME) {
            if let Ok(index) = elf.file.segment_data(&segment) {
                functions.extend(indexed(index, segment.address).map(|row| row.function(elf)));
            }
        }
        Ok(Self::new(labels, functions, data))
    }

    /// What is known, in any order. Where a function begins in data, that ends: nothing that may be code is passed over.
    fn new(labels: Vec<u64>, functions: Vec<Range<u64>>, data: Vec<Range<u64>>) -> Self {
        let mut starts = labels;
        starts.extend(functions.iter().map(|function| function.start));
        starts.sort_unstable();
        starts.dedup();
        let data = apart(data).filter_map(|range| {
            let next = starts.partition_point(|&start| start < range.start);
            let end = starts.get(next).map_or(range.end, |&start| range.end.min(start));
            (range.start < end).then_some(range.start..end)
        });
        Self { data: data.collect(), functions: apart(functions).collect(), starts }
    }

    /// Whether the byte at `address` is one of a function, whose end is known.
    pub(super) fn is_function(&self, address: u64) -> bool {
        find(&self.functions, address).is_some()
    }

    /// The end of the data that holds the byte at `address`, if any does.
    pub(super) fn data_at(&self, address: u64) -> Option<u64> {
        find(&self.data, address).map(|range| range.end)
    }

    /// The first address behind `address` at which code or data begins.
    pub(super) fn next(&self, address: u64) -> Option<u64> {
        let start = self.starts.get(self.starts.partition_point(|&start| start <= address));
        let data = self.data.get(self.data.partition_point(|range| range.start <= address));
        start.copied().into_iter().chain(data.map(|range| range.start)).min()
    }
}

/// Ranges in order, without what one before has.
fn apart(mut ranges: Vec<Range<u64>>) -> impl Iterator<Item = Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut end = 0;
    ranges.into_iter().filter_map(move |range| {
        let range = range.start.max(end)..range.end;
        end = end.max(range.end);
        (!range.is_empty()).then_some(range)
    })
}

/// The range that holds `address`, of those in order.
fn find(ranges: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let behind = ranges.partition_point(|range| range.start <= address);
    ranges.get(behind.checked_sub(1)?).filter(|range| range.contains(&address))
}

/// A row of an index of frames.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// The address of the function.
    function: u64,
    /// The address of its frame description.
    description: u64,
}

impl Row {
    /// The function, with its end if the description has the usual form: it begins at a distance of 4 bytes with a sign.
    fn function(&self, elf: &Elf<'_>) -> Range<u64> {
        let [begin, size] = [8, 12].map(|behind| {
            let (_, word) = elf.word(self.description.wrapping_add(behind))?;
            u32::try_from(word & 0xffff_ffff).ok()
        });
        let begin = begin.map(|begin| {
            self.description.wrapping_add(8).wrapping_add_signed(begin.cast_signed().into())
        });
        let size = size.filter(|_| begin == Some(self.function)).unwrap_or(0);
        self.function..self.function.saturating_add(size.into())
    }
}

/// The rows of an index of frames that lies at `at` (LSB Core, "The .eh_frame_hdr section"); none of one that is not as linkers make it.
fn indexed(index: &[u8], at: u64) -> impl Iterator<Item = Row> {
    let table = match index {
        [1, pointer, UDATA4, table, rest @ ..]
            if matches!(pointer & 0xf, UDATA4 | SDATA4) && *table == DATAREL | SDATA4 =>
        {
            rest.get(4..).unwrap_or_default()
        }
        _ => &[],
    };
    let (count, rows) = table.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
    let count = usize::try_from(u32::from_le_bytes(*count)).unwrap_or(usize::MAX);
    rows.as_chunks::<8>().0.iter().take(count).map(move |[a, b, c, d, e, f, g, h]| {
        let [function, description] = [[*a, *b, *c, *d], [*e, *f, *g, *h]]
            .map(|bytes| at.wrapping_add_signed(i32::from_le_bytes(bytes).into()));
        Row { function, description }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_ends_where_a_function_begins() {
        let extents =
            Extents::new(vec![0x20], vec![0x80..0x80, 0x90..0x90], vec![0x40..0x100, 0x30..0x50]);
        assert_eq!(extents.data_at(0x30), Some(0x50));
        assert_eq!(extents.data_at(0x60), Some(0x80));
        assert_eq!((extents.data_at(0x2f), extents.data_at(0x80)), (None, None));
        assert_eq!(extents.next(0x10), Some(0x20));
        assert_eq!(extents.next(0x20), Some(0x30));
        assert_eq!((extents.next(0x80), extents.next(0x90)), (Some(0x90), None));
    }

    #[test]
    fn what_starts_as_code_is_code() {
        let extents =
            Extents::new(Vec::new(), vec![0x40..0x60, 0x50..0x70], vec![0x40..0x60, 0x60..0x100]);
        assert_eq!(extents.data_at(0x40), None);
        assert!([0x40, 0x5f, 0x6f].iter().all(|at| extents.is_function(*at)));
        assert!([0x3f, 0x70].iter().all(|at| !extents.is_function(*at)));
    }

    #[test]
    fn an_index_of_frames() {
        let mut index = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0];
        for word in [0x10_i32, 0, -0x20, 0, 0x30, 0] {
            index.extend(word.to_le_bytes());
        }
        // two are counted, and the third is not one of them
        let row = |function| Row { function, description: 0x1000 };
        assert_eq!(indexed(&index, 0x1000).collect::<Vec<_>>(), [row(0x1010), row(0xfe0)]);
        assert_eq!(indexed(&index[..15], 0x1000).count(), 0);
        index[3] = 0x0c;
        assert_eq!(indexed(&index, 0x1000).count(), 0);
    }
}
