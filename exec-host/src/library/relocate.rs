//! The relocations of a library that need neither threads nor its own functions.

use super::ahead;
use super::error::LibraryError;
use super::later::Later;
use super::resolve::Resolver;
use crate::Host;
use crate::error::Error;
use crate::mapped_image::{MappedImage, open_words};
use crate::word;
use core::ops::Range;
use elf_core::{Kind, Record, Special};
use elf_image::{ErrorKind, Image};
use std::collections::BTreeSet;

/// Fills the image, if that is to be done, and applies all relocations but those for later.
pub(super) fn relocate(
    image: &Image<'_>,
    mapped: &mut MappedImage,
    resolver: &Resolver<'_, '_>,
    later: &mut Later,
) -> Result<(), Error> {
    let open = mapped.open_pages();
    let (bias, rows) = (mapped.bias, image.relative_rows::<Host>());
    let count = rows.map_or(0, |rows| rows.len());
    let (is_done, done) = {
        // symbols are looked up while other threads fill a large image
        let look_up = || ahead::words(image, resolver, (bias, count), open.as_deref(), later);
        let (found, done) = mapped.fill(image, rows, open.as_deref(), look_up);
        let found = found.filter(|_| done == count);
        (found.is_some_and(|words| mapped.store(&words)), done)
    };
    if is_done {
        return Ok(());
    }
    *later = Later::default();
    each(image, mapped, resolver, (open.as_deref(), done), |record, kind| {
        !later.takes(record, kind, || resolver.is_indirect(record.symbol))
    })
}

/// Applies the relocations that `wanted` takes, of the relative ones at the start of their table all but so many. Pages that are to be read
/// only are made writable for those that want this.
fn each(
    image: &Image<'_>,
    mapped: &mut MappedImage,
    resolver: &Resolver<'_, '_>,
    (open, done): (Option<&[Range<u64>]>, usize),
    mut wanted: impl FnMut(&Record, &'static Kind) -> bool,
) -> Result<(), Error> {
    let key = |record: &Record| (record.offset, record.r#type, record.symbol);
    let (base, mut closed) = (mapped.base, BTreeSet::new());
    // where the last one was found
    let mut last = open.map_or(0..u64::MAX, |_| 0..0);
    let mut is_open = |record: &Record, kind: &Kind| {
        let end = record.offset.saturating_add(width(kind));
        if last.start <= record.offset && end <= last.end {
            return true;
        }
        let mut open = open.iter().copied().flatten();
        let found = open.find(|it| it.start <= record.offset && end <= it.end);
        found.map(|found| last = found.clone()).is_some()
    };
    let first = |record: &Record, kind: &'static Kind| {
        let is_wanted = wanted(record, kind);
        let is_now = is_wanted && is_open(record, kind);
        if is_wanted && !is_now {
            closed.insert(key(record));
        }
        is_now
    };
    let explain = |error| failed(image, resolver, error);
    let words = open_words(open);
    image
        .relocate_within::<Host>(mapped.content(), base, resolver, (words, done), first)
        .map_err(explain)?;
    if !closed.is_empty() {
        mapped.open()?;
        let second = |record: &Record, _: &'static Kind| closed.contains(&key(record));
        image.relocate_where::<Host>(mapped.content(), base, resolver, second).map_err(explain)?;
    }
    Ok(())
}

/// How many bytes a relocation may fill.
pub(super) const fn width(kind: &Kind) -> u64 {
    let words = if matches!(kind.special, Special::Descriptor { .. }) { 2 } else { 1 };
    words * word::SIZE
}

/// Why a relocation failed, in words.
pub(super) fn failed(
    image: &Image<'_>,
    resolver: &Resolver<'_, '_>,
    error: elf_image::Error,
) -> LibraryError {
    let symbol = match error.kind {
        ErrorKind::Relocation(error) => error.symbol,
        _ => 0,
    };
    if let Some(why) = resolver.why(symbol) {
        return why;
    }
    let exports = image.exports().ok().flatten();
    let reference = exports.and_then(|exports| exports.reference(symbol).ok());
    let name = reference.map(|reference| reference.name.to_string()).unwrap_or_default();
    LibraryError::Relocation { error, name }
}
