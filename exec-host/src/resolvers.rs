//! Resolvers of indirect functions (`STT_GNU_IFUNC`), called as the C library calls them.

use crate::Host;
use crate::machine::resolver;
use crate::memory::Mapping;
use crate::word;
use elf_layout::Layout;

/// The resolvers of a load, and where their answers go.
#[derive(Debug, Default)]
pub(crate) struct Resolvers {
    /// Address of a resolver, and of the word for its answer.
    calls: Vec<(u64, u64)>,
}

impl Resolvers {
    /// Those of an image at `base`.
    pub(crate) fn collect(layout: &Layout<'_, '_, Host>, base: u64) -> Self {
        let calls = layout.indirect_functions().map(|function| {
            (base.wrapping_add(function.resolver), base.wrapping_add(function.entry))
        });
        Self { calls: calls.collect() }
    }

    /// Whether there are none.
    pub(crate) const fn are_none(&self) -> bool {
        self.calls.is_empty()
    }

    /// Calls them, one after the other, and stores what they say. The words cannot be written any more afterwards.
    ///
    /// # Safety
    /// The resolvers are executable, sound to call, and this is their only call; the words are writable, and no code of the load runs.
    pub(crate) unsafe fn run(&self, memory: &Mapping) {
        for &(resolver, entry) in &self.calls {
            // SAFETY: as the caller guarantees.
            let address = unsafe { resolver::call(resolver) };
            // SAFETY: a word of the GOT, aligned.
            unsafe { word::write(entry, address) };
        }
        memory.end_writing();
    }
}
