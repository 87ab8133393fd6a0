//! Which libraries of a load go together: those that need each other, else each for itself.

use super::group::{Edge, Node};
use super::loaded::{Held, Link, Loaded, Member, Unit};

/// Which libraries lead to which others, and to themselves.
struct Reached(Vec<Vec<bool>>);

impl Reached {
    fn new(count: usize, edges: impl Fn(usize) -> Vec<usize>) -> Self {
        let edges: Vec<Vec<usize>> = (0..count).map(edges).collect();
        let from = |start: usize| {
            let mut reached = vec![false; count];
            if let Some(itself) = reached.get_mut(start) {
                *itself = true;
            }
            let mut next = vec![start];
            while let Some(index) = next.pop() {
                for &to in edges.get(index).into_iter().flatten() {
                    if let Some(place) = reached.get_mut(to).filter(|place| !**place) {
                        *place = true;
                        next.push(to);
                    }
                }
            }
            reached
        };
        Self((0..count).map(from).collect())
    }

    fn leads(&self, from: usize, to: usize) -> bool {
        self.0.get(from).and_then(|reached| reached.get(to)) == Some(&true)
    }

    /// How many are reached.
    fn count(&self, from: usize) -> usize {
        self.0.get(from).map_or(0, |reached| reached.iter().filter(|it| **it).count())
    }
}

/// Makes units of the libraries of a load: `nodes` say what each needs, `bound` who refers to whom beside that, `last` in which order
/// destructors are called if all go at once.
pub(crate) fn hold(
    loaded: Vec<Loaded>,
    nodes: &[Node],
    bound: &[(usize, usize)],
    last: &[usize],
) -> Vec<Held> {
    // most loads
    if let ([node], 1) = (nodes, loaded.len()) {
        return hold_one(loaded, node);
    }
    let count = loaded.len();
    let referred = |from: usize| bound.iter().filter(move |(it, _)| *it == from).map(|(_, to)| *to);
    let reached = Reached::new(count, |from| {
        let needed = nodes.get(from).into_iter().flat_map(Node::leads);
        let needed = needed.filter_map(|(edge, _)| match edge {
            Edge::Node(to) => Some(*to),
            Edge::Member(_) => None,
        });
        needed.chain(referred(from)).collect()
    });
    let mut loaded: Vec<Option<Loaded>> = loaded.into_iter().map(Some).collect();
    let mut held: Vec<Option<Held>> = vec![None; count];
    // what a unit leads to leads to less
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|index| reached.count(*index));
    for index in order {
        if held.get(index).is_none_or(Option::is_some) {
            continue;
        }
        let together = |to: usize| reached.leads(index, to) && reached.leads(to, index);
        let inside: Vec<usize> = (0..count).filter(|to| together(*to)).collect();
        let place = |of: usize| inside.iter().position(|it| *it == of);
        let mut members = Vec::new();
        for &member in &inside {
            let Some(mut library) = loaded.get_mut(member).and_then(Option::take) else { continue };
            let other = |of: usize| held.get(of).and_then(Option::as_ref);
            let mut turns = Vec::new();
            for (edge, is_before) in nodes.get(member).into_iter().flat_map(Node::leads) {
                let (link, turn) = match edge {
                    Edge::Member(member) => (Some(Link::Member(member.clone())), usize::MAX),
                    Edge::Node(of) => {
                        let held = || Some(Link::Member(Member::Loaded(other(*of)?.clone())));
                        let turn = last.iter().position(|it| it == of).unwrap_or(usize::MAX);
                        (place(*of).map(Link::Inside).or_else(held), turn)
                    }
                };
                turns.extend(link.is_some().then_some((turn, turns.len())));
                library.links.all.extend(link.map(|link| (link, is_before)));
            }
            turns.sort_unstable();
            library.links.last = turns.into_iter().map(|(_, index)| index).collect();
            library.keepers.extend(referred(member).filter_map(other).map(Held::keeper));
            members.push(library);
        }
        let mut members = members.into_iter();
        let Some(first) = members.next() else { continue };
        let last = last.iter().filter_map(|index| place(*index)).collect();
        let unit = Unit::hold(first, members.collect(), last);
        for (member, library) in inside.into_iter().zip(unit) {
            if let Some(place) = held.get_mut(member) {
                *place = Some(library);
            }
        }
    }
    held.into_iter().flatten().collect()
}

/// Makes a unit of the only library of a load.
fn hold_one(loaded: Vec<Loaded>, node: &Node) -> Vec<Held> {
    let unit = loaded.into_iter().next().map(|mut library| {
        library.links.all = node
            .leads()
            .map(|(edge, is_before)| match edge {
                Edge::Member(member) => (Link::Member(member.clone()), is_before),
                Edge::Node(_) => (Link::Inside(0), is_before),
            })
            .collect();
        library.links.last = (0..library.links.all.len()).collect();
        Unit::hold(library, Vec::new(), vec![0])
    });
    unit.unwrap_or_default()
}
