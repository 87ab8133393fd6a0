//! What the caller decides.

/// How to lay out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Segments by permission, or one blob.
    pub mode: Mode,
    /// The address of the image, if it is known already. Sections that carry an address are placed at it; without a base their
    /// address counts from the image's start.
    pub base: Option<u64>,
    /// Whether loads and branches through the GOT become direct where that does the same ([`Arch::relax`](elf_core::Arch::relax)).
    /// Entries that nobody uses any more are left out. Who wants to change an entry later, to replace a function, says no.
    pub relax: bool,
}

/// Segments by permission, or one blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sections of one permission together, each segment on pages of its own.
    Segments {
        /// Size of a page in bytes, a power of two.
        page_size: u64,
    },
    /// All sections in file order in one segment.
    Packed {
        /// Least alignment of a section in bytes, a power of two; GPUs want 128.
        section_alignment: u64,
    },
}

impl Default for Options {
    /// Segments on pages of 4 KiB, at an address that is not known yet, relaxed.
    fn default() -> Self {
        Self { mode: Mode::Segments { page_size: 4096 }, base: None, relax: true }
    }
}
