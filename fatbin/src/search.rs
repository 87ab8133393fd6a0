//! A search for containers in ordinary data, by their magic numbers.

use crate::host::Container;
use crate::offload::OffloadBinary;
use crate::raw::REGION_MAGIC;
use crate::raw_llvm::OFFLOAD_MAGIC;
use crate::region::Region;
use crate::span::Span;

/// Containers start at multiples of this: all tools align them so.
const ALIGNMENT: usize = 8;
/// Words looked at together, so that the compiler can use vectors.
const BATCH: usize = 32;

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
    let (words, _) = bytes.as_chunks::<ALIGNMENT>();
    let (batches, _) = words.as_chunks::<BATCH>();
    let dirty = |batch: &[[u8; ALIGNMENT]; BATCH]| {
        batch.iter().fold(false, |any, word| any | is_magic(word))
    };
    let clean = batches.iter().position(dirty).unwrap_or(batches.len());
    let clean = clean.saturating_mul(BATCH);
    let found = words.get(clean..)?.iter().position(is_magic)?;
    Some((found.saturating_add(clean) as u64).saturating_mul(ALIGNMENT as u64))
}

fn is_magic(word: &[u8; ALIGNMENT]) -> bool {
    let [a, b, c, d, ..] = *word;
    let magic = u32::from_le_bytes([a, b, c, d]);
    (magic == REGION_MAGIC) | (magic == OFFLOAD_MAGIC)
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
