//! What relocations need beside what single symbols do.

use crate::model::bounds::Bounds;
use crate::model::options::Target2;
use crate::model::spans::Group;
use crate::model::storage::SymbolRange;
use crate::model::unwind_index::UnwindIndex;

/// What was found beside the needs of single symbols.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanResult {
    /// Whether some relocation is for padding.
    pub(crate) pads: bool,
    /// Some relocation asks for the module's own pair of TLS entries.
    pub(crate) tls_module: bool,
    /// Some relocation calls code that asks a TLS descriptor.
    pub(crate) tls_call: bool,
    /// Some relocation is for thread-local variables.
    pub(crate) threads: bool,
    /// Some relocation is rewritten.
    pub(crate) transitions: bool,
    /// First address that is too high for the image, if there is one: some place is too narrow for all of them.
    pub(crate) limit: Option<u64>,
    /// Offset of the word that `__dso_handle` means, in the GOT.
    pub(crate) handle: Option<u64>,
    /// The ELF header that `__ehdr_start` means: the group it is in, and where.
    pub(crate) header: Option<(Group, u64)>,
    /// The index of Arm's unwinding tables, if something asks where it is.
    pub(crate) unwind_index: Option<UnwindIndex>,
    /// Some symbol means a place that is known when all others are.
    pub(crate) edges: bool,
    /// Whether there is more code than every branch spans.
    pub(crate) is_large: bool,
    /// How far the shortest of those branches go that may not reach their targets, if the code is large.
    pub(crate) reach: Option<u64>,
    /// What the processors can do that the objects are for.
    pub(crate) processor: u32,
    /// Where unwinding tables of Arm find type information.
    pub(crate) target2: Target2,
    /// What instructions may be relaxed by.
    pub(crate) bounds: Bounds,
    /// Symbols of which the image has more than what their sections hold.
    pub(crate) special: SymbolRange,
}

/// Size of the ELF header that `__ehdr_start` means, in bytes.
pub(crate) const fn header_size(address_size: u64) -> u64 {
    if address_size == 8 { 64 } else { 52 }
}
