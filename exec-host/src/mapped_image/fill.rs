//! What large images are filled with, on several threads: a copy of the file, and relocations that need no symbol.

use crate::at_once::processors;
use crate::memory::HUGE_PAGE;
use elf_core::SegmentFlags;
use elf_image::{Image, LoadSegment, RelativeRows};
use exec_core::threads::on_threads;

/// From how many bytes on several threads copy.
const MANY: usize = 2 * HUGE_PAGE;

/// From how many bytes of it on several threads fill what becomes read-only.
pub(super) const LARGE: u64 = HUGE_PAGE as u64;

/// Fills `memory`, from offset `at` in the image on, which is large, with what the file has of it, and applies relocations, each page with its
/// own; on other threads while this one does something else first. Gives what came of that, and whether all are applied: if not, some are.
pub(super) fn fill<R>(
    memory: &mut [u8],
    (address, at): (u64, u64),
    (data, rows): (&[u8], Option<RelativeRows<'_>>),
    bias: u64,
    first: impl FnOnce() -> R,
) -> (R, bool) {
    let fill = |Part { memory, at, data, rows }: Part<'_, '_>| {
        if let Some(place) = memory.get_mut(..data.len()) {
            place.copy_from_slice(data);
        }
        rows.is_none_or(|rows| rows.apply(memory, at, bias))
    };
    let parts = parts(memory, (address, at), data, rows);
    on_threads(processors(), parts.into_iter(), fill, first)
}

/// The last segment, if most of it is filled by relocations and becomes read-only then, and it is large: huge pages are had sooner than
/// as many pages of the file, each of which is copied.
pub(super) fn large<'a>(image: &Image<'a>) -> Option<LoadSegment<'a>> {
    let (offset, size) = image.relro().filter(|(_, size)| *size > LARGE)?;
    let last = image.segments().last()?;
    let end = offset.saturating_add(size);
    let is_inside = last.offset <= offset && end <= last.offset.saturating_add(last.size);
    let is_most = size >= last.file_size / 2;
    (is_inside && is_most && last.flags.contains(SegmentFlags::WRITE)).then_some(last)
}

/// A part of an image that is filled by itself.
struct Part<'m, 'a> {
    memory: &'m mut [u8],
    /// Where it is in the image.
    at: u64,
    /// What the file has of it.
    data: &'a [u8],
    /// Relocations whose places are in it.
    rows: Option<RelativeRows<'a>>,
}

/// Cuts `memory`, from offset `at` in the image on, into huge pages, with what the file has of each, and the records, which should stand in
/// the order of their places.
fn parts<'m, 'a>(
    memory: &'m mut [u8],
    (address, at): (u64, u64),
    data: &'a [u8],
    rows: Option<RelativeRows<'a>>,
) -> Vec<Part<'m, 'a>> {
    let (mut parts, mut rest, mut data, mut rows) = (Vec::new(), memory, data, rows);
    let (mut address, mut at) = (address, at);
    loop {
        let size = (HUGE_PAGE as u64).wrapping_sub(address % HUGE_PAGE as u64);
        let (memory, behind) = rest.split_at_mut((size as usize).min(rest.len()));
        let (own, others) = data.split_at(memory.len().min(data.len()));
        let end = at.saturating_add(memory.len() as u64);
        let (first, later) = rows.map(|rows| cut(rows, end, behind.is_empty())).unzip();
        parts.push(Part { memory, at, data: own, rows: first.flatten() });
        if behind.is_empty() {
            return parts;
        }
        (rest, data, rows) = (behind, others, later.flatten());
        (address, at) = (address.wrapping_add(size), end);
    }
}

/// The records whose places are before `end`, all if it is the last part, and the others.
fn cut<'a>(
    rows: RelativeRows<'a>,
    end: u64,
    is_last: bool,
) -> (Option<RelativeRows<'a>>, Option<RelativeRows<'a>>) {
    let (mut low, mut high) = (0, rows.len());
    while low < high && !is_last {
        let middle = low.midpoint(high);
        if rows.place(middle).is_some_and(|place| place < end) {
            low = middle.saturating_add(1);
        } else {
            high = middle;
        }
    }
    (rows.slice(0..high), rows.slice(high..rows.len()))
}

/// Copies bytes to a place of this size.
pub(super) fn copy(place: &mut [u8], data: &[u8]) {
    if data.len() < MANY {
        place.copy_from_slice(data);
        return;
    }
    let parts = place.chunks_mut(HUGE_PAGE).zip(data.chunks(HUGE_PAGE));
    let copy = |(place, data): (&mut [u8], &[u8])| {
        place.copy_from_slice(data);
        true
    };
    on_threads(processors(), parts, copy, || ());
}
