//! Names that two libraries export for different things: who reads one in a program should not have to look where it comes from.

use std::collections::BTreeMap;

/// What each crate has of its own.
const OWN: &[&str] = &["Error", "ErrorKind"];

/// Modules named for a layer or a format, in whose words their names are.
const WORDS_OF_THEIR_OWN: &[&str] = &["raw", "raw32", "raw64", "names", "link"];

/// The names of types, traits and functions' types that more than one of the snapshots defines: each with its paths.
pub(super) fn shared<'t>(snapshots: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in snapshots.flat_map(str::lines).filter_map(defined) {
        let Some((_, name)) = path.rsplit_once("::") else { continue };
        let paths = known.entry(name).or_default();
        if paths.iter().all(|other| crate_of(other) != crate_of(path)) {
            paths.push(path);
        }
    }
    let shared = known.into_iter().filter(|(name, paths)| paths.len() > 1 && !OWN.contains(name));
    shared.map(|(name, paths)| format!("{name}: {}", paths.join(", "))).collect()
}

/// The path of a type or trait that a line of a snapshot defines, outside of modules with words of their own.
fn defined(line: &str) -> Option<&str> {
    let line = line.strip_prefix("#[non_exhaustive] ").unwrap_or(line).strip_prefix("pub ")?;
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let rest = ["struct ", "enum ", "union ", "trait ", "type "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    let path = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).next()?;
    let path = path.trim_end_matches(':');
    let (modules, _) = path.rsplit_once("::")?;
    // a type of a type is associated
    let is_of_module = |part: &str| !part.starts_with(char::is_uppercase);
    let mut parts = modules.split("::");
    (modules.split("::").all(is_of_module) && !parts.any(|part| WORDS_OF_THEIR_OWN.contains(&part)))
        .then_some(path)
}

fn crate_of(path: &str) -> &str {
    path.split("::").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_crates() {
        let one = "pub struct one::Plan<'a>\npub struct one::Error\npub type one::Device::Program: one::Program\n\
                   pub trait one::Program: core::marker::Send\npub struct one::raw::Row\n";
        let two = "#[non_exhaustive] pub enum two::deep::Plan\npub struct two::Error\npub struct two::Row\n\
                   pub fn two::Plan::of()\n";
        assert_eq!(shared([one, two].into_iter()), ["Plan: one::Plan, two::deep::Plan"]);
        assert!(shared([one].into_iter()).is_empty());
    }
}
