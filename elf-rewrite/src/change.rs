//! Regions that change, and what is known of those that do not.

use std::ops::Range;

use crate::edits::With;

/// A region that becomes another.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Offset of the region in the file.
    pub(crate) at: u64,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// What it becomes.
    pub(crate) new: With,
}

impl Change {
    /// Offset of what follows the region.
    pub(crate) const fn end(&self) -> u64 {
        self.at.saturating_add(self.size)
    }

    /// The same change in a part of the file that starts at `start`.
    pub(crate) fn behind(&self, start: u64) -> Self {
        Self { at: self.at.saturating_sub(start), ..self.clone() }
    }

    /// Size of the new region in bytes.
    pub(crate) const fn new_size(&self) -> u64 {
        self.new.size()
    }
}

/// What is known of the contents of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Regions that do not change.
    pub(crate) regions: Vec<Range<u64>>,
    /// Offsets of words that are pointers, if anything is.
    pub(crate) pointers: Vec<u64>,
    /// Names for a new section.
    pub(crate) names: Vec<String>,
    /// Whether regions that would have to move stay as they are where nothing points to them.
    pub(crate) leaves_unreferenced: bool,
}

impl Known {
    /// What is known of the part of the file that has these bytes, counted from its start.
    pub(crate) fn within(&self, part: &Range<u64>) -> Self {
        let inside = |at: &u64| part.contains(at);
        let regions = self.regions.iter().filter(|region| inside(&region.start));
        let behind = |at: u64| at.saturating_sub(part.start);
        Self {
            regions: regions.map(|one| behind(one.start)..behind(one.end)).collect(),
            pointers: self.pointers.iter().copied().filter(inside).map(behind).collect(),
            names: self.names.clone(),
            leaves_unreferenced: self.leaves_unreferenced,
        }
    }
}
