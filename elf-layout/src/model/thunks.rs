//! Where stubs stand in the code.

use elf_core::Arch;

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
    pub(crate) fn offsets<A: Arch>(&self) -> &[u64] {
        if !const { has_thunks::<A>() } {
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

/// Whether code of this architecture may have thunks.
pub(crate) const fn has_thunks<A: Arch>() -> bool {
    let mut rest = A::STUBS;
    while let [stub, tail @ ..] = rest {
        if stub.reach.is_some() {
            return cfg!(feature = "thunks");
        }
        rest = tail;
    }
    false
}
