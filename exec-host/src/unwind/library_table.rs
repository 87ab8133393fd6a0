//! The unwinding table of a library that is in place. Most libraries never see an exception: it is checked when an unwinder first asks for
//! it, where that is possible.

use super::format;
use super::table::Table;
use crate::word;
use core::ops::Range;
use elf_core::eh_frame::{Described, Error, Places};

/// A table that may have errors, or may not be there.
#[derive(Debug)]
pub(crate) struct LibraryTable {
    /// Address and bytes of what leads to it (`.eh_frame_hdr`), or of the table itself, as the machine has it.
    header: (u64, u64),
    /// What can be read of the library.
    readable: Box<[Range<u64>]>,
    code: Box<[Range<u64>]>,
    /// What references of the library mean elsewhere.
    externals: Box<[u64]>,
}

impl LibraryTable {
    /// The table that the bytes at `header`, of which there are so many, lead to.
    ///
    /// # Safety
    /// The library has these pages, can read them and has relocated them, as long as the result lives; nobody writes to index and table.
    pub(crate) unsafe fn new(
        header: (u64, u64),
        readable: Vec<Range<u64>>,
        code: &[Range<u64>],
        externals: Vec<u64>,
    ) -> Self {
        let (code, readable, externals) = (code.into(), readable.into(), externals.into());
        Self { header, readable, code, externals }
    }

    /// Checks all that the unwinder reads, gives `each` the table's address and what it describes, and says which
    /// it is; `None` if there is none that ends, or no unwinder for this machine.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn check_each(
        &self,
        mut each: impl FnMut(u64, Described),
    ) -> Result<Option<Table>, Error> {
        let Some((address, bytes)) = self.bytes() else { return Ok(None) };
        // that of the last entry may go on to the end
        let end = self.code.iter().map(|range| range.end).max().unwrap_or(0);
        let table = Table { address, size: bytes.len() as u64, end };
        format::check_each(bytes, &table, self, |described| each(address, described))?;
        Ok(Some(table))
    }

    /// Address and bytes of the table.
    fn bytes(&self) -> Option<(u64, &[u8])> {
        let (address, size) = format::of_library(self.header, |address| self.rest(address))?;
        Some((address, self.rest(address)?.get(..size)?))
    }

    /// What can be read from an address on.
    fn rest(&self, address: u64) -> Option<&[u8]> {
        let end = self.readable.iter().find(|range| range.contains(&address))?.end;
        let start = core::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: who made the value guarantees the pages; of them only index and table are read.
        Some(unsafe { core::slice::from_raw_parts(start, (end - address) as usize) })
    }
}

impl Places for LibraryTable {
    fn is_code(&self, address: u64, size: u64) -> bool {
        self.code.iter().any(|range| {
            (range.start..=range.end).contains(&address) && size <= range.end.wrapping_sub(address)
        })
    }

    fn is_data(&self, address: u64) -> bool {
        self.readable.iter().any(|range| range.contains(&address))
    }

    fn is_personality(&self, address: u64) -> bool {
        self.externals.contains(&address) || self.code.iter().any(|it| it.contains(&address))
    }

    fn word(&self, address: u64) -> Option<u64> {
        let end = address.checked_add(word::SIZE)?;
        let mut readable = self.readable.iter();
        readable.find(|range| range.start <= address && end <= range.end)?;
        let word = core::ptr::with_exposed_provenance::<usize>(address as usize);
        // SAFETY: who made the value guarantees what can be read.
        Some(unsafe { word.read_unaligned() } as u64)
    }
}
