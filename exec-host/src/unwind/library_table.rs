//! The unwinding table of a library that is in place. Most libraries never see an exception: it is checked when an unwinder first asks for
//! it, where that is possible.

use crate::Host;
use core::ops::Range;
use elf_core::Arch as _;
use elf_core::eh_frame::{Described, EhFrame, Error, Machine, Places};

/// A table that may have errors, or may not be there.
#[derive(Debug)]
pub(crate) struct LibraryTable {
    /// The address of the index to it (`.eh_frame_hdr`).
    header: u64,
    /// What can be read of the library.
    readable: Box<[Range<u64>]>,
    code: Box<[Range<u64>]>,
    /// What references of the library mean elsewhere.
    externals: Box<[u64]>,
}

/// Encoding of the address of `.eh_frame`: signed, 4 bytes, from its place (LSB Core, "DWARF Exception Header Encoding").
const RELATIVE: u8 = 0x1b;

impl LibraryTable {
    /// The table that the index at the address `header` leads to.
    ///
    /// # Safety
    /// The library has these pages, can read them and has relocated them, as long as the result lives; nobody writes to index and table.
    pub(crate) unsafe fn new(
        header: u64,
        readable: Vec<Range<u64>>,
        code: &[Range<u64>],
        externals: Vec<u64>,
    ) -> Self {
        let (code, readable, externals) = (code.into(), readable.into(), externals.into());
        Self { header, readable, code, externals }
    }

    /// Checks all that the unwinder reads, gives `each` the table's address and what it describes, and says where it is and how many
    /// bytes it has; `None` if there is none that ends, or no unwinder for this machine.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn check_each(
        &self,
        mut each: impl FnMut(u64, Described),
    ) -> Result<Option<(u64, u64)>, Error> {
        let Some((address, bytes)) = self.bytes() else { return Ok(None) };
        let Some(machine) = Machine::of(Host::MACHINE) else { return Ok(None) };
        let table = EhFrame { bytes, address, machine };
        table.check_each(self, |described| each(address, described))?;
        Ok(Some((address, bytes.len() as u64)))
    }

    /// Address and bytes of the table, the length of 0 that ends it included.
    fn bytes(&self) -> Option<(u64, &[u8])> {
        let [1, RELATIVE, _, _, distance @ ..] = self.rest(self.header)?.first_chunk::<8>()? else {
            return None;
        };
        let distance = i64::from(i32::from_le_bytes(*distance));
        let address = self.header.wrapping_add(4).wrapping_add_signed(distance);
        Some((address, up_to_end(self.rest(address)?)?))
    }

    /// What can be read from an address on.
    fn rest(&self, address: u64) -> Option<&[u8]> {
        let end = self.readable.iter().find(|range| range.contains(&address))?.end;
        let start = core::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: who made the value vouches for the pages; of them only index and table are read.
        Some(unsafe { core::slice::from_raw_parts(start, (end - address) as usize) })
    }
}

/// The table that the bytes begin with, the length of 0 that ends it included.
fn up_to_end(rest: &[u8]) -> Option<&[u8]> {
    let mut at = 0usize;
    loop {
        let length = u32::from_le_bytes(*rest.get(at..)?.first_chunk()?);
        at = at.checked_add(4)?;
        match length {
            0 => return rest.get(..at),
            u32::MAX => return None,
            length => at = at.checked_add(usize::try_from(length).ok()?)?,
        }
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
        let end = address.checked_add(size_of::<u64>() as u64)?;
        let mut readable = self.readable.iter();
        readable.find(|range| range.start <= address && end <= range.end)?;
        let word = core::ptr::with_exposed_provenance::<u64>(address as usize);
        // SAFETY: who made the value vouches for what can be read.
        Some(unsafe { word.read_unaligned() })
    }
}
