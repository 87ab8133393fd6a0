//! A search for containers in ordinary data, by their magic numbers.

use crate::container::Container;
use crate::offload::OffloadBinary;
use crate::raw::REGION_MAGIC;
use crate::raw_llvm::OFFLOAD_MAGIC;
use crate::region::Region;
use crate::span::Span;
use core::iter::FusedIterator;

/// Containers start at multiples of this: all tools align them so.
const ALIGNMENT: usize = 8;
/// Words of eight bytes looked at together, so that the compiler can use vectors.
const BATCH: usize = 32;
/// Bytes of which four [parts](PART) are looked through side by side.
const BLOCK: usize = 4 * PART;
const PART: usize = 1 << 14;

/// Bytes of memory searched before the caller hears of it: windows begin at multiples of this.
const WINDOW: u64 = 1 << 20;

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
        span = align(span, address.wrapping_add(span.at().wrapping_sub(start)))?;
        if span.size() < ALIGNMENT as u64 {
            return None;
        }
        let window = window(span, address.wrapping_add(span.at().wrapping_sub(start)));
        let Some(found) = find(window.bytes()) else {
            return Some(Next::Passed(span.tail(window.size())?));
        };
        span = span.tail(found)?;
        if let Some(container) = check(span) {
            return Some(Next::Found(container, span.tail(container.size())?));
        }
        span = span.tail(ALIGNMENT as u64)?;
    }
}

/// The start of `span`, which lies at `address` in memory, up to the next window.
fn window(span: Span<'_>, address: u64) -> Span<'_> {
    let size = WINDOW.saturating_sub(address % WINDOW);
    span.part("window", 0, size).unwrap_or(span)
}

/// A part of what a [`Scan`](crate::Scan) searches, which may be looked through on another core before.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    span: Span<'a>,
    address: u64,
}

impl<'a> Window<'a> {
    /// Its bytes.
    #[must_use]
    pub const fn span(&self) -> Span<'a> {
        self.span
    }

    /// Offset in the file of the first magic number, which may or may not begin a container; of the window's end, if there is none. All
    /// bytes up to there are read.
    #[must_use]
    pub fn first(&self) -> u64 {
        let aligned = align(self.span, self.address);
        let end = self.span.at().saturating_add(self.span.size());
        let found = aligned.and_then(|span| Some(span.at().saturating_add(find(span.bytes())?)));
        found.unwrap_or(end)
    }
}

/// The windows of what a [`Scan`](crate::Scan) searches, one after another.
#[derive(Clone, Debug)]
pub struct Windows<'a> {
    rest: Option<Span<'a>>,
    address: u64,
}

impl<'a> Windows<'a> {
    pub(crate) const fn new(rest: Option<Span<'a>>, address: u64) -> Self {
        Self { rest, address }
    }
}

impl<'a> Iterator for Windows<'a> {
    type Item = Window<'a>;

    fn next(&mut self) -> Option<Window<'a>> {
        let rest = self.rest.take().filter(|rest| rest.size() != 0)?;
        let (span, address) = (window(rest, self.address), self.address);
        self.rest = rest.tail(span.size());
        self.address = address.wrapping_add(span.size());
        Some(Window { span, address })
    }
}

impl FusedIterator for Windows<'_> {}

/// `span`, which lies at `address` in memory, from the first multiple of 8 on.
fn align(span: Span<'_>, address: u64) -> Option<Span<'_>> {
    span.tail(address.wrapping_neg() % ALIGNMENT as u64)
}

/// Offset of the first magic number at a multiple of 8.
fn find(bytes: &[u8]) -> Option<u64> {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let clean = blocks.iter().position(|block| !is_clean(block)).unwrap_or(blocks.len());
    let clean = clean.saturating_mul(BLOCK);
    let (words, _) = bytes.get(clean..)?.as_chunks::<8>();
    let (batches, _) = words.as_chunks::<BATCH>();
    let first = batches.iter().position(has_magic).unwrap_or(batches.len());
    let first = first.saturating_mul(BATCH);
    let found = words.get(first..)?.iter().position(|word| is_magic(*word))?;
    let found = first.saturating_add(found).saturating_mul(8);
    Some((clean as u64).saturating_add(found as u64))
}

/// Whether no word of a block is a magic number. Its four parts are looked through side by side: memory gives more then than one
/// place after another.
fn is_clean(block: &[u8; BLOCK]) -> bool {
    let [a, b, c, d] = block.as_chunks::<PART>().0 else { return false };
    let mut side_by_side = batches(a).zip(batches(b)).zip(batches(c).zip(batches(d)));
    !side_by_side.any(|((a, b), (c, d))| has_magic(a) | has_magic(b) | has_magic(c) | has_magic(d))
}

fn batches(part: &[u8; PART]) -> core::slice::Iter<'_, [[u8; 8]; BATCH]> {
    part.as_chunks::<8>().0.as_chunks::<BATCH>().0.iter()
}

/// Whether any word is a magic number. To stop at the first takes longer than to look at all.
fn has_magic(batch: &[[u8; 8]; BATCH]) -> bool {
    batch.iter().fold(0, |any, &word| any | u32::from(is_magic(word))) != 0
}

fn is_magic([a, b, c, d, ..]: [u8; 8]) -> bool {
    let word = u32::from_le_bytes([a, b, c, d]);
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
