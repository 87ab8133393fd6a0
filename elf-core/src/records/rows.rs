//! Tables of relocations, with and without addends; those of little-endian MIPS64.

use crate::table::class::Class;
use crate::table::entry::Entry;
use crate::views::record::Record;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Rows of `SHT_RELA`.
pub enum Rela {}
impl Entry for Rela {
    type View = Record;
    type Raw<C: Class> = C::Rela;
    const WHAT: &'static str = "relocations";
}

/// Rows of `SHT_REL`.
pub enum Rel {}
impl Entry for Rel {
    type View = Record;
    type Raw<C: Class> = C::Rel;
    const WHAT: &'static str = "relocations";
}

/// A row as little-endian MIPS64 writes it (MIPS64 ELF Object File Specification 2.5, section 2.9.1).
///
/// There `r_info` is no number but the symbol in 32 bits of the file's order, then a special symbol and three types in
/// a byte each. The same bytes in a big-endian file are those of the gABI.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(transparent)]
pub struct Mips64El<T>(pub T);

impl<T: Into<Record>> From<Mips64El<T>> for Record {
    #[inline]
    fn from(raw: Mips64El<T>) -> Self {
        let record = raw.0.into();
        Self { symbol: record.r#type, r#type: record.symbol.swap_bytes(), ..record }
    }
}

/// Rows of `SHT_RELA` of little-endian MIPS64.
pub enum Mips64ElRela {}
impl Entry for Mips64ElRela {
    type View = Record;
    type Raw<C: Class> = Mips64El<C::Rela>;
    const WHAT: &'static str = Rela::WHAT;
}

/// Rows of `SHT_REL` of little-endian MIPS64.
pub enum Mips64ElRel {}
impl Entry for Mips64ElRel {
    type View = Record;
    type Raw<C: Class> = Mips64El<C::Rel>;
    const WHAT: &'static str = Rel::WHAT;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structs::raw64;
    use zerocopy::byteorder::{BE, LE};

    /// Symbol 0x01020304, special symbol 5, types 8, 7, 6 of a place 0x10, as both byte orders write them.
    #[test]
    fn mips64() {
        let little = [0x10, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 5, 6, 7, 8];
        let big = [0, 0, 0, 0, 0, 0, 0, 0x10, 1, 2, 3, 4, 5, 6, 7, 8];
        let little = Mips64El::<raw64::Rel<LE>>::read_from_bytes(&little).unwrap();
        let big = raw64::Rel::<BE>::read_from_bytes(&big).unwrap();
        let record =
            Record { offset: 0x10, symbol: 0x0102_0304, r#type: 0x0506_0708, addend: None };
        assert_eq!((Record::from(little), Record::from(big)), (record, record));
    }
}
