//! Types as source has them.

use std::collections::BTreeMap;

use rustdoc_types::{GenericArg, GenericArgs, Path, Type};

use super::document::{Crate, last};

/// Type parameter to the type that stands for it.
pub(super) type Chosen = BTreeMap<String, String>;

/// Full path of an item of our crates to the path by which users name it.
pub(super) struct Names(pub(super) BTreeMap<String, String>);

impl Names {
    /// The type in source form; `own` is the path of the type that an implementation is for.
    pub(super) fn render(
        &self,
        one: &Crate,
        r#type: &Type,
        chosen: &Chosen,
        own: &str,
    ) -> Option<String> {
        let of = |r#type: &Type| self.render(one, r#type, chosen, own);
        match r#type {
            Type::Primitive(name) => Some(name.clone()),
            Type::Generic(name) if name == "Self" => Some(own.to_owned()),
            Type::Generic(name) => chosen.get(name).cloned(),
            Type::BorrowedRef { is_mutable: true, type_, .. } => {
                Some(format!("&'static mut {}", of(type_)?))
            }
            Type::BorrowedRef { type_, .. } => Some(format!("&'static {}", of(type_)?)),
            Type::Slice(element) => Some(format!("[{}]", of(element)?)),
            Type::Array { type_, len } => Some(format!("[{}; {len}]", of(type_)?)),
            Type::Tuple(parts) => {
                let parts: Option<Vec<String>> = parts.iter().map(of).collect();
                Some(format!("({})", parts?.join(", ")))
            }
            Type::ResolvedPath(path) => {
                let arguments = self.arguments(one, path, chosen, own)?;
                Some(self.path_of(one, path)? + &arguments)
            }
            _ => None,
        }
    }

    /// The trait in source form.
    pub(super) fn render_trait(
        &self,
        one: &Crate,
        of_trait: &Path,
        chosen: &Chosen,
    ) -> Option<String> {
        let path = self.path_of(one, of_trait).filter(|_| one.is_ours(of_trait));
        let path = path.unwrap_or_else(|| last(&of_trait.path).to_owned());
        Some(path + &self.arguments(one, of_trait, chosen, "")?)
    }

    fn arguments(&self, one: &Crate, path: &Path, chosen: &Chosen, own: &str) -> Option<String> {
        let Some(GenericArgs::AngleBracketed { args, .. }) = path.args.as_deref() else {
            return Some(String::new());
        };
        let rendered: Option<Vec<String>> = args
            .iter()
            .map(|argument| match argument {
                GenericArg::Lifetime(_) => Some("'static".to_owned()),
                GenericArg::Type(r#type) => self.render(one, r#type, chosen, own),
                GenericArg::Const(_) | GenericArg::Infer => None,
            })
            .collect();
        let rendered = rendered?;
        Some(if rendered.is_empty() { String::new() } else { format!("<{}>", rendered.join(", ")) })
    }

    /// The path of a type or trait: by which users name it if it is ours, else as it is.
    fn path_of(&self, one: &Crate, path: &Path) -> Option<String> {
        if let Some(path) = one.public.get(&path.id) {
            return Some(path.clone());
        }
        let full = one.full_path(path.id)?;
        if let Some(path) = self.0.get(&full) {
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
