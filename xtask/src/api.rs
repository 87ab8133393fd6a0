//! The public API of a crate, as rustdoc tells it: every function that a user can call, with its generics filled in.
//!
//! What follows from no rule - closures, `impl Trait` - is written by hand in a table beside, and asked for by name where it is
//! missing: so an entry point that is added is an entry point that is examined.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use rustdoc_types::{
    Function, GenericBound, GenericParamDefKind, Generics, Impl, ItemEnum, Type, Visibility,
    WherePredicate,
};
use serde::Deserialize;

use crate::workspace::Workspace;
use document::{Crate, last, raw};
use render::{Chosen, Names};

mod document;
mod opaque;
mod render;

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
            public.insert(one.full_path(*id).unwrap_or_else(|| path.clone()), path.clone());
        }
    }
    let mut finder = Finder {
        by_hand,
        names: Names(public),
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

/// Finds the functions.
struct Finder<'a> {
    by_hand: &'a ByHand,
    names: Names,
    /// Trait to its types.
    instances: BTreeMap<String, Vec<String>>,
    roots: BTreeSet<Root>,
    /// Paths of functions for which no rule holds.
    missing: BTreeSet<String>,
}

impl Finder<'_> {
    /// Adds the types of this crate that implement a trait of ours without further ado.
    fn collect_instances(&mut self, one: &Crate) {
        for (&item, path) in &one.public {
            for implementation in one.implementations(item) {
                let Some(of_trait) = &implementation.trait_ else { continue };
                let name = last(&of_trait.path);
                if self.by_hand.instances.contains_key(name) || !one.is_ours(of_trait) {
                    continue;
                }
                for chosen in self.choices(&implementation.generics).unwrap_or_default() {
                    if let Some(text) = self.names.render(one, &implementation.for_, &chosen, path)
                    {
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
        for (&item, path) in &one.public {
            if let Some(ItemEnum::Function(function)) = one.item(item).map(|item| &item.inner) {
                self.function(function, path.clone(), path);
            }
            for implementation in one.implementations(item) {
                self.implementation(one, path, implementation);
            }
        }
    }

    /// Adds the functions of one implementation for the type that is public as `path`.
    fn implementation(&mut self, one: &Crate, path: &str, implementation: &Impl) {
        let of_trait = implementation.trait_.as_ref();
        for item in implementation.items.iter().filter_map(|id| one.item(*id)) {
            let (Some(name), ItemEnum::Function(function)) = (&item.name, &item.inner) else {
                continue;
            };
            if of_trait.is_none() && item.visibility != Visibility::Public {
                continue;
            }
            let human = match of_trait {
                None => format!("{path}::{}", raw(name)),
                Some(of_trait) => format!("<{path} as {}>::{}", last(&of_trait.path), raw(name)),
            };
            if self.by_hand.exempts(&human) {
                continue;
            }
            let Some(choices) = self.choices(&implementation.generics) else {
                self.missing.insert(human);
                continue;
            };
            for chosen in choices {
                let own = self.names.render(one, &implementation.for_, &chosen, path);
                let expression = own.and_then(|own| match of_trait {
                    None => Some(format!("<{own}>::{}", raw(name))),
                    Some(of_trait) => self
                        .names
                        .render_trait(one, of_trait, &chosen)
                        .map(|of_trait| format!("<{own} as {of_trait}>::{}", raw(name))),
                });
                match expression {
                    Some(expression) => self.function(function, expression, &human),
                    None => {
                        self.missing.insert(human.clone());
                    }
                }
            }
        }
    }

    /// Adds the function that `expression` names, once for each choice of its own type parameters.
    fn function(&mut self, function: &Function, expression: String, human: &str) {
        if self.by_hand.exempts(human) {
            return;
        }
        let params = &function.generics.params;
        // closures, and numbers that only who writes the call can choose
        let unknown = params.iter().any(|param| {
            matches!(
                param.kind,
                GenericParamDefKind::Type { is_synthetic: true, .. }
                    | GenericParamDefKind::Const { .. }
            )
        });
        let choices = if unknown || opaque::is_in_signature(&function.sig) {
            None
        } else {
            self.choices(&function.generics)
        };
        let Some(choices) = choices else {
            self.missing.insert(human.to_owned());
            return;
        };
        let types =
            params.iter().filter(|param| matches!(param.kind, GenericParamDefKind::Type { .. }));
        let order: Vec<&str> = types.map(|param| param.name.as_str()).collect();
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
    fn choices(&self, generics: &Generics) -> Option<Vec<Chosen>> {
        let mut all = vec![Chosen::new()];
        for param in &generics.params {
            let GenericParamDefKind::Type { bounds, .. } = &param.kind else { continue };
            let own = generics.where_predicates.iter().filter_map(|predicate| match predicate {
                WherePredicate::BoundPredicate { type_: Type::Generic(name), bounds, .. } => {
                    (*name == param.name).then_some(bounds)
                }
                _ => None,
            });
            let traits = bounds.iter().chain(own.flatten()).filter_map(|bound| match bound {
                GenericBound::TraitBound { trait_, .. } => Some(last(&trait_.path)),
                _ => None,
            });
            let mut names: Vec<&str> = traits.collect();
            // A bound that a derive adds says less than one that somebody wrote.
            names.sort_by_key(|name| DERIVED.contains(name));
            let instances = names.iter().find_map(|name| self.instances.get(*name))?;
            all = all
                .into_iter()
                .flat_map(|chosen| {
                    instances.iter().map(move |instance| {
                        let mut chosen = chosen.clone();
                        chosen.insert(param.name.clone(), instance.clone());
                        chosen
                    })
                })
                .collect();
        }
        Some(all)
    }
}
