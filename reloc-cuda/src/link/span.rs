//! Parts of objects' sections that are taken when others are left out.

/// A part of an object's section: where it was, where it goes in what is taken of the section, its size.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) size: u64,
}

impl Span {
    /// All of a section.
    pub(super) const fn all(data: &[u8]) -> Self {
        Self { from: 0, to: 0, size: data.len() as u64 }
    }

    pub(super) fn holds(&self, offset: u64) -> bool {
        offset.checked_sub(self.from).is_some_and(|offset| offset < self.size)
    }

    /// Its bytes in the section.
    pub(super) fn of<'d>(&self, section: &'d [u8]) -> &'d [u8] {
        let size = usize::try_from(self.size).unwrap_or(0);
        part_from(section, self.from).and_then(|rest| rest.get(..size)).unwrap_or_default()
    }
}

/// Where offset `offset` of a section goes, if its part is taken.
pub(super) fn moved(spans: &[Span], offset: u64) -> Option<u64> {
    let span = spans.iter().find(|span| span.holds(offset))?;
    offset.checked_sub(span.from)?.checked_add(span.to)
}

/// What is in `data` from an offset on, if there is anything.
pub(super) fn part_from(data: &[u8], from: u64) -> Option<&[u8]> {
    data.get(usize::try_from(from).ok()?..).filter(|rest| !rest.is_empty())
}
