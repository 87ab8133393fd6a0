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
    /// Whether some symbol is an indirect function, or may be replaced.
    pub(crate) indirect: bool,
    /// Symbols of which the image has more than what their sections hold.
    pub(crate) special: SymbolRange,
}

#[cfg(all(feature = "alloc", feature = "parts"))]
impl ScanResult {
    /// Adds what a scan of other objects has found, of which all else was known before.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            pads,
            tls_module,
            tls_call,
            threads,
            transitions,
            limit,
            reach,
            // of symbols, each of which is noted by itself
            special: _,
            // known behind the scan
            indirect: _,
            // known before the scan
            handle: _,
            header: _,
            unwind_index: _,
            edges: _,
            is_large: _,
            processor: _,
            target2: _,
            bounds: _,
        } = *other;
        let least = |one: Option<u64>, other| one.into_iter().chain(other).min();
        self.pads |= pads;
        self.tls_module |= tls_module;
        self.tls_call |= tls_call;
        self.threads |= threads;
        self.transitions |= transitions;
        self.limit = least(self.limit, limit);
        self.reach = least(self.reach, reach);
    }
}

/// Size of the ELF header that `__ehdr_start` means, in bytes.
pub(crate) const fn header_size(address_size: u64) -> u64 {
    if address_size == 8 { 64 } else { 52 }
}

#[cfg(all(test, feature = "alloc", feature = "parts"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_anywhere_is_in_all() {
        let sum = |mut one: ScanResult, other| {
            one.add(&other);
            one
        };
        let bits: [fn(&mut ScanResult) -> &mut bool; 5] = [
            |result| &mut result.pads,
            |result| &mut result.tls_module,
            |result| &mut result.tls_call,
            |result| &mut result.threads,
            |result| &mut result.transitions,
        ];
        for (at, bit) in bits.into_iter().enumerate() {
            let (none, mut one) = (ScanResult::default(), ScanResult::default());
            *bit(&mut one) = true;
            for (a, b) in [(none, one), (one, none), (one, one)] {
                let mut sum = sum(a, b);
                let bits = bits.map(|bit| *bit(&mut sum));
                assert_eq!(bits, core::array::from_fn(|other| other == at));
            }
        }
    }

    #[test]
    fn the_smallest_distances_count() {
        let both = [
            (None, None),
            (Some(3), None),
            (None, Some(3)),
            (Some(3), Some(5)),
            (Some(5), Some(3)),
        ];
        for (a, b) in both {
            let least = a.or(b).map(|_| 3);
            let mut one = ScanResult { limit: a, reach: b, ..ScanResult::default() };
            one.add(&ScanResult { limit: b, reach: a, ..ScanResult::default() });
            assert_eq!((one.limit, one.reach), (least, least));
        }
    }

    #[test]
    fn what_was_known_before_stays() {
        let before = ScanResult {
            handle: Some(8),
            header: Some((Group::Text, 4)),
            edges: true,
            is_large: true,
            processor: 7,
            ..ScanResult::default()
        };
        let mut one = before;
        one.special.include(5);
        let mut other = ScanResult::default();
        other.special.include(2);
        one.add(&other);
        assert_eq!((one.handle, one.header, one.processor), (Some(8), Some((Group::Text, 4)), 7));
        assert!(one.edges && one.is_large);
        assert_eq!(one.special.numbers(), 5..6);
    }
}
