//! The two sides of a copy by a device.

use exec_core::{Allocator, Error, Hold, View};

/// Source and destination, held, and how large they are.
pub(crate) struct Sides<A: Allocator> {
    pub(crate) from: Hold<A>,
    pub(crate) to: Hold<A>,
    pub(crate) size: usize,
}

impl<A: Allocator> Sides<A> {
    /// Views of one size that have no byte in common: in what order a device copies, nobody says.
    ///
    /// # Errors
    /// [`Error::Sizes`], [`Error::Overlap`]; as [`View::hold`].
    pub(crate) fn of(from: &View<A>, to: &View<A>) -> Result<Self, Error> {
        if from.size() != to.size() {
            return Err(Error::Sizes { from: from.size(), to: to.size() });
        }
        let size = from.size();
        let (from, to) = (from.hold()?, to.hold()?);
        let bytes = size.saturating_sub(from.address().abs_diff(to.address()));
        if bytes > 0 && from.device() == to.device() {
            return Err(Error::Overlap { bytes });
        }
        let size = usize::try_from(size).map_err(|_| Error::OutOfMemory { size })?;
        Ok(Self { from, to, size })
    }
}
