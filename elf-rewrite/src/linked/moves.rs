//! Regions that move: from where to where, and which addresses are in them.

/// A region that moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// Its address.
    pub(super) old: u64,
    /// Its size.
    pub(super) size: u64,
    /// Its new address.
    pub(super) new: u64,
    /// Its new size.
    pub(super) new_size: u64,
    /// Where it is in the file.
    pub(super) offset: u64,
    /// What it is, and so who may point to it.
    pub(super) kind: Moved,
}

/// What moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// A region that goes along with its section: by its start only it is known.
    WithSection,
    /// The same of a region whose bytes stay: linkers leave some that nothing points to, and tools look for them in their section.
    Unchanged,
    /// A region that goes to a section of its own.
    Alone,
    /// Tables that stay as they are: symbols may be inside, and nobody has to point to them.
    Tables,
}

/// Where an address leads.
pub(super) enum To<'m> {
    /// Not into what moves.
    Elsewhere,
    /// To the start of a region that moves.
    Start(usize, &'m Move),
    /// Into a region that moves.
    Inside(&'m Move),
}

/// Where an address leads. `moves` are in the order of their addresses.
pub(super) fn target(moves: &[Move], address: u64) -> To<'_> {
    let behind = moves.partition_point(|one| one.old <= address);
    let Some((index, found)) =
        behind.checked_sub(1).and_then(|index| Some((index, moves.get(index)?)))
    else {
        return To::Elsewhere;
    };
    match address.saturating_sub(found.old) {
        0 => To::Start(index, found),
        inside if inside < found.size => To::Inside(found),
        _ => To::Elsewhere,
    }
}

/// The region that an address leads to, if it moves.
pub(super) fn moved(moves: &[Move], address: u64) -> Option<&Move> {
    match target(moves, address) {
        To::Elsewhere => None,
        To::Start(_, one) | To::Inside(one) => Some(one),
    }
}
