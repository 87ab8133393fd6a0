//! What a kernel reaches: call trees, in storage that the caller lends, and the stack that they need.

use crate::calls::Call;
use crate::cubin::Cubin;
use crate::error::{Error, ErrorKind};
use crate::names::eiattr;
use crate::payload::Payload;
use crate::resources::Stack;
use crate::sort::sort;
use elf_core::names::STT_FUNC;

/// Nothing: of nodes and of edges.
const NONE: u32 = u32::MAX;
/// Marks the number of a node that stands for a prototype, not for a function.
const PROTOTYPE: u32 = 1 << 31;

/// A call: numbers of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who calls.
    pub from: u32,
    /// Who is called.
    pub to: u32,
}

impl Edge {
    /// Room for an edge.
    pub const EMPTY: Self = Self { from: NONE, to: NONE };
}

/// A function in a [`CallTree`].
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The number that edges name it by: of a function in one file, the index of its symbol.
    pub id: u32,
    /// Its own stack in bytes.
    pub frame: u32,
    state: State,
    unbounded: bool,
    deepest: u64,
    first: u32,
    cursor: u32,
    link: u32,
    pass: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

impl Node {
    /// Room for a node.
    pub const EMPTY: Self = Self::new(NONE, 0);

    /// A function with this number and stack of its own.
    #[must_use]
    pub const fn new(id: u32, frame: u32) -> Self {
        Self {
            id,
            frame,
            state: State::New,
            unbounded: false,
            deepest: 0,
            first: NONE,
            cursor: NONE,
            link: NONE,
            pass: 0,
        }
    }

    fn total(&self) -> u64 {
        self.deepest.saturating_add(self.frame.into())
    }
}

/// Who reaches whom, by direct calls and by indirect ones.
#[derive(Debug)]
pub struct CallTree<'m> {
    nodes: &'m mut [Node],
    edges: &'m mut [Edge],
    pass: u32,
}

impl<'m> CallTree<'m> {
    /// A tree of these functions and calls, in any order; calls of what is no node are left out. A linker makes its own.
    pub fn new(nodes: &'m mut [Node], edges: &'m mut [Edge]) -> Self {
        sort(nodes, |node| node.id);
        for edge in edges.iter_mut() {
            let ends = position(nodes, edge.from).zip(position(nodes, edge.to));
            *edge = ends.map_or(Edge::EMPTY, |(from, to)| Edge { from, to });
        }
        sort(edges, |edge| edge.from);
        for (index, edge) in (0..u32::MAX).zip(edges.iter()) {
            if let Some(node) = at(nodes, edge.from).filter(|node| node.first == NONE) {
                (node.first, node.cursor) = (index, index);
            }
        }
        Self { nodes, edges, pass: 0 }
    }

    /// The stack that a function needs with all it calls: the largest sum of frames over the paths from it.
    ///
    /// `None` if the function is not in the tree. All questions together take the time of one walk.
    #[must_use]
    pub fn stack(&mut self, function: u32) -> Option<Stack> {
        let root = position(self.nodes, function)?;
        if at(self.nodes, root)?.state == State::New {
            self.walk(root);
        }
        let node = at(self.nodes, root)?;
        Some(if node.unbounded { Stack::Unbounded } else { Stack::Bytes(node.total()) })
    }

    /// Depth first, without a stack: each open node knows the one it was opened from.
    fn walk(&mut self, root: u32) {
        let mut here = root;
        self.open(root, NONE);
        loop {
            let Some(node) = at(self.nodes, here) else { return };
            let edge = self.edges.get(node.cursor as usize).filter(|edge| edge.from == here);
            let Some(&Edge { to, .. }) = edge else {
                node.state = State::Done;
                let parent = node.link;
                if parent == NONE {
                    return;
                }
                self.merge(parent, here);
                here = parent;
                continue;
            };
            node.cursor = node.cursor.saturating_add(1);
            match at(self.nodes, to).map(|node| node.state) {
                Some(State::New) => {
                    self.open(to, here);
                    here = to;
                }
                Some(State::Done) => self.merge(here, to),
                // a function that calls itself, if by others: whoever reaches it has no bound
                Some(State::Open) => {
                    if let Some(node) = at(self.nodes, here) {
                        node.unbounded = true;
                    }
                }
                None => {}
            }
        }
    }

    fn open(&mut self, node: u32, from: u32) {
        if let Some(node) = at(self.nodes, node) {
            (node.state, node.link) = (State::Open, from);
        }
    }

    fn merge(&mut self, parent: u32, child: u32) {
        let Some((total, unbounded)) =
            at(self.nodes, child).map(|node| (node.total(), node.unbounded))
        else {
            return;
        };
        if let Some(parent) = at(self.nodes, parent) {
            parent.deepest = parent.deepest.max(total);
            parent.unbounded |= unbounded;
        }
    }

    /// Calls `visit` once for every function that `function` reaches, itself first.
    pub fn reach(&mut self, function: u32, mut visit: impl FnMut(u32)) {
        self.pass = self.pass.wrapping_add(1);
        let Some(root) = position(self.nodes, function) else { return };
        // a queue through the nodes; `walk` is done with their links
        let (mut head, mut tail) = (root, root);
        self.enqueue(root);
        while let Some(&mut Node { id, first, .. }) = at(self.nodes, head) {
            if id & PROTOTYPE == 0 {
                visit(id);
            }
            let mut cursor = first;
            while let Some(&Edge { to, .. }) =
                self.edges.get(cursor as usize).filter(|edge| edge.from == head)
            {
                cursor = cursor.saturating_add(1);
                if self.enqueue(to) {
                    if let Some(node) = at(self.nodes, tail) {
                        node.link = to;
                    }
                    tail = to;
                }
            }
            head = at(self.nodes, head).map_or(NONE, |node| node.link);
        }
    }

    fn enqueue(&mut self, node: u32) -> bool {
        let pass = self.pass;
        let found = at(self.nodes, node).filter(|node| node.pass != pass);
        found.map(|node| (node.pass, node.link) = (pass, NONE)).is_some()
    }
}

impl Cubin<'_> {
    /// How many nodes and edges [`call_tree`](Self::call_tree) needs room for, at most.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the call graph leaves the file.
    pub fn call_tree_size(&self) -> Result<(usize, usize), Error> {
        let count = |count: usize| count.saturating_add(1);
        let functions = self.symbols_named().filter(|(_, symbol, _)| symbol.r#type() == STT_FUNC);
        let (mut nodes, mut edges) = (functions.fold(0, |nodes, _| count(nodes)), 0);
        for call in self.calls()? {
            edges = count(edges);
            if matches!(call, Call::AddressTaken { .. } | Call::Indirect { .. }) {
                nodes = count(nodes);
            }
        }
        Ok((nodes, edges))
    }

    /// The call tree of the functions of this file, with the frame sizes that its attributes have.
    ///
    /// An indirect call may reach every function of its prototype whose address is taken.
    ///
    /// # Errors
    /// [`ErrorKind::Storage`] if there is not room enough; [`ErrorKind::Elf`], [`ErrorKind::Truncated`] and
    /// [`ErrorKind::UnknownFormat`] if the file is damaged.
    pub fn call_tree<'m>(
        &self,
        nodes: &'m mut [Node],
        edges: &'m mut [Edge],
    ) -> Result<CallTree<'m>, Error> {
        let functions = self.symbols_named().filter(|(_, symbol, _)| symbol.r#type() == STT_FUNC);
        let prototypes = self.calls()?.filter_map(|call| match call {
            Call::AddressTaken { prototype, .. } | Call::Indirect { prototype, .. } => {
                Some(prototype | PROTOTYPE)
            }
            _ => None,
        });
        let ids = functions
            .map(|(index, ..)| index)
            .filter(|index| index & PROTOTYPE == 0)
            .chain(prototypes);
        let nodes = fill(nodes, "functions", ids.map(|id| Node::new(id, 0)))?;
        sort(nodes, |node| node.id);
        for row in self.attributes()? {
            let row = row?;
            if let (eiattr::FRAME_SIZE, Payload::OfSymbol { symbol, value }) =
                (row.number, row.payload())
            {
                let found = position(nodes, symbol).and_then(|index| at(nodes, index));
                found.into_iter().for_each(|node| node.frame = value);
            }
        }
        let calls = self.calls()?.filter_map(|call| match call {
            Call::Direct { caller, callee } | Call::MayReach { caller, callee } => {
                Some(Edge { from: caller, to: callee })
            }
            Call::AddressTaken { function, prototype } => {
                Some(Edge { from: prototype | PROTOTYPE, to: function })
            }
            Call::Indirect { caller, prototype } => {
                Some(Edge { from: caller, to: prototype | PROTOTYPE })
            }
            Call::Other { .. } => None,
        });
        let edges = fill(edges, "calls", calls)?;
        Ok(CallTree::new(nodes, edges))
    }
}

/// Puts `items` at the start of `room`, and gives that part.
fn fill<'m, T>(
    room: &'m mut [T],
    what: &'static str,
    items: impl Iterator<Item = T>,
) -> Result<&'m mut [T], Error> {
    let mut used = 0usize;
    for item in items {
        let kind = ErrorKind::Storage { what, room: room.len() as u64 };
        *room.get_mut(used).ok_or(Error::new(0, kind))? = item;
        used = used.saturating_add(1);
    }
    Ok(room.get_mut(..used).unwrap_or_default())
}

/// The node at this position.
fn at(nodes: &mut [Node], position: u32) -> Option<&mut Node> {
    nodes.get_mut(usize::try_from(position).ok()?)
}

/// The position of the node of this number. The nodes are sorted.
fn position(nodes: &[Node], id: u32) -> Option<u32> {
    let start = nodes.partition_point(|node| node.id < id);
    let found = nodes.get(start).filter(|node| node.id == id && id != NONE);
    found.and_then(|_| u32::try_from(start).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn nodes(frames: &[(u32, u32)]) -> Vec<Node> {
        frames.iter().map(|&(id, frame)| Node::new(id, frame)).collect()
    }

    fn edges(pairs: &[(u32, u32)]) -> Vec<Edge> {
        pairs.iter().map(|&(from, to)| Edge { from, to }).collect()
    }

    #[test]
    fn the_deepest_path_counts() {
        let mut nodes = nodes(&[(9, 8), (1, 16), (4, 100), (2, 32), (7, 1)]);
        let mut edges = edges(&[(2, 4), (9, 1), (1, 4), (9, 2), (9, 55)]);
        let mut tree = CallTree::new(&mut nodes, &mut edges);
        assert_eq!(tree.stack(9), Some(Stack::Bytes(140)));
        assert_eq!(tree.stack(1), Some(Stack::Bytes(116)));
        assert_eq!(tree.stack(7), Some(Stack::Bytes(1)));
        assert_eq!(tree.stack(55), None);
        let mut reached = Vec::new();
        tree.reach(9, |id| reached.push(id));
        reached.sort();
        assert_eq!(reached, [1, 2, 4, 9]);
    }

    #[test]
    fn whoever_reaches_a_recursion_has_no_bound() {
        let mut nodes = nodes(&[(1, 8), (2, 8), (3, 8), (4, 8), (5, 8)]);
        let mut edges = edges(&[(1, 2), (2, 3), (3, 2), (3, 4), (5, 4)]);
        let mut tree = CallTree::new(&mut nodes, &mut edges);
        for id in [3, 1, 2] {
            assert_eq!(tree.stack(id), Some(Stack::Unbounded));
        }
        assert_eq!((tree.stack(4), tree.stack(5)), (Some(Stack::Bytes(8)), Some(Stack::Bytes(16))));
    }

    /// Against the definition: paths by brute force over many small graphs.
    #[test]
    fn agrees_with_brute_force() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..3000 {
            let count = random(7) as u32 + 1;
            let frames: Vec<(u32, u32)> = (0..count).map(|id| (id, random(50) as u32)).collect();
            let calls: Vec<(u32, u32)> = (0..random(12))
                .map(|_| (random(count.into()) as u32, random(count.into()) as u32))
                .collect();
            fn longest(
                id: u32,
                frames: &[(u32, u32)],
                calls: &[(u32, u32)],
                left: u32,
            ) -> Option<u64> {
                if left == 0 {
                    return None;
                }
                let mut deepest = 0;
                for &(_, to) in calls.iter().filter(|call| call.0 == id) {
                    deepest = deepest.max(longest(to, frames, calls, left - 1)?);
                }
                Some(deepest + u64::from(frames[id as usize].1))
            }
            let (mut nodes, mut edges) = (nodes(&frames), edges(&calls));
            let mut tree = CallTree::new(&mut nodes, &mut edges);
            for id in 0..count {
                let expected =
                    longest(id, &frames, &calls, count + 1).map_or(Stack::Unbounded, Stack::Bytes);
                assert_eq!(tree.stack(id), Some(expected), "{frames:?} {calls:?} {id}");
            }
        }
    }
}
