//! Objects relocated for another address than the one where they are: [`Loader::link`](crate::Loader::link).
//!
//! ```
//! use exec_host::{Loader, Process};
//!
//! # #[cfg(target_arch = "x86_64")] {
//! let object = include_bytes!("../../fixtures/x86_64/elftest.o");
//! let image = Loader::new().link([&object[..]], Process::new(), |room| {
//!     assert!(room.size >= 4096 && room.alignment == 4096);
//!     0x7000_0000 // where another process has so much room
//! })?;
//! assert_eq!(image.address("foo"), Some(0x7000_0000));
//! for segment in image.segments() {
//!     let bytes = image.bytes_of(&segment); // to be written to image.base() + segment.offset, then protected by segment.flags
//!     assert!(bytes.len() as u64 == segment.size);
//! }
//! # }
//! # Ok::<(), exec_host::Error>(())
//! ```

use crate::Host;
use crate::at_once;
use crate::contents::{code, copy_constants, globals};
use crate::error::Error;
use crate::external::External;
use crate::fragments::Fragments;
use crate::initialize::Calls;
use crate::notable::Notable;
use crate::symbols::{Exports, Keeper, LoadSymbols};
use crate::unwind;
use core::fmt;
use elf_core::Name;
use elf_layout::Layout;

pub use crate::memory::{ImageMemory, MemoryRequirements, MemorySource};
pub use elf_core::SegmentFlags;
pub use elf_layout::Segment;

/// Relocated objects that are somewhere else.
pub struct LinkedImage {
    base: u64,
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    exports: Exports,
    calls: Calls,
    unwinding_tables: Vec<u64>,
    keepers: Vec<Keeper>,
}

impl fmt::Debug for LinkedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkedImage")
            .field("base", &format_args!("{:#x}", self.base))
            .field("size", &self.bytes.len())
            .field("segments", &self.segments)
            .finish_non_exhaustive()
    }
}

impl LinkedImage {
    /// Relocates a layout for `base`.
    pub(crate) fn new(
        layout: &Layout<'_, '_, Host>,
        notable: &Notable,
        base: u64,
        links: &mut LoadSymbols<'_>,
    ) -> Result<Self, Error> {
        let size = usize::try_from(layout.size());
        let size = size.map_err(|_| Error::OutOfMemory { size: layout.size() })?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| Error::OutOfMemory { size: layout.size() })?;
        bytes.resize(size, 0);
        if let Some(limit) = layout.limit()
            && base.checked_add(layout.size()).is_none_or(|end| end > limit)
        {
            return Err(Error::NoLowMemory { size: layout.size(), limit });
        }
        at_once::write(layout, &mut bytes, base, &[])?;
        copy_constants(layout, &mut bytes, links);
        let code = code(layout, base);
        Fragments::refuse(layout, &notable.fragments)?;
        let calls = Calls::collect(layout, &notable.calls, &bytes, base, &code)?;
        unwind::check(layout, &bytes, base, &code)?;
        let files = layout.files().iter().copied().map(Some);
        let exports =
            Exports::collect(files, &globals(layout, base), &code, &[], |object, symbol| {
                layout.is_definition(object, symbol)
            });
        let tables = layout.unwinding_tables();
        let unwinding_tables = tables.map(|(offset, _)| base.wrapping_add(offset)).collect();
        let segments = layout.segments().collect();
        let keepers = links.take_keepers();
        Ok(Self { base, bytes, segments, exports, calls, unwinding_tables, keepers })
    }

    /// The address that the first byte will have.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// All bytes, from the base on.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The parts by permission, on pages of their own, their offsets from the base on.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        self.segments.iter().copied()
    }

    /// The bytes of a segment.
    #[must_use]
    pub fn bytes_of(&self, segment: &Segment) -> &[u8] {
        let start = usize::try_from(segment.offset).ok();
        let bytes = start.and_then(|start| self.bytes.get(start..));
        let size = usize::try_from(segment.size).ok();
        bytes.and_then(|bytes| bytes.get(..size?)).unwrap_or_default()
    }

    /// The address that a global symbol will have, unless it is hidden.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        self.exports.get(Name::from(name)).map(External::address)
    }

    /// Addresses of the constructors, in the order to call them, with `argc`, `argv` and `envp` as arguments.
    #[must_use]
    pub fn constructors(&self) -> &[u64] {
        self.calls.constructors()
    }

    /// Addresses of the destructors, in the order to call them, after `__cxa_finalize` of the base.
    #[must_use]
    pub fn destructors(&self) -> &[u64] {
        self.calls.destructors()
    }

    /// Addresses of the unwinding tables, for `__register_frame` over there. They were checked, and a length of 0 ends each.
    #[must_use]
    pub fn unwinding_tables(&self) -> &[u64] {
        &self.unwinding_tables
    }

    /// What has to live as long as the image is in use.
    #[must_use]
    pub fn keepers(&self) -> &[Keeper] {
        &self.keepers
    }
}
