//! The unwinding tables of a library, found as unwinders find them and checked before they get them.

use super::error::LibraryError;
use crate::Host;
use core::ops::Range;
use elf_core::Arch as _;
use elf_core::eh_frame::{EhFrame, Machine, Places};
use elf_image::Image;

/// Encoding of the address of `.eh_frame`: signed, 4 bytes, from its place (LSB Core, "DWARF Exception Header Encoding").
const RELATIVE: u8 = 0x1b;

/// What the tables of a library may point to.
struct Load<'l> {
    memory: &'l [u8],
    base: u64,
    code: &'l [Range<u64>],
    externals: &'l [u64],
}

impl Places for Load<'_> {
    fn is_code(&self, address: u64, size: u64) -> bool {
        self.code.iter().any(|range| {
            (range.start..=range.end).contains(&address) && size <= range.end.wrapping_sub(address)
        })
    }

    fn is_data(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.memory.len() as u64
    }

    fn is_personality(&self, address: u64) -> bool {
        self.externals.contains(&address) || self.code.iter().any(|it| it.contains(&address))
    }

    fn word(&self, address: u64) -> Option<u64> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.memory.get(start..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }
}

/// Address and size of the checked table of an image that is relocated for `base`, if it has one that ends.
///
/// # Errors
/// [`LibraryError::Unwinding`].
pub(crate) fn table(
    image: &Image<'_>,
    memory: &[u8],
    base: u64,
    code: &[Range<u64>],
    externals: &[u64],
) -> Result<Option<(u64, u64)>, LibraryError> {
    let Some((offset, bytes)) = find(image, memory) else { return Ok(None) };
    let Some(machine) = Machine::of(Host::MACHINE) else { return Ok(None) };
    let address = base.wrapping_add(offset);
    let load = Load { memory, base, code, externals };
    EhFrame { bytes, address, machine }.check(&load).map_err(LibraryError::Unwinding)?;
    Ok(Some((address, bytes.len() as u64)))
}

/// Where the table is whose `.eh_frame_hdr` these bytes are, which is at `at`.
pub(crate) fn start(header: &[u8], at: u64) -> Option<u64> {
    let [1, RELATIVE, _, _, distance @ ..] = header.first_chunk::<8>()? else { return None };
    Some(at.wrapping_add(4).wrapping_add_signed(i32::from_le_bytes(*distance).into()))
}

/// Offset and bytes of the table, the length of 0 that ends it included.
fn find<'m>(image: &Image<'_>, memory: &'m [u8]) -> Option<(u64, &'m [u8])> {
    let (offset, _) = image.eh_frame_hdr()?;
    let start = start(memory.get(usize::try_from(offset).ok()?..)?, offset)?;
    let segment = image
        .segments()
        .find(|segment| start.checked_sub(segment.offset).is_some_and(|at| at < segment.size))?;
    let end = usize::try_from(segment.offset.saturating_add(segment.size)).ok()?;
    let rest = memory.get(usize::try_from(start).ok()?..end)?;
    let mut at = 0usize;
    loop {
        let length = u32::from_le_bytes(*rest.get(at..)?.first_chunk()?);
        at = at.checked_add(4)?;
        match length {
            0 => return Some((start, rest.get(..at)?)),
            u32::MAX => return None,
            length => at = at.checked_add(usize::try_from(length).ok()?)?,
        }
    }
}
