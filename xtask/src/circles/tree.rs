//! The modules of a crate: which file each is in, what it defines, imports and contains.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use syn::{Attribute, ForeignItem, ImplItem, Item, ItemImpl, ItemMacro, parse_file};

use super::paths::{Mentions, mentions};
use super::syntax::{
    Import, attributes, bare, flatten, is_test, name_of, paths_of, type_name, words,
};

/// Reads a source, or says that there is none.
pub(crate) type Read<'r> = &'r dyn Fn(&Path) -> Option<String>;

/// The modules of a crate, the first of which is its root, and the files they are in.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
    /// Files of macros that are in scope by text, not by path.
    pub(crate) macros: BTreeMap<String, BTreeSet<usize>>,
    /// The identifiers in what a macro of this name expands to.
    pub(crate) bodies: BTreeMap<String, BTreeSet<String>>,
    /// Files that define inherent functions, by the name of the type and theirs.
    pub(crate) functions: BTreeMap<(String, String), BTreeSet<usize>>,
}

/// A module, tests left out.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: usize,
    pub(crate) parent: Option<usize>,
    /// Several where `cfg` chooses one.
    pub(crate) children: BTreeMap<String, Vec<usize>>,
    pub(crate) items: BTreeSet<String>,
    /// What is written in calls of macros between the items: names that they may define.
    pub(crate) generated: BTreeSet<String>,
    /// The macros that are called there.
    pub(crate) calls: BTreeSet<String>,
    /// Of the root: macros that their files export, by name.
    pub(crate) exported: BTreeMap<String, usize>,
    pub(crate) imports: Vec<Import>,
    pub(crate) mentions: Mentions,
}

impl Tree {
    /// The crate whose root is `root`.
    ///
    /// # Errors
    /// A file that is missing, or no Rust.
    pub(crate) fn read(root: &Path, read: Read<'_>) -> Result<Self> {
        let mut tree = Self::default();
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        tree.file(root, &folder, None, read)?;
        Ok(tree)
    }

    /// Module `id`.
    #[expect(
        clippy::indexing_slicing,
        reason = "modules are never removed, and ids are indices of theirs"
    )]
    pub(crate) fn at(&self, id: usize) -> &Module {
        &self.modules[id]
    }

    #[expect(clippy::indexing_slicing, reason = "as `at`")]
    fn at_mut(&mut self, id: usize) -> &mut Module {
        &mut self.modules[id]
    }

    /// The path of a file.
    pub(crate) fn path(&self, file: usize) -> &Path {
        self.files.get(file).map_or(Path::new("?"), |path| path)
    }

    /// Adds the module in `path`, whose submodules are in `folder`.
    fn file(
        &mut self,
        path: &Path,
        folder: &Path,
        parent: Option<usize>,
        read: Read<'_>,
    ) -> Result<usize> {
        let text = read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let source = parse_file(&text).with_context(|| format!("{}", path.display()))?;
        let file = self.files.iter().position(|known| known == path).unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        });
        self.module(file, parent, &source.items, folder, read)
    }

    /// Adds a module of these items.
    fn module(
        &mut self,
        file: usize,
        parent: Option<usize>,
        items: &[Item],
        folder: &Path,
        read: Read<'_>,
    ) -> Result<usize> {
        let id = self.modules.len();
        self.modules.push(Module { file, parent, ..Module::default() });
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            self.item(id, item, folder, read)?;
        }
        let found = mentions(items);
        self.at_mut(id).imports.extend(found.imports.iter().cloned());
        self.at_mut(id).mentions = found;
        Ok(id)
    }

    fn item(&mut self, id: usize, item: &Item, folder: &Path, read: Read<'_>) -> Result<()> {
        let file = self.at(id).file;
        match item {
            Item::Mod(module) => {
                let name = bare(&module.ident);
                let children = match &module.content {
                    Some((_, items)) => {
                        vec![self.module(file, Some(id), items, &folder.join(&name), read)?]
                    }
                    None => self.submodules(id, &name, &module.attrs, folder, read)?,
                };
                self.at_mut(id).children.entry(name).or_default().extend(children);
            }
            Item::Use(import) => {
                let line = import.use_token.span.start().line;
                flatten(&import.tree, &mut Vec::new(), line, &mut self.at_mut(id).imports);
            }
            Item::Macro(call) => self.call(id, call),
            Item::Impl(block) if block.trait_.is_none() => self.functions_of(file, block),
            Item::ForeignMod(block) => {
                let names = block.items.iter().filter_map(|item| match item {
                    ForeignItem::Fn(function) => Some(bare(&function.sig.ident)),
                    ForeignItem::Static(variable) => Some(bare(&variable.ident)),
                    _ => None,
                });
                self.at_mut(id).items.extend(names);
            }
            item => self.at_mut(id).items.extend(name_of(item)),
        }
        Ok(())
    }

    /// A call of a macro between the items of a module, or the definition of one.
    fn call(&mut self, id: usize, call: &ItemMacro) {
        let mut found = BTreeSet::new();
        words(call.mac.tokens.clone(), &mut found);
        let Some(name) = &call.ident else {
            self.at_mut(id).generated.extend(found);
            let called = call.mac.path.segments.last();
            self.at_mut(id).calls.extend(called.map(|called| bare(&called.ident)));
            return;
        };
        let file = self.at(id).file;
        self.at_mut(id).items.insert(bare(name));
        self.macros.entry(bare(name)).or_default().insert(file);
        self.bodies.entry(bare(name)).or_default().extend(found);
        if call.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
            && let Some(root) = self.modules.first_mut()
        {
            root.exported.insert(bare(name), file);
        }
    }

    fn functions_of(&mut self, file: usize, block: &ItemImpl) {
        let Some(name) = type_name(&block.self_ty) else { return };
        for part in &block.items {
            let function = match part {
                ImplItem::Fn(function) => bare(&function.sig.ident),
                ImplItem::Const(constant) => bare(&constant.ident),
                _ => continue,
            };
            self.functions.entry((name.clone(), function)).or_default().insert(file);
        }
    }

    /// The modules that `mod name;` stands for.
    fn submodules(
        &mut self,
        id: usize,
        name: &str,
        attrs: &[Attribute],
        folder: &Path,
        read: Read<'_>,
    ) -> Result<Vec<usize>> {
        let file = self.path(self.at(id).file).to_owned();
        let beside = file.parent().unwrap_or(Path::new(""));
        let named = paths_of(attrs);
        let (flat, deep) = (folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs"));
        let path = if read(&flat).is_some() { flat } else { deep };
        let mut all = Vec::new();
        // where a path is said under a condition, there is the usual file without it
        let is_said = attrs.iter().any(|attribute| attribute.path().is_ident("path"));
        if named.is_empty() || !is_said && read(&path).is_some() {
            all.push(self.file(&path, &folder.join(name), Some(id), read)?);
        }
        for path in named.iter().map(|path| beside.join(path)) {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            all.push(self.file(&path, &folder, Some(id), read)?);
        }
        Ok(all)
    }
}
