//! The one place where bytes become rows.

use crate::error::{Error, ErrorKind};
use crate::table::class::Row;
use zerocopy::FromBytes;

/// `count` rows at file offset `at`, borrowed from the file.
///
/// # Errors
/// [`ErrorKind::Outside`] unless every row lies inside `file`.
#[cfg(target_pointer_width = "64")]
pub fn rows<'a, T: Row>(
    file: &'a [u8],
    what: &'static str,
    at: u64,
    count: u64,
) -> Result<&'a [T], Error> {
    usize::try_from(at)
        .ok()
        .and_then(|at| file.get(at..))
        .zip(usize::try_from(count).ok())
        .and_then(|(rest, count)| <[T]>::ref_from_prefix_with_elems(rest, count).ok())
        .map(|(rows, _)| rows)
        .ok_or_else(|| outside(file, what, at, count))
}

/// `count` rows at file offset `at`, borrowed from the file.
///
/// On machines of 32 bits, where code is scarcer than time, all rows share the checks.
///
/// # Errors
/// [`ErrorKind::Outside`] unless every row lies inside `file`.
#[cfg(not(target_pointer_width = "64"))]
pub fn rows<'a, T: Row>(
    file: &'a [u8],
    what: &'static str,
    at: u64,
    count: u64,
) -> Result<&'a [T], Error> {
    // the bytes are as many as the rows take
    Ok(<[T]>::ref_from_bytes(span(file, what, at, count, size_of::<T>())?).unwrap_or_default())
}

/// Bytes of so many rows of a size, of which none has more than 64: without the product of twice the width that a check for overflow computes.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) fn times(count: usize, size: usize) -> Option<usize> {
    (count <= usize::MAX / 64 && size <= 64).then(|| count.wrapping_mul(size))
}

/// The bytes of `count` rows of `size` bytes each at file offset `at`.
#[cfg(not(target_pointer_width = "64"))]
#[inline(never)]
pub(crate) fn span<'a>(
    file: &'a [u8],
    what: &'static str,
    at: u64,
    count: u64,
    size: usize,
) -> Result<&'a [u8], Error> {
    let rest = usize::try_from(at).ok().and_then(|at| file.get(at..));
    let found = rest.zip(usize::try_from(count).ok());
    let found = found.and_then(|(rest, count)| rest.get(..times(count, size)?));
    found.ok_or_else(|| outside(file, what, at, count))
}

/// `count` of `what` at file offset `at` are not all in the file.
#[cold]
#[inline(never)]
pub(crate) const fn outside(file: &[u8], what: &'static str, at: u64, count: u64) -> Error {
    Error { at, kind: ErrorKind::Outside { what, count, file: file.len() as u64 } }
}

/// `size` bytes at file offset `at`.
///
/// # Errors
/// [`ErrorKind::Outside`] unless all of them lie inside `file`.
pub fn bytes<'a>(
    file: &'a [u8],
    what: &'static str,
    at: u64,
    size: u64,
) -> Result<&'a [u8], Error> {
    usize::try_from(at)
        .ok()
        .and_then(|at| file.get(at..))
        .zip(usize::try_from(size).ok())
        .and_then(|(rest, size)| rest.get(..size))
        .ok_or_else(|| outside(file, what, at, 1))
}
