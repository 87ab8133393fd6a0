//! Relocation records: one `Rel` or `Rela`.

use crate::structs::{raw32, raw64};
use zerocopy::byteorder::ByteOrder;

/// One relocation: where, by which rule, against which symbol (gABI ch. 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// `r_offset`: bytes from the start of the section (`ET_REL`), else an address.
    pub offset: u64,
    /// Index of the symbol, or 0 for none.
    pub symbol: u32,
    /// Type: the number of a [`Kind`](crate::Kind). On MIPS64 three types and a special symbol, a byte each from the lowest.
    pub r#type: u32,
    /// Addend, or `None` if the place holds it.
    pub addend: Option<i64>,
}

/// Symbol and type of an `r_info`.
pub(crate) const fn of_info(info: u64, is_64: bool) -> (u32, u32) {
    if is_64 { split64(info) } else { split32(info as u32) }
}

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
