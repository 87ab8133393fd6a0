//! In which order libraries are initialized, and in which they go: as ld.so sorts them (`_dl_sort_maps` of glibc 2.35 and later).

use super::depth_first::sorted;
use super::group::{Edge, Node};
use super::search_list::{Graph, Leads, SearchList};
use elf_core::names::DF_1_INITFIRST;

/// The libraries of the load that one of them needs.
fn needed(node: &Node) -> impl Iterator<Item = usize> {
    node.leads().filter_map(|(edge, _)| match edge {
        Edge::Node(to) => Some(*to),
        Edge::Member(_) => None,
    })
}

/// The numbers of libraries in the order in which they are asked, which is theirs unless some stand in for others.
fn listed(nodes: &[Node]) -> Vec<usize> {
    if nodes.iter().all(|node| node.stand_ins.is_empty()) {
        return (0..nodes.len()).collect();
    }
    SearchList::new(0).all(&OfNodes(nodes))
}

/// Which libraries of a load lead to which.
struct OfNodes<'n>(&'n [Node]);

impl Graph for OfNodes<'_> {
    type Library = usize;

    fn leads(&self, library: &usize) -> Leads<usize> {
        let all = self.0.get(*library).into_iter().flat_map(Node::leads);
        let of_load = all.filter_map(|(edge, is_before)| match edge {
            Edge::Node(to) => Some((*to, is_before)),
            Edge::Member(_) => None,
        });
        of_load.collect()
    }

    fn has_stand_ins(&self, library: &usize) -> bool {
        self.0.get(*library).is_some_and(|node| !node.stand_ins.is_empty())
    }

    fn are_one(&self, one: &usize, other: &usize) -> bool {
        one == other
    }
}

/// The numbers of libraries, who needs somebody before whom they need: constructors run from the last on. The one that is opened is before
/// all, also where libraries need it.
pub(crate) fn first(nodes: &[Node]) -> Vec<usize> {
    // most loads
    if nodes.len() == 1 {
        return vec![0];
    }
    let leads = |index: usize| {
        let all = nodes.get(index).into_iter().flat_map(needed);
        all.filter(|to| *to != 0).collect::<Vec<_>>()
    };
    let others = listed(nodes).into_iter().rev().filter(|index| *index != 0);
    let mut order = sorted(others, nodes.len(), leads);
    order.insert(0, 0);
    order
}

/// The order in which constructors run: of those that want to be first (`DF_1_INITFIRST`) the last one is, and no other.
pub(crate) fn to_initialize(nodes: &[Node]) -> Vec<usize> {
    let mut order = first(nodes);
    order.reverse();
    let before_all = nodes.iter().rposition(|node| node.facts.flags_1 & DF_1_INITFIRST != 0);
    if let Some(place) = before_all.and_then(|it| order.iter().position(|index| *index == it)) {
        order.get_mut(..=place).unwrap_or_default().rotate_right(1);
    }
    order
}

/// The order in which destructors are called. `bound` says who refers to whom, whether or not it needs that one: that counts
/// where what libraries need does not decide.
pub(crate) fn last(nodes: &[Node], bound: &[(usize, usize)]) -> Vec<usize> {
    // most loads
    if nodes.len() == 1 {
        return vec![0];
    }
    let (count, first) = (nodes.len(), first(nodes));
    let mut leads: Vec<Vec<usize>> =
        nodes.iter().map(|node| needed(node).collect::<Vec<_>>()).collect();
    if let Some(all) = leads.first_mut() {
        // the one that is opened has a list of all
        *all = first.get(1..).unwrap_or_default().to_vec();
    }
    let mut referred = vec![Vec::new(); count];
    for &(from, to) in bound {
        let is_needed = from == to || leads.get(from).is_some_and(|needed| needed.contains(&to));
        if let Some(list) = referred.get_mut(from).filter(|list| !is_needed && !list.contains(&to))
        {
            list.push(to);
        }
    }
    let needs = |index: usize| leads.get(index).into_iter().flatten().copied();
    let all = |index: usize| {
        let late = referred.get(index).into_iter().flatten().rev().copied();
        needs(index).chain(late).collect::<Vec<_>>()
    };
    let order = sorted(listed(nodes).into_iter().rev(), count, all);
    if referred.iter().all(Vec::is_empty) {
        return order;
    }
    sorted(order.into_iter().rev(), count, |index| needs(index).collect::<Vec<_>>())
}
