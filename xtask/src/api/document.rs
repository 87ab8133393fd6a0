//! One crate as rustdoc tells it, and by which paths users name what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, bail};
use rustdoc_types::{FORMAT_VERSION, Id, Impl, Item, ItemEnum, Path, Visibility};
use serde::Deserialize;

use crate::tool::{cargo, output};
use crate::workspace::Workspace;

/// A crate.
pub(super) struct Crate {
    document: rustdoc_types::Crate,
    /// Item to its public path.
    pub(super) public: BTreeMap<Id, String>,
}

/// What is read of a document first.
#[derive(Deserialize)]
struct Format {
    format_version: u32,
}

impl Crate {
    /// Has rustdoc tell about the crate `name`.
    ///
    /// # Errors
    /// If rustdoc fails, or is one with another format.
    pub(super) fn read(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target().join("xtask").join("api");
        output(
            cargo()
                .current_dir(workspace.root())
                .args(["rustdoc", "--quiet", "--lib", "--package", name, "--target-dir"])
                .arg(&folder)
                .args(["--", "-Z", "unstable-options", "--output-format", "json"])
                .env("RUSTC_BOOTSTRAP", "1"),
        )?;
        let crate_name = name.replace('-', "_");
        let path = folder.join("doc").join(format!("{crate_name}.json"));
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let Format { format_version } = serde_json::from_slice(&text)?;
        if format_version != FORMAT_VERSION {
            bail!(
                "rustdoc's JSON has format {format_version}, the crate rustdoc-types reads {FORMAT_VERSION}: \
                 another version of that, and of public-api, in Cargo.toml"
            );
        }
        let document: rustdoc_types::Crate = serde_json::from_slice(&text)?;
        let root = document.root;
        let mut one = Self { document, public: BTreeMap::new() };
        one.walk(root, &crate_name, &mut BTreeSet::new());
        Ok(one)
    }

    /// What this number means in the crate.
    pub(super) fn item(&self, id: Id) -> Option<&Item> {
        self.document.index.get(&id)
    }

    /// The path by which an item is defined, in whatever crate.
    pub(super) fn full_path(&self, id: Id) -> Option<String> {
        self.document.paths.get(&id).map(|entry| entry.path.join("::"))
    }

    /// Whether the trait is one of the crate's own, or of `elf-core`.
    pub(super) fn is_ours(&self, of_trait: &Path) -> bool {
        self.document.paths.get(&of_trait.id).is_some_and(|entry| {
            entry.crate_id == 0 || entry.path.first().is_some_and(|name| name == "elf_core")
        })
    }

    /// The implementations of a type that somebody wrote or derived.
    pub(super) fn implementations(&self, item: Id) -> impl Iterator<Item = &Impl> {
        let of: &[Id] = match self.item(item).map(|item| &item.inner) {
            Some(ItemEnum::Struct(it)) => &it.impls,
            Some(ItemEnum::Enum(it)) => &it.impls,
            Some(ItemEnum::Union(it)) => &it.impls,
            Some(ItemEnum::Primitive(it)) => &it.impls,
            _ => &[],
        };
        of.iter()
            .filter_map(|id| match &self.item(*id)?.inner {
                ItemEnum::Impl(it) => Some(it),
                _ => None,
            })
            .filter(|it| !it.is_synthetic && !it.is_negative && it.blanket_impl.is_none())
    }

    /// Notes the public path of everything in the module `module`, which is public as `prefix`.
    fn walk(&mut self, module: Id, prefix: &str, seen: &mut BTreeSet<(Id, String)>) {
        if !seen.insert((module, prefix.to_owned())) {
            return;
        }
        let Some(ItemEnum::Module(it)) = self.item(module).map(|item| &item.inner) else { return };
        // What is here itself comes before what is in modules: the shorter path wins.
        let mut modules = Vec::new();
        for member in it.items.clone() {
            let Some(item) = self.item(member) else { continue };
            if item.visibility != Visibility::Public {
                continue;
            }
            let (target, name) = match &item.inner {
                ItemEnum::Use(import) => match import.id {
                    Some(target) if import.is_glob => {
                        modules.push((target, prefix.to_owned()));
                        continue;
                    }
                    Some(target) => (target, Some(&import.name)),
                    None => continue,
                },
                _ => (member, item.name.as_ref()),
            };
            if let Some(name) = name {
                let path = format!("{prefix}::{}", raw(name));
                self.note(target, path, &mut modules);
            }
        }
        for (module, prefix) in modules {
            self.walk(module, &prefix, seen);
        }
    }

    fn note(&mut self, item: Id, path: String, modules: &mut Vec<(Id, String)>) {
        if matches!(self.item(item).map(|item| &item.inner), Some(ItemEnum::Module(_))) {
            modules.push((item, path));
        } else {
            self.public.entry(item).or_insert(path);
        }
    }
}

/// The last word of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// Names that are keywords need a mark.
pub(super) fn raw(name: &str) -> String {
    match name {
        "type" | "match" | "ref" | "fn" | "mod" | "use" | "loop" | "move" | "impl" => {
            format!("r#{name}")
        }
        _ => name.to_owned(),
    }
}
