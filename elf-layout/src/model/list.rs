//! Linked lists in lent storage, sorted without a heap: sections at addresses of their own, sections of one name, symbols that
//! mean where those start and end.

use core::num::NonZeroU32;

/// Nodes of an intrusive list by number: each can hold the number of another.
pub(crate) trait Nodes {
    /// The element behind this one.
    fn next(&self, number: NonZeroU32) -> Option<NonZeroU32>;

    /// Makes `next` the one behind this.
    fn set_next(&mut self, number: NonZeroU32, next: Option<NonZeroU32>);

    /// Whether the first one stands before the second in a sorted list.
    fn is_before(&self, first: NonZeroU32, second: NonZeroU32) -> bool;
}

/// A list that grows at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    pub(crate) first: Option<NonZeroU32>,
    pub(crate) last: Option<NonZeroU32>,
}

impl List {
    /// Adds an element that is in no list.
    pub(crate) fn append(&mut self, number: NonZeroU32, nodes: &mut dyn Nodes) {
        match self.last {
            None => self.first = Some(number),
            Some(last) => nodes.set_next(last, Some(number)),
        }
        self.last = Some(number);
    }
}

/// The list from `list` on, sorted; equals stay in their order. Each bin holds a run of twice as many as the one before, or none.
#[cold]
pub(crate) fn sort(mut list: Option<NonZeroU32>, nodes: &mut dyn Nodes) -> Option<NonZeroU32> {
    let mut bins = [None; u32::BITS as usize];
    while let Some(number) = list {
        list = nodes.next(number);
        nodes.set_next(number, None);
        let mut run = Some(number);
        for bin in &mut bins {
            match bin.take() {
                Some(earlier) => run = merge(earlier, run, nodes),
                None => {
                    *bin = run;
                    break;
                }
            }
        }
    }
    bins.into_iter().flatten().fold(None, |run, earlier| merge(earlier, run, nodes))
}

/// Two sorted lists as one; of equals those of `earlier` come first.
fn merge(
    earlier: NonZeroU32,
    later: Option<NonZeroU32>,
    nodes: &mut dyn Nodes,
) -> Option<NonZeroU32> {
    let (mut rests, mut first, mut last) = ((Some(earlier), later), None, None);
    loop {
        let next = match rests {
            (Some(one), Some(other)) if nodes.is_before(other, one) => other,
            (Some(one), Some(_)) => one,
            (rest, None) | (None, rest) => rest?,
        };
        match last {
            Some(last) => nodes.set_next(last, Some(next)),
            None => first = Some(next),
        }
        let (Some(_), Some(_)) = rests else { return first };
        let rest = nodes.next(next);
        if rests.0 == Some(next) {
            rests.0 = rest
        } else {
            rests.1 = rest
        }
        last = Some(next);
    }
}
