//! Unwinding tables (`.eh_frame`: LSB Core, "Exception Frames"; DWARF 5, section 6.4), checked before they are handed to an unwinder.
//!
//! Unwinders trust such a table: one wrong length, and the next backtrace reads where nothing is. [`EhFrame::check`] reads a table as the
//! unwinder of GCC does, which every Linux has, and refuses what that cannot take, with the offset of the bytes at fault.
//!
//! ```
//! use elf_core::eh_frame::{EhFrame, Machine, Places, Summary};
//!
//! /// Code, and nothing else: no personality routine, no table of exceptions.
//! struct Code(core::ops::Range<u64>);
//!
//! impl Places for Code {
//!     fn is_code(&self, address: u64, size: u64) -> bool {
//!         self.0.start <= address && size <= self.0.end.saturating_sub(address)
//!     }
//! }
//!
//! // one function, 16 bytes at 0x1000, its frame as it is where it begins
//! let table = [
//!     &[0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0][..],
//!     &[0x10, 0, 0, 0, 0x1c, 0, 0, 0, 0xe0, 0xff, 0xff, 0xff, 16, 0, 0, 0, 0, 0, 0, 0],
//! ].concat();
//! let frames = EhFrame { bytes: &table, address: 0x1000, machine: Machine::X86_64 };
//! let code = Code(0x1000..0x1010);
//! assert_eq!(frames.check(&code)?, Summary { cies: 1, fdes: 1, absent: 0, size: 44 });
//!
//! let error = frames.check(&Code(0x2000..0x2010)).unwrap_err();
//! assert_eq!(error.to_string(), "code at 0x1000, 0x10 bytes, is not of this load, at offset 0x20");
//! # Ok::<_, elf_core::eh_frame::Error>(())
//! ```
//!
//! What the rules for a frame *mean* is not judged: who runs the code relies on them as on the code itself. An unwinder looks for
//! functions in all tables, whoever's frames it walks; it follows the rules of those functions only that are being called.

mod cie;
mod error;
mod expression;
mod fde;
mod pointer;
mod program;
mod reader;

pub use error::{Error, ErrorKind};

use crate::names::{EM_AARCH64, EM_X86_64};
use cie::{Cie, Known};
use reader::Reader;

/// A relocated table: its bytes, and where they are or will be.
#[derive(Clone, Copy, Debug)]
pub struct EhFrame<'a> {
    /// The section's bytes, little-endian.
    pub bytes: &'a [u8],
    /// The address of the first one, for the unwinder.
    pub address: u64,
    /// Whose unwinder it is for.
    pub machine: Machine,
}

/// What an unwinder has room for, of machines with addresses of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Registers that a frame is computed from are below this (`__LIBGCC_DWARF_FRAME_REGISTERS__`).
    columns: u64,
    /// Registers that the psABI has numbers for are below this. Rules for those that the unwinder has no room for do nothing.
    registers: u64,
    /// Return addresses can be signed (AADWARF64 4.4: `DW_CFA_AARCH64_negate_ra_state`, its register, augmentations B and G).
    signs: Option<u64>,
}

impl Machine {
    /// x86-64 (psABI 3.6.2).
    pub const X86_64: Self = Self { columns: 17, registers: 130, signs: None };
    /// AArch64 (AADWARF64 4.1).
    pub const AARCH64: Self = Self { columns: 96, registers: 128, signs: Some(34) };

    /// The machine of this number (`e_machine`).
    #[must_use]
    pub const fn of(machine: u16) -> Option<Self> {
        match machine {
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::AARCH64),
            _ => None,
        }
    }
}

/// What a table may point to. Without answers of its own, nothing.
pub trait Places {
    /// Whether `size` bytes at `address` are code that the table may speak of. `size` may be 0, at the end of code too.
    fn is_code(&self, address: u64, size: u64) -> bool;

    /// Whether a table of exceptions (LSDA) may be at `address`.
    fn is_data(&self, address: u64) -> bool {
        let _ = address;
        false
    }

    /// Whether a personality routine may be at `address`.
    fn is_personality(&self, address: u64) -> bool {
        let _ = address;
        false
    }

    /// The address that is stored at `address`: some pointers lead there by way of a word. None if no word is there.
    fn word(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }
}

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Common information entries.
    pub cies: u64,
    /// Frame description entries: one a function or a part of it.
    pub fdes: u64,
    /// How many of these speak of code that is not there any more: their address is 0, and unwinders leave them out.
    pub absent: u64,
    /// Bytes up to the end of the last entry. Behind a length of 0 nobody reads on.
    pub size: u64,
}

/// A record of the table: an entry of either kind.
struct Record<'a> {
    /// Its offset.
    at: u64,
    /// 0, or the distance from this word back to the CIE.
    id: u32,
    /// What follows the word.
    content: Reader<'a>,
    /// The offset of the next record.
    end: u64,
}

/// CIEs may be read again as long as that is not more than this many times all the bytes.
const MOST_TIMES: u64 = 16;

impl<'a> EhFrame<'a> {
    /// Checks everything that the unwinder reads, and says how much there is.
    ///
    /// # Errors
    /// The first [`ErrorKind`] that is met, in the order of the entries.
    pub fn check<P: Places>(&self, places: &P) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let mut known = Known::default();
        let mut budget = (self.bytes.len() as u64).saturating_mul(MOST_TIMES);
        while let Some(record) = self.record(summary.size)? {
            if record.id == 0 {
                known.add(Cie::parse(self, &record, places)?);
                summary.cies = summary.cies.saturating_add(1);
            } else {
                let cie = self.cie_of(&record, &mut known, &mut budget, places)?;
                let is_there = fde::check(self, &record, &cie, places)?;
                summary.fdes = summary.fdes.saturating_add(1);
                summary.absent = summary.absent.saturating_add(u64::from(!is_there));
            }
            summary.size = record.end;
        }
        Ok(summary)
    }

    /// The record at an offset; nothing at the end.
    fn record(&self, at: u64) -> Result<Option<Record<'a>>, Error> {
        let error = |kind| Error { at, kind };
        let rest = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default();
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
        Ok(Some(Record { at, id: u32::from_le_bytes(*id), content, end }))
    }

    /// The CIE of an FDE: known, or read where the FDE says it is.
    fn cie_of<P: Places>(
        &self,
        fde: &Record<'a>,
        known: &mut Known,
        budget: &mut u64,
        places: &P,
    ) -> Result<Cie, Error> {
        let id_at = fde.at.saturating_add(4);
        let error = |kind| Error { at: id_at, kind };
        let none = error(ErrorKind::NoCie { distance: fde.id.cast_signed() });
        let distance = i64::from(fde.id.cast_signed());
        let at = id_at.checked_add_signed(distance.saturating_neg()).ok_or(none)?;
        if let Some(cie) = known.find(at) {
            return Ok(cie);
        }
        let record = self.record(at).ok().flatten().filter(|record| record.id == 0).ok_or(none)?;
        *budget = budget
            .checked_sub(record.end.saturating_sub(at))
            .ok_or(error(ErrorKind::TooManyCies))?;
        let cie = Cie::parse(self, &record, places)?;
        known.add(cie);
        Ok(cie)
    }
}

#[cfg(test)]
mod tests;
