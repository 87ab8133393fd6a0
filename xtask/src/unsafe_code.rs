//! Code that the compiler cannot check: `UNSAFE.md` against the sources. Its table has a row a file: how often it says `unsafe`, and
//! what it relies on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use proc_macro2::{TokenStream, TokenTree};

use crate::packages::Package;
use crate::workspace::Workspace;

/// The list, at the root of the workspace.
const LIST: &str = "UNSAFE.md";

/// Crates that no program is made of.
const OUTSIDE: &[&str] = &["benches", "xtask"];

/// How often each file says `unsafe`, by its path from the root.
type Counts = BTreeMap<String, usize>;

/// Faults: files of the crates that the list does not have, or has otherwise.
pub(crate) fn faults(packages: &[Package], workspace: &Workspace) -> Result<Vec<String>> {
    let path = workspace.root().join(LIST);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {LIST}"))?;
    let listed = listed(&text).context(LIST)?;
    let mut real = Counts::new();
    for package in packages.iter().filter(|package| !OUTSIDE.contains(&package.name.as_str())) {
        for root in package.roots() {
            let folder = root.parent().unwrap_or(root);
            let is_source = folder.file_name().is_some_and(|name| name == "src");
            if !is_source {
                continue;
            }
            for file in sources(folder)? {
                let text = fs::read_to_string(&file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                let count = count(&text).with_context(|| file.display().to_string())?;
                let name = file.strip_prefix(workspace.root()).unwrap_or(&file);
                if count > 0 {
                    real.insert(name.display().to_string(), count);
                }
            }
        }
    }
    Ok(differences(&listed, &real))
}

/// All files of Rust in a folder and those in it.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// How often a text says `unsafe`, comments and strings aside: blocks, functions, implementations, pointers to functions. Attributes
/// (`unsafe_code`, `unsafe(naked)`) have words of their own, or belong to one that is counted.
fn count(text: &str) -> Result<usize> {
    let tokens: TokenStream = text.parse().map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(count_in(tokens))
}

fn count_in(tokens: TokenStream) -> usize {
    let one = |token| match token {
        TokenTree::Group(group) => count_in(group.stream()),
        TokenTree::Ident(ident) => usize::from(ident == "unsafe"),
        _ => 0,
    };
    tokens.into_iter().map(one).sum()
}

/// The rows of the table: a file, a number, and words.
fn listed(text: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [file, number, words] = cells[..] else { bail!("not three columns: {line}") };
        let number = number.parse().with_context(|| format!("no number: {line}"))?;
        if words.is_empty() {
            bail!("does not say what it relies on: {line}");
        }
        if counts.insert(file.trim_matches('`').to_owned(), number).is_some() {
            bail!("{file} has two rows");
        }
    }
    Ok(counts)
}

/// A line for each file that is not as it is listed.
fn differences(listed: &Counts, real: &Counts) -> Vec<String> {
    let new = real.iter().filter(|(file, count)| listed.get(*file) != Some(*count));
    let new = new.map(|(file, count)| {
        let said = listed.get(file).map_or("no row".to_owned(), usize::to_string);
        format!("{file}: says `unsafe` {count} times, {LIST}: {said}")
    });
    let gone = listed.keys().filter(|file| !real.contains_key(*file));
    new.chain(gone.map(|file| format!("{file}: in {LIST}, and without `unsafe`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_where_they_are_code() {
        let text = "// unsafe\n/// unsafe\nfn a() { let unsafe_code = \"unsafe\"; unsafe { b() } }\n\
                    unsafe extern \"C\" { fn c(); }\nmacro_rules! d { () => { unsafe { c() } }; }";
        assert_eq!(count(text).unwrap(), 3);
        assert!(count("fn a( {").is_err());
    }

    #[test]
    fn rows_and_their_differences() {
        let text = "# Title\n\n| file | number | relies on |\n|---|---:|---|\n| `a.rs` | 2 | x |\n| `b.rs` | 1 | y |\n";
        let list = listed(text).unwrap();
        assert_eq!(list, Counts::from([("a.rs".into(), 2), ("b.rs".into(), 1)]));
        let real = Counts::from([("a.rs".into(), 3), ("c.rs".into(), 1)]);
        assert_eq!(
            differences(&list, &real),
            [
                "a.rs: says `unsafe` 3 times, UNSAFE.md: 2",
                "c.rs: says `unsafe` 1 times, UNSAFE.md: no row",
                "b.rs: in UNSAFE.md, and without `unsafe`",
            ]
        );
        assert_eq!(differences(&list, &list), [] as [&str; 0]);
        assert!(listed("| `a.rs` | 2 | |").is_err() && listed("| `a.rs` | x | y |").is_err());
    }
}
