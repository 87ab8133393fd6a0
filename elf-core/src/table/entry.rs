//! Which raw row each view is read from.

use crate::error::Error;
use crate::table::class::{Class, Row, with_class};
use crate::table::slices::outside;
use crate::views::encoding::Encoding;
use crate::views::header::FileHeader;
use crate::views::section::{CompressionHeader, SectionHeader};
use crate::views::segment::{Dynamic, ProgramHeader};
use crate::views::symbol::Symbol;
use zerocopy::FromBytes;

/// What a table holds: a raw row in each class, one plain view for all.
pub trait Entry {
    /// The view.
    type View;
    /// The raw row of class `C`.
    type Raw<C: Class>: Row + Into<Self::View>;
    /// What to call the rows in an error.
    const WHAT: &'static str;
}

/// Views that rows of their own are read as.
macro_rules! entries {
    ($($view:ident: $raw:ident = $what:literal;)*) => {$(
        impl Entry for $view {
            type View = Self;
            type Raw<C: Class> = C::$raw;
            const WHAT: &'static str = $what;
        }
    )*};
}
entries! {
    FileHeader: Ehdr = "file header";
    SectionHeader: Shdr = "section headers";
    CompressionHeader: Chdr = "compression header";
    ProgramHeader: Phdr = "program headers";
    Dynamic: Dyn = "dynamic entries";
    Symbol: Sym = "symbols";
}

/// The one row at `offset` in `bytes`, which lie at file offset `at`.
///
/// # Errors
/// [`ErrorKind::Outside`] unless all of it lies inside `bytes`.
#[inline]
pub(crate) fn row<E: Entry>(
    bytes: &[u8],
    encoding: Encoding,
    offset: u64,
    at: u64,
) -> Result<E::View, Error> {
    let row = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
    row.and_then(|row| view::<E>(row, encoding))
        .ok_or_else(|| outside(bytes, E::WHAT, at.saturating_add(offset), 1))
}

/// The row that `bytes` start with.
// a part of every loop over rows where there is room for code, else one function for all of them
#[cfg(target_pointer_width = "64")]
#[inline]
pub(crate) fn view<E: Entry>(bytes: &[u8], encoding: Encoding) -> Option<E::View> {
    with_class!(encoding, C => {
        E::Raw::<C>::ref_from_prefix(bytes).ok().map(|(row, _)| (*row).into())
    })
}

/// The same of a copy that is aligned: small processors read words anywhere else byte by byte, which is several times the code.
#[cfg(not(target_pointer_width = "64"))]
#[inline(never)]
pub(crate) fn view<E: Entry>(bytes: &[u8], encoding: Encoding) -> Option<E::View> {
    let row = aligned(bytes, row_size::<E>(encoding))?;
    with_class!(encoding, C => {
        E::Raw::<C>::ref_from_prefix(&row.0).ok().map(|(row, _)| (*row).into())
    })
}

/// A row as it stands in a file, every word of it at an address of its own size.
#[cfg(not(target_pointer_width = "64"))]
#[repr(align(8))]
// a file header or section header of 64 bits is the largest
struct Aligned([u8; 64]);

/// The row of so many bytes that `bytes` start with.
#[cfg(not(target_pointer_width = "64"))]
#[inline(never)]
fn aligned(bytes: &[u8], size: usize) -> Option<Aligned> {
    let bytes = bytes.get(..size)?;
    // the compiler's library would fill the row first
    Some(Aligned(core::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))))
}

/// Size of a row in bytes.
#[inline]
pub(crate) const fn row_size<E: Entry>(encoding: Encoding) -> usize {
    with_class!(encoding, C => size_of::<E::Raw<C>>())
}
