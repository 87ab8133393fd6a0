//! Which file of a crate uses which: paths resolved as the compiler does, as far as that needs no types.

use std::collections::{BTreeMap, BTreeSet};

use super::syntax::Import;
use super::tree::Tree;

/// Why a file uses another: the line, and what it names there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// The uses of files by files, and paths that lead nowhere.
#[derive(Default)]
pub(crate) struct Edges {
    pub(crate) uses: BTreeMap<(usize, usize), Why>,
    /// File, line and path.
    pub(crate) lost: Vec<(usize, usize, String)>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize),
    /// An item of this file.
    Item(usize),
    /// Something of another crate.
    Outside,
}

/// All uses in `tree`.
pub(crate) fn edges(tree: &Tree) -> Edges {
    let mut found = Edges::default();
    for id in 0..tree.modules.len() {
        Scope { tree, id }.edges(&mut found);
    }
    found
}

/// What can be seen from a module.
struct Scope<'t> {
    tree: &'t Tree,
    id: usize,
}

/// Modules and names that are being looked up: globs may import each other.
type Seen = BTreeSet<(usize, String)>;

impl Scope<'_> {
    fn edges(&self, found: &mut Edges) {
        let module = &self.tree.at(self.id);
        for import in &module.imports {
            self.import(import, found);
        }
        for (path, line) in &module.mentions.paths {
            self.path(path, *line, found);
        }
        for (path, line) in &module.mentions.expanded {
            let lost = found.lost.len();
            self.path(path, *line, found);
            found.lost.truncate(lost);
        }
        for (ty, function, line) in &module.mentions.functions {
            let Some(name) = ty.last() else { continue };
            let files = self.tree.functions.get(&(name.clone(), function.clone()));
            // types of one name with functions of one name are not told apart here
            let Some(files) = files.filter(|files| files.len() == 1) else { continue };
            let ours = self.resolve(ty, &mut Seen::new());
            if ours.iter().any(|target| matches!(target, Target::Item(_))) {
                let targets: Vec<Target> = files.iter().map(|&file| Target::Item(file)).collect();
                self.add(&targets, *line, &format!("{name}::{function}"), found);
            }
        }
        for (name, line) in &module.mentions.macros {
            if module.imports.iter().all(|import| import.name.as_ref() != Some(name))
                && let Some(files) = self.tree.macros.get(name)
                && !files.contains(&module.file)
            {
                let targets: Vec<Target> = files.iter().map(|&file| Target::Item(file)).collect();
                self.add(&targets, *line, &format!("{name}!"), found);
            }
        }
        // a macro that is given the name of a submodule takes something from there
        for (word, line) in &module.mentions.words {
            for &child in module.children.get(word).into_iter().flatten() {
                let target = Target::Item(self.tree.at(child).file);
                self.add(&[target], *line, word, found);
            }
        }
    }

    fn import(&self, import: &Import, found: &mut Edges) {
        let targets = self.resolve(&import.path, &mut Seen::new());
        self.add(&targets, import.line, &import.path.join("::"), found);
        if targets.is_empty() {
            self.lost(&import.path, import.line, found);
        }
    }

    fn path(&self, path: &[String], line: usize, found: &mut Edges) {
        let Some(first) = path.first() else { return };
        let targets = match path {
            // its own items and imports are no news
            [name] if self.is_own(name) => return,
            [name] => self.globs(self.id, name, &mut Seen::new()),
            path => self.resolve(path, &mut Seen::new()),
        };
        if targets.is_empty() && path.len() > 1 && is_rooted(first) {
            self.lost(path, line, found);
        }
        self.add(&targets, line, &path.join("::"), found);
    }

    fn is_own(&self, name: &str) -> bool {
        let module = &self.tree.at(self.id);
        module.items.contains(name)
            || module.children.contains_key(name)
            || module.imports.iter().any(|import| import.name.as_deref() == Some(name))
    }

    /// Notes a path from the root, or from here, that leads nowhere.
    fn lost(&self, path: &[String], line: usize, found: &mut Edges) {
        if path.first().is_some_and(|first| is_rooted(first)) {
            found.lost.push((self.tree.at(self.id).file, line, path.join("::")));
        }
    }

    fn add(&self, targets: &[Target], line: usize, what: &str, found: &mut Edges) {
        let from = self.tree.at(self.id).file;
        for target in targets {
            if let Target::Item(to) = *target
                && to != from
            {
                let why = || Why { line, what: what.to_owned() };
                found.uses.entry((from, to)).or_insert_with(why);
            }
        }
    }

    /// What `path`, seen from this module, leads to.
    fn resolve(&self, path: &[String], seen: &mut Seen) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let here = self.id;
        let starts = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(here)],
            "super" => self.tree.at(here).parent.map(Target::Module).into_iter().collect(),
            name => self.lookup(here, name, seen),
        };
        let mut targets = starts;
        for (index, name) in rest.iter().enumerate() {
            let mut next = Vec::new();
            for target in targets {
                match target {
                    // what follows belongs to a type
                    Target::Item(_) | Target::Outside => next.push(target),
                    Target::Module(id) if name == "super" => {
                        next.extend(self.tree.at(id).parent.map(Target::Module));
                    }
                    Target::Module(id) => {
                        let found = self.lookup(id, name, seen);
                        let made = found.is_empty() && self.is_made(id, name);
                        next.extend(found);
                        next.extend(made.then(|| Target::Item(self.tree.at(id).file)));
                    }
                }
            }
            // of a function and a module of one name, the module is what has more behind it
            if index + 1 < rest.len() && next.iter().any(|it| matches!(it, Target::Module(_))) {
                next.retain(|it| matches!(it, Target::Module(_)));
            }
            targets = next;
        }
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// What `name` is in module `id`.
    fn lookup(&self, id: usize, name: &str, seen: &mut Seen) -> Vec<Target> {
        if !seen.insert((id, name.to_owned())) {
            return Vec::new();
        }
        let module = &self.tree.at(id);
        let mut targets = Vec::new();
        if module.items.contains(name) {
            targets.push(Target::Item(module.file));
        }
        let children = module.children.get(name).into_iter().flatten();
        targets.extend(children.map(|&child| Target::Module(child)));
        for import in &module.imports {
            if import.name.as_deref() == Some(name) {
                let found = Scope { tree: self.tree, id }.resolve(&import.path, seen);
                // a name of another crate, or of this one by a way that is being followed already
                let outside =
                    found.is_empty() && import.path.first().is_some_and(|it| !is_rooted(it));
                targets.extend(if outside { vec![Target::Outside] } else { found });
            }
        }
        targets.extend(module.exported.get(name).map(|&file| Target::Item(file)));
        if targets.is_empty() {
            targets = self.globs(id, name, seen);
        }
        seen.remove(&(id, name.to_owned()));
        targets
    }

    /// Whether a macro that is called between the items of module `id` may have made `name`.
    fn is_made(&self, id: usize, name: &str) -> bool {
        let module = &self.tree.at(id);
        // a macro may be given the name of another that it calls
        let macros = module.calls.iter().chain(&module.generated);
        let mut bodies = macros.filter_map(|name| self.tree.bodies.get(name));
        module.generated.contains(name) || bodies.any(|words| words.contains(name))
    }

    /// What `name` is by the globs of module `id`, and by macros that are given the names of its submodules.
    fn globs(&self, id: usize, name: &str, seen: &mut Seen) -> Vec<Target> {
        let module = &self.tree.at(id);
        let mut sources = Vec::new();
        for import in module.imports.iter().filter(|import| import.name.is_none()) {
            sources.extend(Scope { tree: self.tree, id }.resolve(&import.path, seen));
        }
        for (word, _) in &module.mentions.words {
            let children = module.children.get(word).into_iter().flatten();
            sources.extend(children.map(|&child| Target::Module(child)));
        }
        sources.sort_unstable();
        sources.dedup();
        let modules = sources.into_iter().filter_map(|source| match source {
            Target::Module(id) => Some(id),
            Target::Item(_) | Target::Outside => None,
        });
        let made = |id: usize| {
            let made = name.starts_with(char::is_uppercase) && self.is_made(id, name);
            made.then(|| Target::Item(self.tree.at(id).file))
        };
        let found = modules.flat_map(|id| match self.lookup(id, name, seen) {
            found if found.is_empty() => made(id).into_iter().collect(),
            found => found,
        });
        found.collect()
    }
}

/// Whether a path says that it is of this crate.
fn is_rooted(first: &str) -> bool {
    matches!(first, "crate" | "self" | "super")
}
