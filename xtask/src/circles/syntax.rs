//! Questions to a piece of syntax: its name, its attributes, what a `use` brings in.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Item, Meta, Type, UseTree, punctuated::Punctuated, token};

/// One name that a `use` brings in.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// What it is called here; `None` is `*`.
    pub(crate) name: Option<String>,
    pub(crate) line: usize,
}

/// An identifier as it is found: without `r#`.
pub(crate) fn bare(ident: &syn::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

/// The name that an item defines.
pub(crate) fn name_of(item: &Item) -> Option<String> {
    Some(bare(match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    }))
}

/// The attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is there in tests only: they may use whatever stands above.
pub(crate) fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|meta| needs_test(&meta))
        }
        meta => meta.path().is_ident("test"),
    })
}

/// Whether a `cfg` holds in tests only.
fn needs_test(meta: &Meta) -> bool {
    let Meta::List(list) = meta else { return meta.path().is_ident("test") };
    let parts = list
        .parse_args_with(Punctuated::<Meta, token::Comma>::parse_terminated)
        .unwrap_or_default();
    if list.path.is_ident("all") {
        parts.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
    }
}

/// The files that `path = ".."` names, alone or in a `cfg_attr`.
pub(crate) fn paths_of(attrs: &[Attribute]) -> Vec<String> {
    let mut paths = Vec::new();
    for attribute in attrs {
        let metas = match &attribute.meta {
            Meta::List(list) if list.path.is_ident("cfg_attr") => list
                .parse_args_with(Punctuated::<Meta, token::Comma>::parse_terminated)
                .map(|metas| metas.into_iter().skip(1).collect())
                .unwrap_or_default(),
            meta => vec![meta.clone()],
        };
        for meta in metas {
            if let Meta::NameValue(pair) = meta
                && pair.path.is_ident("path")
                && let syn::Expr::Lit(literal) = &pair.value
                && let syn::Lit::Str(text) = &literal.lit
            {
                paths.push(text.value());
            }
        }
    }
    paths
}

/// Adds the names that `tree`, behind `before`, brings in.
pub(crate) fn flatten(
    tree: &UseTree,
    before: &mut Vec<String>,
    line: usize,
    found: &mut Vec<Import>,
) {
    let mut leaf = |last: Option<String>, name: Option<String>| {
        let mut path = before.clone();
        let own = match last {
            Some(last) if last == "self" && !path.is_empty() => path.last().cloned(),
            Some(last) => {
                path.push(last.clone());
                Some(last)
            }
            None => None,
        };
        let name = name.or(own);
        found.push(Import { path, name, line });
    };
    match tree {
        UseTree::Name(name) => leaf(Some(bare(&name.ident)), None),
        UseTree::Rename(rename) => leaf(Some(bare(&rename.ident)), Some(bare(&rename.rename))),
        UseTree::Glob(_) => leaf(None, None),
        UseTree::Path(path) => {
            before.push(bare(&path.ident));
            flatten(&path.tree, before, line, found);
            before.pop();
        }
        UseTree::Group(group) => {
            for part in &group.items {
                flatten(part, before, line, found);
            }
        }
    }
}

/// All identifiers in `tokens`.
pub(crate) fn words(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(bare(&ident));
            }
            TokenTree::Group(group) => words(group.stream(), found),
            _ => {}
        }
    }
}

/// The name of a type that is a path.
pub(crate) fn type_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| bare(&last.ident)),
        _ => None,
    }
}
