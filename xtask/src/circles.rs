//! Circles of files within a crate: files that need each other to be understood.
//!
//! A file uses another if a path in it leads to an item there: a `use`, a path in code or in the tokens of a macro, a call
//! of a function that another file gives a type (`self.f()`, `Type::f()`), a macro in scope by text. Re-exports are followed
//! to where the item is defined. Tests are left out: they may use whatever stands above. What only types can tell (a call of
//! a method of another value than `self`) is not seen.

mod edges;
mod knots;
mod paths;
mod syntax;
mod tree;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use self::edges::{Edges, edges};
use self::knots::{circle, knots};
use self::tree::Tree;
use crate::packages::Package;
use crate::workspace::Workspace;

/// Faults: circles of files in the crates, and paths that could not be followed.
pub(crate) fn faults(packages: &[Package], workspace: &Workspace) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for package in packages {
        let mut report = Report::default();
        for root in package.roots() {
            let read = |path: &Path| fs::read_to_string(path).ok();
            report.add(&Tree::read(root, &read)?, workspace.root());
        }
        faults.extend(report.faults(&package.name));
    }
    Ok(faults)
}

/// What was found in a crate.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    lost: Vec<String>,
}

impl Report {
    fn add(&mut self, tree: &Tree, root: &Path) {
        let name = |file: usize| {
            let path = tree.path(file);
            path.strip_prefix(root).unwrap_or(path).display().to_string()
        };
        let files =
            |knot: &BTreeSet<usize>| knot.iter().map(|&file| name(file)).collect::<Vec<_>>();
        let Edges { uses, lost } = edges(tree);
        for (file, line, path) in lost {
            self.lost.push(format!("{}:{line}: {path} leads nowhere", name(file)));
        }
        for knot in knots(tree.files.len(), &uses) {
            let arrow = |&(from, to): &(usize, usize)| {
                let why = uses.get(&(from, to)).map(|why| format!(":{} {}", why.line, why.what));
                format!("\n  {}{} -> {}", name(from), why.unwrap_or_default(), name(to))
            };
            let shortest = circle(&knot, &uses);
            let inside = |(from, to): &&(usize, usize)| knot.contains(from) && knot.contains(to);
            let others = uses.keys().filter(inside).filter(|arrow| !shortest.contains(arrow));
            let mut text = format!("{} files in a circle:", knot.len());
            text.extend(shortest.iter().map(arrow));
            if knot.len() > shortest.len() {
                let _ = write!(text, "\n  in all: {}", files(&knot).join(" "));
                text.extend(others.map(arrow));
            }
            self.lines.push(text);
        }
    }

    fn faults(self, package: &str) -> Vec<String> {
        let all = self.lost.into_iter().chain(self.lines);
        all.map(|line| format!("{package}: {line}")).collect()
    }
}

#[cfg(test)]
mod tests;
