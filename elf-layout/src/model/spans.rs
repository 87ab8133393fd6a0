//! Where sections go: groups by permission, segments on pages of their own.

use crate::error::{Error, ErrorKind};
use crate::model::features::THREAD_LOCAL;
use crate::model::options::{ImageMode, Options};
#[cfg(target_pointer_width = "64")]
use core::marker::PhantomData;
use elf_core::names::{SHT_NOBITS, SHT_NULL};
use elf_core::{SectionFlags, SectionHeader, SegmentFlags};

/// Sections of one kind, which stand together. The order is that of the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Group {
    /// Nothing of the image: addresses as they are.
    #[default]
    Absolute,
    /// Sections at addresses of their own.
    Fixed,
    /// Code.
    Text,
    /// Stubs.
    Stubs,
    /// Read-only data.
    ReadOnly,
    /// Copy relocations: constants of the caller's.
    Copies,
    /// The GOT: read-only once it is filled.
    Got,
    /// The initial values of thread-local storage.
    TlsData,
    /// The zeros of thread-local storage: they occupy no memory here.
    TlsZero,
    /// Writable data.
    Data,
    /// Writable zeros, common symbols behind them.
    Zero,
    /// Read-only data that code reaches by 64-bit addresses (`SHF_X86_64_LARGE`).
    LargeReadOnly,
    /// Writable data of that sort.
    LargeData,
    /// Writable zeros of that sort.
    LargeZero,
    /// What wants to be writable and executable at once.
    WriteExecute,
    /// Everything, in packed mode.
    Packed,
}

const GROUPS: usize = Group::Packed as usize + 1;

/// The segments: their permissions and groups, in the order of the image.
const SEGMENTS: [(SegmentFlags, &[Group]); 7] = {
    use Group::*;
    const R: SegmentFlags = SegmentFlags::READ;
    const W: SegmentFlags = R.union(SegmentFlags::WRITE);
    const X: SegmentFlags = R.union(SegmentFlags::EXECUTE);
    [
        (W.union(X), &[Packed]),
        (X, &[Text, Stubs]),
        (R, &[ReadOnly, Copies, Got, TlsData, TlsZero]),
        (W, &[Data, Zero]),
        (R, &[LargeReadOnly]),
        (W, &[LargeData, LargeZero]),
        (W.union(X), &[WriteExecute]),
    ]
};

/// Part of the image with one permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes from the start of the image, a multiple of the page size unless the layout is packed.
    pub offset: u64,
    /// Size in bytes, up to the end of the last section.
    pub size: u64,
    /// Permissions. In a packed layout everything: whoever loads it knows better.
    pub flags: SegmentFlags,
}

impl Segment {
    const EMPTY: Self = Self { offset: 0, size: 0, flags: SegmentFlags::empty() };
}

/// A run of bytes that grows section by section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) alignment: u64,
}

impl Span {
    pub(crate) const EMPTY: Self = Self { offset: 0, size: 0, alignment: 1 };

    /// Appends `size` bytes at `alignment`, a power of two, and gives their offset in the span.
    pub(crate) fn append(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let offset = align_up(self.size, alignment)?;
        self.size = offset.checked_add(size)?;
        self.alignment = self.alignment.max(alignment);
        Some(offset)
    }
}

/// `value` rounded up to `alignment`, a power of two.
pub(crate) fn align_up(value: u64, alignment: u64) -> Option<u64> {
    let low = alignment.wrapping_sub(1);
    Some(value.checked_add(low)? & !low)
}

/// The addresses at which the groups start: added up once, since every symbol asks.
#[cfg(target_pointer_width = "64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bases<'l>([u64; GROUPS.next_power_of_two()], PhantomData<&'l Spans>);

#[cfg(target_pointer_width = "64")]
impl<'l> Bases<'l> {
    /// For an image at `base`.
    pub(crate) fn new(spans: &'l Spans, base: u64) -> Self {
        let mut bases = [0; GROUPS.next_power_of_two()];
        for (start, span) in bases.iter_mut().zip(&spans.groups).skip(Group::Fixed as usize) {
            *start = base.wrapping_add(span.offset);
        }
        Self(bases, PhantomData)
    }

    /// The address of the group's first byte; 0 for [`Group::Absolute`].
    #[inline]
    pub(crate) fn of(&self, group: Group) -> u64 {
        // the mask changes nothing and tells the compiler so
        let index = group as usize & (GROUPS.next_power_of_two() - 1);
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// The same on machines of 32 bits, where code is scarcer than time: added up when asked.
#[cfg(not(target_pointer_width = "64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bases<'l>(&'l Spans, u64);

#[cfg(not(target_pointer_width = "64"))]
impl<'l> Bases<'l> {
    /// For an image at `base`.
    pub(crate) const fn new(spans: &'l Spans, base: u64) -> Self {
        Self(spans, base)
    }

    /// The address of the group's first byte; 0 for [`Group::Absolute`].
    #[inline(never)]
    pub(crate) fn of(&self, group: Group) -> u64 {
        match group {
            Group::Absolute => 0,
            group => self.1.wrapping_add(self.0.group(group).offset),
        }
    }
}

/// All groups and the segments they make.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    groups: [Span; GROUPS],
    segments: [Segment; SEGMENTS.len()],
    /// End of the sections at addresses of their own.
    pub(crate) fixed_end: u64,
    /// Size of the image in bytes.
    pub(crate) size: u64,
    /// Size of what is at its end and reached by 64-bit addresses, in bytes.
    pub(crate) large: u64,
    /// Alignment of the image in bytes.
    pub(crate) alignment: u64,
}

impl Spans {
    pub(crate) fn new() -> Self {
        Self {
            groups: [Span::EMPTY; GROUPS],
            segments: [Segment::EMPTY; SEGMENTS.len()],
            fixed_end: 0,
            size: 0,
            large: 0,
            alignment: 1,
        }
    }

    /// Empty again, in place: a second one beside it is much for the stack of a firmware.
    pub(crate) fn clear(&mut self) {
        self.groups.fill(Span::EMPTY);
        self.segments.fill(Segment::EMPTY);
        (self.fixed_end, self.size, self.large, self.alignment) = (0, 0, 0, 1);
    }

    /// The span of a group.
    #[inline]
    pub(crate) fn group(&self, group: Group) -> &Span {
        match self.groups.get(group as usize) {
            Some(span) => span,
            None => &Span::EMPTY,
        }
    }

    /// Replaces a group.
    pub(crate) fn replace(&mut self, group: Group, span: Span) {
        if let Some(place) = self.groups.get_mut(group as usize) {
            *place = span;
        }
    }

    /// Appends to a group and gives the offset in it; `None` if that is [too large](crate::ErrorKind::TooLarge).
    pub(crate) fn append(&mut self, group: Group, size: u64, alignment: u64) -> Option<u64> {
        self.groups.get_mut(group as usize)?.append(size, alignment)
    }

    /// Most bytes that the image takes with what was appended so far: each group with its padding, on pages of its own.
    pub(crate) fn most(&self, options: &Options) -> u64 {
        let page = match options.mode {
            ImageMode::Segments { page_size } => page_size,
            ImageMode::Packed { .. } => 1,
        };
        let together = self.groups.iter().fold(self.fixed_end, |total, span| {
            [span.size, span.alignment, page]
                .iter()
                .fold(total, |sum, part| sum.saturating_add(*part))
        });
        together.max(options.spread)
    }

    /// The segments that are not empty, in the order of the image, those of sections at their own address left out.
    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        self.segments.iter().copied().filter(|segment| segment.size > 0)
    }

    /// The groups that have more than zeros, in the order of the image.
    #[cfg(feature = "parts")]
    pub(crate) fn contents(&self) -> impl Iterator<Item = (Group, &Span)> {
        let groups = SEGMENTS.iter().flat_map(|(_, groups)| *groups);
        let groups = groups
            .filter(|group| !matches!(group, Group::TlsZero | Group::Zero | Group::LargeZero));
        groups.map(|&group| (group, self.group(group))).filter(|(_, span)| span.size > 0)
    }

    /// The segment of a group; `None` of addresses that are in none.
    pub(crate) fn segment_of(&self, group: Group) -> Option<Segment> {
        let mut segments = self.segments.iter().zip(&SEGMENTS);
        segments.find(|(_, (_, groups))| groups.contains(&group)).map(|(segment, _)| *segment)
    }

    /// Gives every group its place in the image, now that their sizes are known.
    pub(crate) fn finish(&mut self, options: &Options) -> Result<(), Error> {
        self.place_groups(options).ok_or(Error::object(0, ErrorKind::TooLarge))
    }

    /// The same; `None` if the image is too large.
    fn place_groups(&mut self, options: &Options) -> Option<()> {
        let page = match options.mode {
            ImageMode::Segments { page_size } => page_size,
            ImageMode::Packed { .. } => 1,
        };
        let mut end = self.fixed_end;
        self.alignment = page;
        // both are one block to every thread
        let (data, zeros) = (self.group(Group::TlsData), self.group(Group::TlsZero));
        // zeros without data are where the block starts
        let first = if data.size == 0 { Group::TlsZero } else { Group::TlsData };
        let alignment = data.alignment.max(zeros.alignment);
        if THREAD_LOCAL && let Some(block) = self.groups.get_mut(first as usize) {
            block.alignment = alignment;
        }
        for (segment, &(flags, groups)) in self.segments.iter_mut().zip(&SEGMENTS) {
            let (mut first, mut alignment, before) = (None, page, end);
            for &group in groups {
                let Some(span) = self.groups.get_mut(group as usize) else { continue };
                if span.size == 0 {
                    continue;
                }
                alignment = alignment.max(span.alignment);
                let start = if first.is_none() { align_up(end, page)? } else { end };
                let start = align_up(start, span.alignment)?;
                first.get_or_insert(start);
                span.offset = start;
                if !THREAD_LOCAL || group != Group::TlsZero {
                    end = start.checked_add(span.size)?;
                }
            }
            let offset = first.unwrap_or(end);
            match groups {
                [Group::LargeReadOnly | Group::LargeData, ..] => {
                    self.large = self.large.saturating_add(end.saturating_sub(before));
                }
                _ if end > before => self.large = 0,
                _ => {}
            }
            self.alignment = self.alignment.max(alignment);
            *segment = Segment { offset, size: end.saturating_sub(offset), flags };
        }
        let zeros = self.group(Group::TlsZero).offset;
        if THREAD_LOCAL
            && let Some(block) =
                self.groups.get_mut(Group::TlsData as usize).filter(|block| block.size == 0)
        {
            block.offset = zeros;
        }
        // an image larger than half of the address space cannot be addressed by signed distances
        self.size = Some(end).filter(|&end| end < i64::MAX as u64)?;
        Some(())
    }
}

impl Spans {
    /// Moves segment after segment to the offset that `place` gives for it.
    pub(crate) fn move_segments(
        &mut self,
        mut place: impl FnMut(Segment) -> Option<u64>,
    ) -> Result<(), Error> {
        let refused = Error::object(0, ErrorKind::TooLarge);
        let mut end = self.fixed_end;
        for (segment, &(_, groups)) in self.segments.iter_mut().zip(&SEGMENTS) {
            if segment.size == 0 {
                continue;
            }
            let offset = place(*segment).filter(|offset| offset.is_multiple_of(self.alignment));
            let offset = offset.ok_or(refused)?;
            let by = offset.wrapping_sub(segment.offset);
            for &group in groups {
                if let Some(span) = self.groups.get_mut(group as usize) {
                    span.offset = span.offset.wrapping_add(by);
                }
            }
            segment.offset = offset;
            end = end.max(offset.checked_add(segment.size).ok_or(refused)?);
        }
        self.size = Some(end).filter(|&end| end < i64::MAX as u64).ok_or(refused)?;
        Ok(())
    }
}

/// The group of a section, or `None` if it occupies no memory.
pub(crate) fn group_of(section: &SectionHeader, options: &Options) -> Option<Group> {
    let flags = section.flags;
    if !flags.contains(SectionFlags::ALLOC)
        || flags.contains(SectionFlags::EXCLUDE)
        || section.r#type == SHT_NULL
    {
        return None;
    }
    if matches!(options.mode, ImageMode::Packed { .. }) {
        return Some(Group::Packed);
    }
    let zero = section.r#type == SHT_NOBITS;
    let large = flags.contains(SectionFlags::X86_64_LARGE);
    Some(match (flags.contains(SectionFlags::WRITE), flags.contains(SectionFlags::EXECINSTR)) {
        _ if THREAD_LOCAL && flags.contains(SectionFlags::TLS) => {
            if zero {
                Group::TlsZero
            } else {
                Group::TlsData
            }
        }
        (true, true) => Group::WriteExecute,
        (false, true) => Group::Text,
        (false, false) if large => Group::LargeReadOnly,
        (false, false) => Group::ReadOnly,
        (true, false) if large => {
            if zero {
                Group::LargeZero
            } else {
                Group::LargeData
            }
        }
        (true, false) => {
            if zero {
                Group::Zero
            } else {
                Group::Data
            }
        }
    })
}

/// The alignment of a section in bytes; what it says instead, if that is none.
pub(crate) fn alignment_of(section: &SectionHeader, options: &Options) -> Result<u64, u64> {
    let own = section.alignment.max(1);
    if !own.is_power_of_two() {
        return Err(own);
    }
    Ok(match options.mode {
        ImageMode::Segments { .. } => own,
        ImageMode::Packed { section_alignment } => own.max(section_alignment),
    })
}
