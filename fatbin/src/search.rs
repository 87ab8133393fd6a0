//! A search for containers in ordinary data, by their magic numbers.

use crate::container::Container;
use crate::offload::OffloadBinary;
use crate::raw::REGION_MAGIC;
use crate::raw_llvm::OFFLOAD_MAGIC;
use crate::region::Region;
use crate::span::Span;

/// Containers start at multiples of this: all tools align them so.
const ALIGNMENT: usize = 8;
/// Words of four bytes looked at together, so that the compiler can use vectors.
const BATCH: usize = 64;

/// Bytes searched before the caller hears of it.
const WINDOW: usize = 8 << 20;

/// What a step of the search met.
pub(crate) enum Next<'a> {
    /// A container, and what lies behind it.
    Found(Container<'a>, Span<'a>),
    /// No container up to where the rest begins.
    Passed(Span<'a>),
}

/// The next container in `span`, looked for in a window of it; none at its end. `address` is where `span` lies in memory:
/// it tells where the multiples of 8 are.
///
/// A magic number alone proves nothing: it is a container only if all its headers make sense, to the last entry.
pub(crate) fn next<'a>(mut span: Span<'a>, address: u64) -> Option<Next<'a>> {
    let start = span.at();
    loop {
        let behind = address.wrapping_add(span.at().wrapping_sub(start)) % ALIGNMENT as u64;
        span = span.tail((ALIGNMENT as u64).wrapping_sub(behind) % ALIGNMENT as u64)?;
        if span.size() < ALIGNMENT as u64 {
            return None;
        }
        let window = span.bytes().get(..WINDOW).unwrap_or(span.bytes());
        let Some(found) = find(window) else {
            return Some(Next::Passed(span.tail(window.len() as u64)?));
        };
        span = span.tail(found)?;
        if let Some(container) = check(span) {
            return Some(Next::Found(container, span.tail(container.size())?));
        }
        span = span.tail(ALIGNMENT as u64)?;
    }
}

/// Offset of the first magic number at a multiple of 8.
fn find(bytes: &[u8]) -> Option<u64> {
    let (mut words, _) = bytes.as_chunks::<4>();
    let mut passed = 0_usize;
    loop {
        let (batches, _) = words.as_chunks::<BATCH>();
        let clean = batches.iter().position(has_magic).unwrap_or(batches.len());
        let clean = clean.saturating_mul(BATCH);
        let (next, _) = words.get(clean..)?.as_chunks::<2>();
        let next = next.get(..BATCH / 2).unwrap_or(next);
        passed = passed.saturating_add(clean);
        if let Some(found) = next.iter().position(|&[word, _]| is_magic(word)) {
            let found = passed.saturating_add(found.saturating_mul(2));
            return Some((found as u64).saturating_mul(4));
        }
        passed = passed.saturating_add(BATCH);
        words = words.get(clean.saturating_add(BATCH)..)?;
    }
}

/// Whether any word is a magic number. Of two words one cannot be where a container begins, but to leave it out takes longer than
/// to look at it; so does stopping at the first.
fn has_magic(batch: &[[u8; 4]; BATCH]) -> bool {
    batch.iter().fold(0, |any, &word| any | u32::from(is_magic(word))) != 0
}

fn is_magic(word: [u8; 4]) -> bool {
    let word = u32::from_le_bytes(word);
    (word == REGION_MAGIC) | (word == OFFLOAD_MAGIC)
}

/// The container at the start of `span`, if there is one and all its headers are good.
fn check(span: Span<'_>) -> Option<Container<'_>> {
    if span.magic() == REGION_MAGIC {
        let region = Region::parse(span).ok()?;
        let good = region.size() > 16 && region.entries().all(|entry| entry.is_ok());
        return good.then_some(Container::Region(region));
    }
    let binary = OffloadBinary::parse(span).ok()?;
    let good = binary.compression().is_some() || binary.images().all(|image| image.is_ok());
    (good && binary.size() > 40).then_some(Container::Offload(binary))
}
