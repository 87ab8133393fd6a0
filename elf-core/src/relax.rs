//! Relaxation: simpler instructions in place of those a compiler wrote, which knew less than a linker does.

use crate::apply::{ApplyError, Resolve, SectionMut, apply};
use crate::record::Record;
use crate::reloc::Arch;

/// Instructions that a linker may rewrite: where they are, and what relocates them.
#[derive(Clone, Copy, Debug)]
pub struct Site<'b> {
    /// The bytes of the section.
    pub bytes: &'b [u8],
    /// The first of the relocations.
    pub record: &'b Record,
    /// The relocation that follows in the table.
    pub next: Option<&'b Record>,
}

/// What a linker knows of the address that instructions ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its distance from wherever the instructions may be fits 32 bits, with its sign, and 4 KiB more.
    pub near: bool,
    /// It is below 2 GiB.
    pub low: bool,
    /// Its distance from the place of the first relocation in bytes, once both are known.
    pub distance: Option<i64>,
}

/// The instructions that stand for those of a [`Site`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Where they start, in bytes from the start of the section.
    pub offset: u64,
    /// Their bytes, the first in the lowest eight bits.
    pub code: u64,
    /// Their size in bytes, the same as before, at most 8.
    pub size: usize,
    /// The relocations that they need.
    pub records: [Option<Record>; 2],
    /// Whether they stand for the instructions of the following relocation as well.
    pub takes_next: bool,
}

impl<'b> Site<'b> {
    /// The `N` bytes that start `before` bytes before the place.
    #[must_use]
    pub fn around<const N: usize>(&self, before: u64) -> Option<&'b [u8; N]> {
        let start = usize::try_from(self.record.offset.checked_sub(before)?).ok()?;
        self.bytes.get(start..)?.first_chunk::<N>()
    }
}

impl Rewrite {
    /// `code` that starts `before` bytes before the place of `record`, without relocations.
    #[must_use]
    #[inline]
    pub fn new<const N: usize>(record: &Record, before: u64, code: [u8; N]) -> Self {
        const { assert!(N <= 8) };
        let code = code.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
        let offset = record.offset.wrapping_sub(before);
        Self { offset, code, size: N, records: [None; 2], takes_next: false }
    }

    /// The same with a relocation of the new code.
    #[must_use]
    pub const fn with(self, record: Record) -> Self {
        let records = match self.records {
            [None, _] => [Some(record), None],
            [first, _] => [first, Some(record)],
        };
        Self { records, ..self }
    }

    /// The same for two relocations of the old code.
    #[must_use]
    pub const fn taking_next(self) -> Self {
        Self { takes_next: true, ..self }
    }

    /// Writes the instructions and relocates them. On error they may be written already.
    ///
    /// # Errors
    /// As [`apply`]; nothing is written where they do not fit the section.
    #[inline]
    pub fn write<A: Arch>(
        &self,
        section: &mut SectionMut<'_>,
        symbols: &impl Resolve,
    ) -> Result<(), ApplyError> {
        let start = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let place = section.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..self.size));
        let mut code = self.code;
        for byte in place.unwrap_or_default() {
            *byte = code as u8;
            code >>= 8;
        }
        self.records.iter().flatten().try_for_each(|record| apply::<A>(record, section, symbols))
    }
}
