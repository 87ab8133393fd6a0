//! Those that a library's references are looked for in, beside the program.

use super::group::{Edge, Node};
use super::handle::Handle;
use super::hashes::ProcessHashes;
use super::loaded::{Held, Member};
use super::search_list::{Graph, Leads, SearchList};
use std::sync::Arc;

/// One of those that are asked.
pub(super) enum Asked {
    /// A library of the load.
    Own(usize),
    Held(Held),
    /// A library of the dynamic loader, and its number there: it is asked for itself, and answers for those that it needs, too.
    Process(Arc<Handle>, Option<usize>),
}

/// What the libraries of a load lead to.
pub(super) struct OfLoad<'s> {
    pub(super) nodes: &'s [Node],
    pub(super) hashes: Arc<ProcessHashes>,
}

impl OfLoad<'_> {
    fn asked(&self, member: Member) -> Asked {
        match member {
            Member::Loaded(held) => Asked::Held(held),
            Member::Process(handle) => {
                let number = handle.inside().and_then(|address| self.hashes.library_at(address));
                Asked::Process(handle, number)
            }
        }
    }
}

impl Graph for OfLoad<'_> {
    type Library = Asked;

    fn leads(&self, library: &Asked) -> Leads<Asked> {
        match library {
            Asked::Own(index) => {
                let edges = self.nodes.get(*index).into_iter().flat_map(Node::leads);
                let asked = |edge: &Edge| match edge {
                    Edge::Node(to) => Asked::Own(*to),
                    Edge::Member(member) => self.asked(member.clone()),
                };
                edges.map(|(edge, is_before)| (asked(edge), is_before)).collect()
            }
            Asked::Held(held) => {
                let leads = held.leads().into_iter();
                leads.map(|(member, is_before)| (self.asked(member), is_before)).collect()
            }
            Asked::Process(handle, _) => {
                let leads = of_process(handle).into_iter();
                leads.map(|(member, is_before)| (self.asked(member), is_before)).collect()
            }
        }
    }

    fn has_stand_ins(&self, library: &Asked) -> bool {
        match library {
            Asked::Own(index) => {
                self.nodes.get(*index).is_some_and(|node| !node.stand_ins.is_empty())
            }
            Asked::Held(held) => !held.is_first(),
            Asked::Process(handle, _) => handle.has_stand_ins(),
        }
    }

    fn are_one(&self, one: &Asked, other: &Asked) -> bool {
        match (one, other) {
            (Asked::Own(one), Asked::Own(other)) => one == other,
            (Asked::Held(one), Asked::Held(other)) => one.is(other),
            (Asked::Process(one, _), Asked::Process(other, _)) => one.is(other),
            _ => false,
        }
    }
}

fn of_process(library: &Handle) -> Leads<Member> {
    let leads = library.leads().into_iter();
    leads.map(|(handle, is_before)| (Member::Process(Arc::new(handle)), is_before)).collect()
}

/// What libraries lead to that are there.
pub(super) struct OfHeld;

impl Graph for OfHeld {
    type Library = Member;

    fn leads(&self, library: &Member) -> Leads<Member> {
        match library {
            Member::Loaded(held) => held.leads(),
            Member::Process(handle) => of_process(handle),
        }
    }

    fn has_stand_ins(&self, library: &Member) -> bool {
        match library {
            Member::Loaded(held) => !held.is_first(),
            Member::Process(handle) => handle.has_stand_ins(),
        }
    }

    fn are_one(&self, one: &Member, other: &Member) -> bool {
        one.is(other)
    }
}

/// A library that is there and all that it needs, in order, each once, as far as they are asked for.
pub(super) fn of_held(library: &Held) -> impl Iterator<Item = Member> {
    let mut list = SearchList::new(Member::Loaded(library.clone()));
    (0..).map_while(move |number| list.get(number, &OfHeld).cloned())
}
