//! The image that a layout makes, as strips.

use super::{Part, Placement, SegmentRow, What};
use crate::picture::{Block, Kind, Strip};

/// The whole image, then each of its segments.
pub(super) fn strips(placement: &Placement<'_>) -> Vec<Strip> {
    let Placement { machine, size, alignment, segments, fixed, .. } = placement;
    let whole = segments.iter().map(|segment| Block {
        start: segment.offset,
        size: segment.size,
        kind: of_segment(segment),
        name: segment.permissions.clone(),
    });
    let mut strips = vec![Strip {
        title: format!("{machine}, image of {size:#x} bytes, aligned to {alignment:#x}"),
        start: 0,
        size: *size,
        blocks: whole.collect(),
        ranges: Vec::new(),
    }];
    strips.extend(segments.iter().filter(|segment| segment.size > 0).map(|segment| Strip {
        title: format!("segment {}, {:#x} bytes", segment.permissions, segment.size),
        start: segment.offset,
        size: segment.size,
        blocks: blocks(&segment.parts, of_segment(segment)),
        ranges: zeros_of_threads(&segment.parts),
    }));
    strips.extend(fixed.iter().map(|part| Strip {
        title: String::from("at an address of its own"),
        start: part.offset,
        size: part.size,
        blocks: blocks(core::slice::from_ref(part), Kind::Data),
        ranges: Vec::new(),
    }));
    strips
}

pub(super) fn of_segment(segment: &SegmentRow<'_>) -> Kind {
    match segment.permissions.as_bytes() {
        [.., b'x'] => Kind::Code,
        [_, b'w', _] => Kind::Data,
        _ => Kind::ReadOnly,
    }
}

fn blocks(parts: &[Part<'_>], usual: Kind) -> Vec<Block> {
    let with_room = parts.iter().filter(|part| !part.takes_no_room);
    with_room.map(|part| block(part, kind(part, usual))).collect()
}

/// Zeros of thread-local storage lie where what follows them does.
fn zeros_of_threads(parts: &[Part<'_>]) -> Vec<Block> {
    let zeros = parts.iter().filter(|part| part.takes_no_room);
    zeros.map(|part| block(part, Kind::Zeros)).collect()
}

pub(super) fn kind(part: &Part<'_>, usual: Kind) -> Kind {
    match part.what {
        What::Section if part.zeros => Kind::Zeros,
        What::Section => usual,
        What::Common => Kind::Zeros,
        What::Got => Kind::Got,
        What::Stubs => Kind::Stubs,
    }
}

fn block(part: &Part<'_>, kind: Kind) -> Block {
    let mut name = match (part.what, part.name) {
        (What::Got, _) => String::from("GOT"),
        (What::Stubs, _) => String::from("stubs"),
        (_, name) => name.map(|name| name.readable().to_string()).unwrap_or_default(),
    };
    if let Some(object) = part.object {
        name = format!("{name} ({object})");
    }
    Block { start: part.offset, size: part.size, kind, name }
}
