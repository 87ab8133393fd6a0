//! What memory is wanted.

/// What a buffer's memory must be like. The default is device memory, with any content, kept for reuse when it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spec {
    pub(crate) host_visible: bool,
    pub(crate) uncached: bool,
    pub(crate) zeroed: bool,
    pub(crate) kept: bool,
    pub(crate) alignment: u64,
}

/// Memory that belongs to somebody else, for one buffer ([`Buffer::external`](crate::Buffer::external)):
///
/// ```compile_fail,E0382
/// # fn twice<A: exec_core::Allocator>(allocator: &std::sync::Arc<A>, own: exec_core::External) {
/// let spec = exec_core::Spec::new();
/// let one = exec_core::Buffer::external(allocator, own, spec);
/// let two = exec_core::Buffer::external(allocator, own, spec); // use of moved value: `own`
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct External {
    address: u64,
    size: u64,
}

impl Default for Spec {
    fn default() -> Self {
        Self::new()
    }
}

impl Spec {
    /// Device memory with any content, at the alignment of a cache line.
    #[must_use]
    pub const fn new() -> Self {
        Self { host_visible: false, uncached: false, zeroed: false, kept: true, alignment: 64 }
    }

    /// The host can read and write it in place.
    #[must_use]
    pub const fn host_visible(self) -> Self {
        Self { host_visible: true, ..self }
    }

    /// The processor's caches do not hold it.
    #[must_use]
    pub const fn uncached(self) -> Self {
        Self { uncached: true, ..self }
    }

    /// All bytes are zero.
    #[must_use]
    pub const fn zeroed(self) -> Self {
        Self { zeroed: true, ..self }
    }

    /// When it is freed, it goes back to the device at once.
    #[must_use]
    pub const fn not_kept(self) -> Self {
        Self { kept: false, ..self }
    }

    /// The address is a multiple of `alignment`, a power of two.
    #[must_use]
    pub const fn aligned(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }

    /// Whether the host can read and write it in place.
    #[must_use]
    pub const fn is_host_visible(&self) -> bool {
        self.host_visible
    }

    /// Whether the processor's caches must not hold it.
    #[must_use]
    pub const fn is_uncached(&self) -> bool {
        self.uncached
    }

    /// Whether all bytes are zero at first.
    #[must_use]
    pub const fn is_zeroed(&self) -> bool {
        self.zeroed
    }

    /// Whether it may be kept for reuse when it is freed.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.kept
    }

    /// What the address is a multiple of.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        self.alignment
    }
}

impl External {
    /// `size` bytes at `address` of the device.
    ///
    /// # Safety
    /// The bytes are initialized, may be read and written, and are used by nobody else, until the buffer made of them is
    /// freed and no queued call holds it any more.
    #[must_use]
    pub const unsafe fn new(address: u64, size: u64) -> Self {
        Self { address, size }
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }
}
