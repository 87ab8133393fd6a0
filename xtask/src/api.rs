//! The public API of a crate, as rustdoc tells it: every function that a user can call, with its generics filled in.
//!
//! What follows from no rule - closures, `impl Trait` - is written by hand in a table beside, and asked for by name where it is
//! missing: so an entry point that is added is an entry point that is examined.

#![expect(clippy::indexing_slicing, reason = "a JSON value that lacks a key answers with null")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::tool::{cargo, output};
use crate::workspace::Workspace;

/// The format of rustdoc's JSON that is read here; neighbours differ little.
const FORMATS: std::ops::RangeInclusive<u64> = 45..=60;

/// Traits by which `derive` bounds parameters.
const DERIVED: &[&str] =
    &["Clone", "Copy", "Debug", "Default", "Eq", "Hash", "Ord", "PartialEq", "PartialOrd"];

/// A function to call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Root {
    /// Its path in the source: `elf_core::File::parse`.
    pub(crate) path: String,
    /// An expression whose value is the function, generics filled in, or a closure that calls it.
    pub(crate) call: String,
}

/// What cannot be derived, and what stands for what.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByHand {
    /// Functions that take closures or return iterators.
    #[serde(default)]
    pub(crate) root: Vec<Written>,
    /// Functions that are left out.
    #[serde(default)]
    pub(crate) exempt: Vec<Exempt>,
    /// Trait to the types that stand for a parameter bound by it.
    #[serde(default)]
    pub(crate) instances: BTreeMap<String, Vec<String>>,
}

/// A call written by hand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// The function that is called.
    path: String,
    /// A closure; `{NAME}` is each of `each`.
    call: String,
    /// Trait of whose types there is one call each.
    each: Option<String>,
}

/// A function that is left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exempt {
    /// The end of its path.
    path: String,
    /// Why.
    why: String,
}

impl std::fmt::Display for Exempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

impl ByHand {
    fn exempts(&self, path: &str) -> bool {
        self.exempt.iter().any(|exempt| path.ends_with(&exempt.path))
    }
}

/// One crate as rustdoc tells it.
struct Crate {
    index: BTreeMap<String, Value>,
    paths: BTreeMap<String, Value>,
    /// Item to its public path.
    public: BTreeMap<String, String>,
}

/// Every entry point of `crates`, those of later ones with the types of earlier ones.
///
/// # Errors
/// If rustdoc fails, or something follows from no rule and is not written by hand.
pub(crate) fn roots(workspace: &Workspace, crates: &[&str], by_hand: &ByHand) -> Result<Vec<Root>> {
    let crates: Vec<Crate> =
        crates.iter().map(|name| Crate::read(workspace, name)).collect::<Result<_>>()?;
    let mut public = BTreeMap::new();
    for one in &crates {
        for (id, path) in &one.public {
            let full = one.paths.get(id).map(|entry| words(&entry["path"]));
            public.insert(full.unwrap_or_else(|| path.clone()), path.clone());
        }
    }
    let mut finder = Finder {
        by_hand,
        public,
        instances: by_hand.instances.clone(),
        roots: BTreeSet::new(),
        missing: BTreeSet::new(),
    };
    for one in &crates {
        finder.collect_instances(one);
    }
    for one in &crates {
        finder.collect_roots(one);
    }
    let mut answered = BTreeSet::new();
    for written in &by_hand.root {
        answered.insert(written.path.as_str());
        let crate_name = written.path.split("::").next().unwrap_or_default();
        let known = |one: &Crate| one.public.values().any(|path| path.starts_with(crate_name));
        if !crate_name.starts_with('{') && !crates.iter().any(known) {
            continue;
        }
        let each = match &written.each {
            None => vec![String::new()],
            Some(name) => finder.instances.get(name).cloned().unwrap_or_default(),
        };
        for instance in each {
            let name = written.each.clone().unwrap_or_default();
            let fill = |text: &str| text.replace(&format!("{{{name}}}"), &instance);
            finder.roots.insert(Root { path: fill(&written.path), call: fill(&written.call) });
        }
    }
    finder.missing.retain(|path| !answered.contains(path.as_str()));
    if !finder.missing.is_empty() {
        let list: Vec<&str> = finder.missing.iter().map(String::as_str).collect();
        bail!("xtask/no-panic/by-hand.toml needs an entry for\n{}", list.join("\n"));
    }
    Ok(finder.roots.into_iter().collect())
}

impl Crate {
    fn read(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target().join("xtask").join("api");
        output(
            cargo()
                .current_dir(workspace.root())
                .args(["rustdoc", "--quiet", "--lib", "--package", name, "--target-dir"])
                .arg(&folder)
                .args(["--", "-Z", "unstable-options", "--output-format", "json"])
                .env("RUSTC_BOOTSTRAP", "1"),
        )?;
        let path = folder.join("doc").join(format!("{}.json", name.replace('-', "_")));
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut document: Value = serde_json::from_slice(&text)?;
        let format = document["format_version"].as_u64().unwrap_or(0);
        if !FORMATS.contains(&format) {
            bail!(
                "rustdoc's JSON has format {format}, not one of {FORMATS:?}: look what has changed in xtask/src/api.rs"
            );
        }
        let map = |value: Value| -> Result<BTreeMap<String, Value>> {
            Ok(serde_json::from_value(value)?)
        };
        let mut one = Self {
            index: map(document["index"].take())?,
            paths: map(document["paths"].take())?,
            public: BTreeMap::new(),
        };
        let root = id(&document["root"]);
        let crate_name = name.replace('-', "_");
        one.walk(&root, &crate_name, &mut BTreeSet::new());
        Ok(one)
    }

    /// Notes the public path of everything in the module `module`, which is public as `prefix`.
    fn walk(&mut self, module: &str, prefix: &str, seen: &mut BTreeSet<(String, String)>) {
        if !seen.insert((module.to_owned(), prefix.to_owned())) {
            return;
        }
        let Some(item) = self.index.get(module) else { return };
        let items: Vec<String> = list(&item["inner"]["module"]["items"]).iter().map(id).collect();
        // What is here itself comes before what is in modules: the shorter path wins.
        let mut modules = Vec::new();
        for member in items {
            let Some(item) = self.index.get(&member) else { continue };
            if item["visibility"] != "public" {
                continue;
            }
            let inner = &item["inner"];
            if let Some(import) = inner.get("use") {
                let target = id(&import["id"]);
                if import["is_glob"] == true {
                    modules.push((target, prefix.to_owned()));
                } else if let Some(name) = import["name"].as_str() {
                    self.note(&target, &format!("{prefix}::{}", raw(name)), &mut modules);
                }
            } else if let Some(name) = item["name"].as_str() {
                let path = format!("{prefix}::{}", raw(name));
                self.note(&member, &path, &mut modules);
            }
        }
        for (module, prefix) in modules {
            self.walk(&module, &prefix, seen);
        }
    }

    fn note(&mut self, item: &str, path: &str, modules: &mut Vec<(String, String)>) {
        let is_module =
            self.index.get(item).is_some_and(|item| item["inner"].get("module").is_some());
        if is_module {
            modules.push((item.to_owned(), path.to_owned()));
        } else {
            self.public.entry(item.to_owned()).or_insert_with(|| path.to_owned());
        }
    }
}

/// Finds the functions.
struct Finder<'a> {
    by_hand: &'a ByHand,
    /// Full path of an item of our crates to the path by which users name it.
    public: BTreeMap<String, String>,
    /// Trait to its types.
    instances: BTreeMap<String, Vec<String>>,
    roots: BTreeSet<Root>,
    /// Paths of functions for which no rule holds.
    missing: BTreeSet<String>,
}

/// Type parameter to the type that stands for it.
type Chosen = BTreeMap<String, String>;

impl Finder<'_> {
    /// Adds the types of this crate that implement a trait of ours without further ado.
    fn collect_instances(&mut self, one: &Crate) {
        for (item, path) in &one.public {
            for implementation in implementations(one, item) {
                let Some(name) = implementation["trait"]["path"].as_str() else { continue };
                let name = name.rsplit("::").next().unwrap_or(name);
                if self.by_hand.instances.contains_key(name)
                    || !is_ours(one, &implementation["trait"])
                {
                    continue;
                }
                for chosen in self.choices(&implementation["generics"]).unwrap_or_default() {
                    if let Some(text) = self.render(one, &implementation["for"], &chosen, path) {
                        let list = self.instances.entry(name.to_owned()).or_default();
                        if !list.contains(&text) {
                            list.push(text);
                        }
                    }
                }
            }
        }
    }

    /// Adds every function of this crate.
    fn collect_roots(&mut self, one: &Crate) {
        for (item, path) in &one.public {
            let Some(value) = one.index.get(item) else { continue };
            if let Some(function) = value["inner"].get("function") {
                self.function(function, path.clone(), path);
            }
            for implementation in implementations(one, item) {
                self.implementation(one, path, implementation);
            }
        }
    }

    /// Adds the functions of one implementation for the type that is public as `path`.
    fn implementation(&mut self, one: &Crate, path: &str, implementation: &Value) {
        let of_trait = &implementation["trait"];
        let trait_name =
            of_trait["path"].as_str().map(|name| name.rsplit("::").next().unwrap_or(name));
        for function in list(&implementation["items"]) {
            let Some(function) = one.index.get(&id(function)) else { continue };
            let (Some(name), Some(signature)) =
                (function["name"].as_str(), function["inner"].get("function"))
            else {
                continue;
            };
            if trait_name.is_none() && function["visibility"] != "public" {
                continue;
            }
            let human = match trait_name {
                None => format!("{path}::{}", raw(name)),
                Some(trait_name) => format!("<{path} as {trait_name}>::{}", raw(name)),
            };
            if self.by_hand.exempts(&human) {
                continue;
            }
            let Some(choices) = self.choices(&implementation["generics"]) else {
                self.missing.insert(human);
                continue;
            };
            for chosen in choices {
                let own = self.render(one, &implementation["for"], &chosen, path);
                let expression = match (own, trait_name) {
                    (Some(own), None) => Some(format!("<{own}>::{}", raw(name))),
                    (Some(own), Some(_)) => self
                        .render_trait(one, of_trait, &chosen)
                        .map(|of_trait| format!("<{own} as {of_trait}>::{}", raw(name))),
                    (None, _) => None,
                };
                match expression {
                    Some(expression) => self.function(signature, expression, &human),
                    None => {
                        self.missing.insert(human.clone());
                    }
                }
            }
        }
    }

    /// Adds the function that `expression` names, once for each choice of its own type parameters.
    fn function(&mut self, function: &Value, expression: String, human: &str) {
        if self.by_hand.exempts(human) {
            return;
        }
        let generics = &function["generics"];
        // closures, and numbers that only who writes the call can choose
        let unknown = list(&generics["params"]).iter().any(|param| {
            param["kind"]["type"]["is_synthetic"] == true || param["kind"].get("const").is_some()
        });
        if unknown || has_key(&function["sig"], "impl_trait") {
            self.missing.insert(human.to_owned());
            return;
        }
        let Some(choices) = self.choices(generics) else {
            self.missing.insert(human.to_owned());
            return;
        };
        let order: Vec<&str> = list(&generics["params"])
            .iter()
            .filter(|param| param["kind"].get("type").is_some())
            .filter_map(|param| param["name"].as_str())
            .collect();
        for chosen in choices {
            let arguments: Vec<&str> =
                order.iter().filter_map(|name| chosen.get(*name)).map(String::as_str).collect();
            let call = if arguments.is_empty() {
                expression.clone()
            } else {
                format!("{expression}::<{}>", arguments.join(", "))
            };
            self.roots.insert(Root { path: human.to_owned(), call });
        }
    }

    /// All ways to fill the type parameters; none if one of them has no instances.
    fn choices(&self, generics: &Value) -> Option<Vec<Chosen>> {
        let mut all = vec![Chosen::new()];
        for param in list(&generics["params"]) {
            let Some(kind) = param["kind"].get("type") else { continue };
            let name = param["name"].as_str()?;
            let mut bounds: Vec<&Value> = list(&kind["bounds"]).iter().collect();
            for predicate in list(&generics["where_predicates"]) {
                let bound = &predicate["bound_predicate"];
                if bound["type"]["generic"] == name {
                    bounds.extend(list(&bound["bounds"]));
                }
            }
            let names =
                bounds.iter().filter_map(|bound| bound["trait_bound"]["trait"]["path"].as_str());
            let mut names: Vec<&str> =
                names.map(|name| name.rsplit("::").next().unwrap_or(name)).collect();
            // A bound that a derive adds says less than one that somebody wrote.
            names.sort_by_key(|name| DERIVED.contains(name));
            let instances = names.iter().find_map(|name| self.instances.get(*name))?;
            all = all
                .into_iter()
                .flat_map(|chosen| {
                    instances.iter().map(move |instance| {
                        let mut chosen = chosen.clone();
                        chosen.insert(name.to_owned(), instance.clone());
                        chosen
                    })
                })
                .collect();
        }
        Some(all)
    }

    /// The type in source form; `own` is the path of the type that an implementation is for.
    fn render(&self, one: &Crate, r#type: &Value, chosen: &Chosen, own: &str) -> Option<String> {
        let (kind, inner) = r#type.as_object()?.iter().next()?;
        match kind.as_str() {
            "primitive" => inner.as_str().map(str::to_owned),
            "generic" => match inner.as_str()? {
                "Self" => Some(own.to_owned()),
                name => chosen.get(name).cloned(),
            },
            "borrowed_ref" => {
                let to = self.render(one, &inner["type"], chosen, own)?;
                Some(if inner["is_mutable"] == true {
                    format!("&'static mut {to}")
                } else {
                    format!("&'static {to}")
                })
            }
            "slice" => Some(format!("[{}]", self.render(one, inner, chosen, own)?)),
            "array" => Some(format!(
                "[{}; {}]",
                self.render(one, &inner["type"], chosen, own)?,
                inner["len"].as_str()?
            )),
            "tuple" => {
                let parts: Option<Vec<String>> =
                    list(inner).iter().map(|part| self.render(one, part, chosen, own)).collect();
                Some(format!("({})", parts?.join(", ")))
            }
            "resolved_path" => {
                let path = self.path_of(one, inner)?;
                Some(path + &self.arguments(one, &inner["args"], chosen, own)?)
            }
            _ => None,
        }
    }

    fn render_trait(&self, one: &Crate, of_trait: &Value, chosen: &Chosen) -> Option<String> {
        let name = of_trait["path"].as_str()?;
        let path = self.path_of(one, of_trait).filter(|_| is_ours(one, of_trait));
        let path = path.unwrap_or_else(|| name.rsplit("::").next().unwrap_or(name).to_owned());
        Some(path + &self.arguments(one, &of_trait["args"], chosen, "")?)
    }

    fn arguments(
        &self,
        one: &Crate,
        arguments: &Value,
        chosen: &Chosen,
        own: &str,
    ) -> Option<String> {
        let mut rendered = Vec::new();
        for argument in list(&arguments["angle_bracketed"]["args"]) {
            if argument.get("lifetime").is_some() {
                rendered.push("'static".to_owned());
            } else {
                rendered.push(self.render(one, argument.get("type")?, chosen, own)?);
            }
        }
        Some(if rendered.is_empty() { String::new() } else { format!("<{}>", rendered.join(", ")) })
    }

    /// The path of a type or trait: by which users name it if it is ours, else as it is.
    fn path_of(&self, one: &Crate, resolved: &Value) -> Option<String> {
        let item = id(&resolved["id"]);
        if let Some(path) = one.public.get(&item) {
            return Some(path.clone());
        }
        let full = words(&one.paths.get(&item)?["path"]);
        if let Some(path) = self.public.get(&full) {
            return Some(path.clone());
        }
        // Of other crates only what everybody can name.
        Some(match full.as_str() {
            "core::option::Option" => "Option".to_owned(),
            "core::result::Result" => "Result".to_owned(),
            _ => full,
        })
    }
}

/// Whether the trait is one of the crate's own.
fn is_ours(one: &Crate, of_trait: &Value) -> bool {
    one.paths.get(&id(&of_trait["id"])).is_some_and(|entry| {
        entry["crate_id"] == 0 || entry["path"][0].as_str().is_some_and(|name| name == "elf_core")
    })
}

/// The implementations of a type that somebody wrote or derived.
fn implementations<'a>(one: &'a Crate, item: &str) -> Vec<&'a Value> {
    let Some(item) = one.index.get(item) else { return Vec::new() };
    let Some((_, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for member in list(&inner["impls"]) {
        let Some(value) = one.index.get(&id(member)) else { continue };
        let Some(implementation) = value["inner"].get("impl") else { continue };
        let written = implementation["is_synthetic"] != true
            && implementation["is_negative"] != true
            && implementation["blanket_impl"].is_null();
        if written {
            found.push(implementation);
        }
    }
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An identity is a number or, in older formats, text.
fn id(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn words(path: &Value) -> String {
    list(path).iter().filter_map(Value::as_str).collect::<Vec<_>>().join("::")
}

/// Names that are keywords need a mark.
fn raw(name: &str) -> String {
    match name {
        "type" | "match" | "ref" | "fn" | "mod" | "use" | "loop" | "move" | "impl" => {
            format!("r#{name}")
        }
        _ => name.to_owned(),
    }
}

fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(map) => {
            map.contains_key(key) || map.values().any(|value| has_key(value, key))
        }
        Value::Array(list) => list.iter().any(|value| has_key(value, key)),
        _ => false,
    }
}
