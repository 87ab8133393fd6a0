//! Encoded pointers (LSB Core, "DWARF Exception Header Encoding"), as the unwinder reads them.

use super::context::{Context, Places};
use super::error::{Error, ErrorKind};
use super::reader::Reader;

/// How a pointer is encoded: `DW_EH_PE_*`, one that can be read without knowing more than the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoding(u8);

/// `DW_EH_PE_omit`: there is no pointer.
pub(super) const OMIT: u8 = 0xff;

const PCREL: u8 = 0x10;
const ALIGNED: u8 = 0x50;
const INDIRECT: u8 = 0x80;
/// How the number is written.
const FORMAT: u8 = 0x0f;
/// What it is relative to.
const APPLICATION: u8 = 0x70;

/// Bytes of an address.
const ADDRESS: u64 = 8;

impl Encoding {
    /// The machine's addresses as they are, `DW_EH_PE_absptr`.
    pub(super) const ABSOLUTE: Self = Self(0);

    /// One that is known: of known format, absolute, relative to its place, or aligned. Tables that are registered by their address
    /// have no other base.
    pub(super) fn new(encoding: u8) -> Option<Self> {
        let known = match (encoding & FORMAT, encoding & APPLICATION) {
            (0, ALIGNED) => encoding == ALIGNED,
            (0..=4 | 9..=12, 0 | PCREL) => true,
            _ => false,
        };
        known.then_some(Self(encoding))
    }

    /// One for the addresses of functions: the unwinder looks at their bytes without reading them first.
    pub(super) fn of_code(encoding: u8) -> Option<Self> {
        let is_fixed = !matches!(encoding & FORMAT, 1 | 9);
        let is_direct = encoding & INDIRECT == 0 && encoding & APPLICATION != ALIGNED;
        Self::new(encoding).filter(|_| is_fixed && is_direct)
    }

    /// The same without a base: sizes of code are written like their addresses.
    pub(super) const fn of_size(self) -> Self {
        Self(self.0 & FORMAT)
    }

    /// The bits that a pointer to code has: of smaller ones, unwinders take 0 in these for none.
    pub(super) const fn mask(self) -> u64 {
        match self.0 & FORMAT {
            2 | 10 => 0xffff,
            3 | 11 => 0xffff_ffff,
            _ => u64::MAX,
        }
    }

    /// Takes a pointer: its address, 0 for none.
    pub(super) fn read<P: Places>(
        self,
        reader: &mut Reader<'_>,
        context: &Context<'_, P>,
        what: &'static str,
    ) -> Result<u64, Error> {
        let mut place = context.address.wrapping_add(reader.at());
        if self.0 == ALIGNED {
            let padding = place.wrapping_neg() % ADDRESS;
            reader.part(padding, what)?;
            place = place.wrapping_add(padding);
        }
        let start = *reader;
        let number = match self.0 & FORMAT {
            1 => reader.unsigned(what)?,
            2 => reader.fixed::<2>(what)?,
            3 => reader.fixed::<4>(what)?,
            9 => reader.signed(what)?.cast_unsigned(),
            10 => i64::from(reader.fixed::<2>(what)? as i16).cast_unsigned(),
            11 => i64::from(reader.fixed::<4>(what)? as i32).cast_unsigned(),
            _ => reader.fixed::<8>(what)?,
        };
        if number == 0 {
            return Ok(0);
        }
        let base = if self.0 & APPLICATION == PCREL { place } else { 0 };
        let address = number.wrapping_add(base);
        if self.0 & INDIRECT == 0 {
            return Ok(address);
        }
        context.places.word(address).ok_or(start.error(ErrorKind::Pointer { what, address }))
    }
}
