//! Where stubs stand in the code.

/// Most thunk sections.
const MOST: usize = if cfg!(feature = "thunks") { 64 } else { 0 };

/// The thunk sections inside of the code; one more stands at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThunkSections {
    /// Offsets in the group of code, rising.
    offsets: [u64; MOST],
    count: usize,
}

impl ThunkSections {
    pub(crate) const NONE: Self = Self { offsets: [0; MOST], count: 0 };

    /// Their offsets in the group of code.
    pub(crate) fn offsets(&self) -> &[u64] {
        if !cfg!(feature = "thunks") {
            return &[];
        }
        self.offsets.get(..self.count).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, offset: u64) -> Option<()> {
        *self.offsets.get_mut(self.count)? = offset;
        self.count = self.count.wrapping_add(1);
        Some(())
    }
}
