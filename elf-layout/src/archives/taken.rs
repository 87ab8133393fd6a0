//! What a link has of an archive.

use alloc::collections::BTreeSet;

/// The members of an archive that are part of a link, and which names the archive was asked for already: for archives that are searched
/// [again](super::UndefinedSymbols::search_again).
///
/// It is of one archive and one [`UndefinedSymbols`](super::UndefinedSymbols).
#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub(super) members: BTreeSet<usize>,
    /// How many names had been entered when the archive was asked last: what it had not then, it has not now.
    pub(super) asked: usize,
}

impl Taken {
    /// Nothing is taken, and nothing was asked for.
    #[must_use]
    pub const fn new() -> Self {
        Self { members: BTreeSet::new(), asked: 0 }
    }

    /// The numbers of the members that are part of the link.
    #[must_use]
    pub const fn members(&self) -> &BTreeSet<usize> {
        &self.members
    }
}

impl FromIterator<usize> for Taken {
    /// These members are part of the link.
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Self {
        Self { members: members.into_iter().collect(), asked: 0 }
    }
}
