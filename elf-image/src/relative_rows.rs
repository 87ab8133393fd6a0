//! Relocations that need no symbol, at the start of their table: what large libraries mostly consist of, to be applied in parts.

use crate::image::Image;
use core::ops::Range;
use elf_core::names::{DT_RELA, DT_RELACOUNT};
use elf_core::{Arch, Rela, Relocations, Table, relative_type};

/// Records that a table (`DT_RELA`) of a file of 64 bits, little-endian, begins with, and that stand for B + A each, as the file says it
/// (`DT_RELACOUNT`). What they store does not depend on what is there: they may be applied in any order, in parts, and again.
#[derive(Clone, Copy)]
pub struct RelativeRows<'a> {
    table: Table<'a, Rela>,
    /// The address of the image's first byte in the file.
    start: u64,
    r#type: u32,
}

impl core::fmt::Debug for RelativeRows<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RelativeRows").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<'a> Image<'a> {
    /// The relative relocations at the start of the table with addends; `None` if the file says of none, is damaged, or of another
    /// machine, class or byte order.
    #[must_use]
    pub fn relative_rows<A: Arch>(&self) -> Option<RelativeRows<'a>> {
        self.check_machine::<A>().ok()?;
        let encoding = self.file().encoding();
        if A::ADDRESS_SIZE != 8 || encoding.is_big_endian() {
            return None;
        }
        let dynamic = self.dynamic().ok()??;
        let count = usize::try_from(dynamic.value(DT_RELACOUNT)?).ok()?;
        let Ok(Some(Relocations::Rela(table))) = dynamic.relocations(DT_RELA) else { return None };
        let start = self.relocated_start().ok()?;
        Some(RelativeRows {
            table: table.slice(0, count)?,
            start,
            r#type: relative_type(A::MACHINE, true),
        })
    }
}

impl RelativeRows<'_> {
    /// Number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of the records, by their numbers.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        Some(Self { table: self.table.slice(range.start, range.end)?, ..*self })
    }

    /// The place of a record: an offset in the image, if it is there.
    #[must_use]
    pub fn place(&self, index: usize) -> Option<u64> {
        Some(self.table.get(index)?.offset.wrapping_sub(self.start))
    }

    /// Stores B + A, B being `bias`, for all records, whose places are in `memory`: the image from offset `at` on. Whether that is so; if not,
    /// some are applied, some not.
    #[must_use]
    pub fn apply(&self, memory: &mut [u8], at: u64, bias: u64) -> bool {
        let start = self.start.wrapping_add(at);
        let done = self.table.try_for_each(|record| {
            let place = usize::try_from(record.offset.wrapping_sub(start)).map_err(drop)?;
            let rest = memory.get_mut(place..).unwrap_or_default();
            match (rest.first_chunk_mut(), record.addend) {
                (Some(word), Some(addend)) if record.r#type == self.r#type => {
                    *word = bias.wrapping_add_signed(addend).to_le_bytes();
                    Ok(())
                }
                _ => Err(()),
            }
        });
        done.is_ok()
    }
}
