//! Relocation records: one `Rel` or `Rela`.

use crate::class::Class;
use crate::table::{Entry, Table, TableIter};
use crate::{raw32, raw64};
use zerocopy::byteorder::ByteOrder;

/// One relocation: where, by which rule, against which symbol (gABI ch. 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// `r_offset`: bytes from the start of the section (`ET_REL`), else an address.
    pub offset: u64,
    /// Index of the symbol, or 0 for none.
    pub symbol: u32,
    /// Type: the number of a [`Kind`](crate::Kind).
    pub r#type: u32,
    /// Addend, or `None` if the place holds it.
    pub addend: Option<i64>,
}

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

/// The relocations of one section.
#[derive(Clone, Copy)]
pub enum Relocations<'a> {
    /// `SHT_RELA`: with addends.
    Rela(Table<'a, Rela>),
    /// `SHT_REL`: addends are at the places.
    Rel(Table<'a, Rel>),
}

impl<'a> Relocations<'a> {
    /// Number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Rela(table) => table.len(),
            Self::Rel(table) => table.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Record `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Record> {
        match self {
            Self::Rela(table) => table.get(index),
            Self::Rel(table) => table.get(index),
        }
    }

    /// The records in order.
    #[must_use]
    pub fn iter(&self) -> RelocationIter<'a> {
        match self {
            Self::Rela(table) => RelocationIter::Rela(table.iter()),
            Self::Rel(table) => RelocationIter::Rel(table.iter()),
        }
    }
}

impl<'a> IntoIterator for Relocations<'a> {
    type Item = Record;
    type IntoIter = RelocationIter<'a>;

    fn into_iter(self) -> RelocationIter<'a> {
        self.iter()
    }
}

/// The records of a section in order. Internal iteration asks for the form once, not for every record.
#[derive(Clone)]
pub enum RelocationIter<'a> {
    /// Of `SHT_RELA`.
    Rela(TableIter<'a, Rela>),
    /// Of `SHT_REL`.
    Rel(TableIter<'a, Rel>),
}

impl Iterator for RelocationIter<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        match self {
            Self::Rela(iter) => iter.next(),
            Self::Rel(iter) => iter.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Rela(iter) => iter.size_hint(),
            Self::Rel(iter) => iter.size_hint(),
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, Record) -> B>(self, init: B, f: F) -> B {
        match self {
            Self::Rela(iter) => iter.fold(init, f),
            Self::Rel(iter) => iter.fold(init, f),
        }
    }
}

impl ExactSizeIterator for RelocationIter<'_> {}

/// Symbol and type of a 64-bit `r_info`.
const fn split64(info: u64) -> (u32, u32) {
    ((info >> 32) as u32, info as u32)
}

/// Symbol and type of a 32-bit `r_info`.
const fn split32(info: u32) -> (u32, u32) {
    (info >> 8, info & 0xff)
}

macro_rules! from_raw {
    ($raw:ident, $split:ident) => {
        impl<O: ByteOrder> From<$raw::Rela<O>> for Record {
            #[inline]
            fn from(raw: $raw::Rela<O>) -> Self {
                let (symbol, r#type) = $split(raw.r_info.get());
                Self {
                    offset: raw.r_offset.get().into(),
                    symbol,
                    r#type,
                    addend: Some(raw.r_addend.get().into()),
                }
            }
        }

        impl<O: ByteOrder> From<$raw::Rel<O>> for Record {
            #[inline]
            fn from(raw: $raw::Rel<O>) -> Self {
                let (symbol, r#type) = $split(raw.r_info.get());
                Self { offset: raw.r_offset.get().into(), symbol, r#type, addend: None }
            }
        }
    };
}
from_raw!(raw32, split32);
from_raw!(raw64, split64);
