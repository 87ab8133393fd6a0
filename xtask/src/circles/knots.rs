//! Files that reach each other: the strongly connected parts of a graph, and the shortest way round in one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::edges::Why;

/// An arrow from a file to one that it uses.
pub(crate) type Arrow = (usize, usize);

/// The sets of files that reach each other, each with more than one.
pub(crate) fn knots(files: usize, uses: &BTreeMap<Arrow, Why>) -> Vec<BTreeSet<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..files).map(|file| reached(file, uses)).collect();
    let mut found: Vec<BTreeSet<usize>> = Vec::new();
    for (file, from_here) in reach.iter().enumerate() {
        let both = |other: &usize| reach.get(*other).is_some_and(|back| back.contains(&file));
        let knot: BTreeSet<usize> = from_here.iter().copied().filter(both).collect();
        if knot.len() > 1 && !found.contains(&knot) {
            found.push(knot);
        }
    }
    found
}

/// The files that `from` reaches by one arrow or more.
fn reached(from: usize, uses: &BTreeMap<Arrow, Why>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut rest = vec![from];
    while let Some(file) = rest.pop() {
        for &(_, to) in uses.range((file, 0)..=(file, usize::MAX)).map(|(arrow, _)| arrow) {
            if found.insert(to) {
                rest.push(to);
            }
        }
    }
    found
}

/// The shortest circle in `knot`, arrow by arrow.
pub(crate) fn circle(knot: &BTreeSet<usize>, uses: &BTreeMap<Arrow, Why>) -> Vec<Arrow> {
    let rounds = knot.iter().filter_map(|&start| way_back(start, knot, uses));
    rounds.min_by_key(Vec::len).unwrap_or_default()
}

/// The shortest way from `start` back to it.
fn way_back(
    start: usize,
    knot: &BTreeSet<usize>,
    uses: &BTreeMap<Arrow, Why>,
) -> Option<Vec<Arrow>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut rest = VecDeque::from([start]);
    while let Some(file) = rest.pop_front() {
        for &(_, to) in uses.range((file, 0)..=(file, usize::MAX)).map(|(arrow, _)| arrow) {
            if to == start {
                let mut way = vec![(file, start)];
                let mut at = file;
                while let Some(&from) = before.get(&at).filter(|_| at != start) {
                    way.push((from, at));
                    at = from;
                }
                way.reverse();
                return Some(way);
            }
            if knot.contains(&to) && !before.contains_key(&to) {
                before.insert(to, file);
                rest.push_back(to);
            }
        }
    }
    None
}
