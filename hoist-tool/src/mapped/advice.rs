//! What the system is told of the pages of a file. Advice that is not taken does no harm.

use memmap2::{Advice, Mmap, UncheckedAdvice};

/// What is wanted are headers far apart: no reading ahead.
pub(super) fn far_apart(map: &Mmap) {
    let _ = map.advise(Advice::Random);
}

/// A range will be read from its start to its end.
pub(super) fn in_order(map: &Mmap, start: usize, size: usize) {
    let _ = map.advise_range(Advice::Sequential, start, size);
}

/// A range will be read at once.
pub(super) fn at_once(map: &Mmap, start: usize, size: usize) {
    let _ = map.advise_range(Advice::WillNeed, start, size);
}

/// A range is not needed any more.
pub(super) fn done(map: &Mmap, start: usize, size: usize) {
    // SAFETY: the mapping is of a file and never written to, so that a page that is dropped comes back with the same bytes: no reference
    // into it sees a change. The range lies inside the mapping.
    let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, size) };
}
