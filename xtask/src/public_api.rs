//! `api`: what the published libraries offer, item by item, beside the committed snapshots.
//!
//! A snapshot is a text file for each crate in `xtask/api/`, in the form of `cargo public-api`: so that a change of what others
//! build upon is seen where it is made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::documentation::documented;
use crate::packages::{Package, packages};
use crate::task::Run;
use crate::tool::output;
use crate::workspace::Workspace;

mod shared;

/// Arguments of `api`.
#[derive(clap::Args)]
pub(crate) struct Api {
    /// Write the snapshots
    #[arg(long)]
    write: bool,
    /// Compare the snapshots with those of this commit or tag: what is gone, or not as it was, breaks who builds upon it
    #[arg(long, value_name = "REVISION", conflicts_with = "write")]
    since: Option<String>,
    /// Only these crates
    crates: Vec<String>,
}

/// The library of the command line is for its own tests: nothing of it is promised.
const WITHOUT: &str = "hoist-tool";

/// How much of a difference is shown.
const LINES: usize = 20;

impl Run for Api {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let all = packages(workspace)?;
        let wanted = |package: &&Package| {
            package.is_published()
                && package.name != WITHOUT
                && (self.crates.is_empty() || self.crates.contains(&package.name))
        };
        let chosen: Vec<&Package> = all.iter().filter(wanted).collect();
        if let Some(revision) = &self.since {
            return since(workspace, revision, &chosen);
        }
        let (mut changed, mut texts) = (Vec::new(), Vec::new());
        let named: Vec<&str> = self.crates.iter().map(String::as_str).collect();
        let documentation = documented(workspace, &named)?;
        for package in &chosen {
            let offered = offered(&documentation, &package.name)?;
            let path = snapshot(workspace, &package.name);
            texts.push(offered.clone());
            if self.write {
                fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
                fs::write(&path, &offered).with_context(|| path.display().to_string())?;
                continue;
            }
            let kept = fs::read_to_string(&path).unwrap_or_default();
            let difference = difference(&kept, &offered);
            if !difference.is_empty() {
                println!("{}: {} items differ", package.name, difference.len());
                difference.iter().take(LINES).for_each(|line| println!("  {line}"));
                changed.push(package.name.as_str());
            }
        }
        if !changed.is_empty() {
            bail!(
                "the API of {} is not that of xtask/api: if it is meant to, cargo xtask api --write, and a line in CHANGELOG.md",
                changed.join(", ")
            );
        }
        let shared = shared::shared(texts.iter().map(String::as_str));
        if !shared.is_empty() {
            bail!("names that several crates export:\n  {}", shared.join("\n  "));
        }
        let items: usize = texts.iter().map(|text| text.lines().count()).sum();
        println!("{items} items of {} crates", chosen.len());
        Ok(())
    }
}

/// Fails if a snapshot lacks an item that it had at `revision`.
fn since(workspace: &Workspace, revision: &str, packages: &[&Package]) -> Result<()> {
    let (mut gone, mut added) = (0, 0);
    for package in packages {
        let path = format!("{revision}:xtask/api/{}.txt", package.name);
        let mut git = Command::new("git");
        // a crate that was not there has nothing to keep
        let then = output(git.current_dir(workspace.root()).args(["show", &path]));
        let then = then.map_or(Ok(String::new()), |then| String::from_utf8(then.stdout))?;
        let now = fs::read_to_string(snapshot(workspace, &package.name))?;
        let lines = difference(&then, &now);
        added += lines.iter().filter(|line| line.starts_with('+')).count();
        for line in lines.iter().filter(|line| line.starts_with('-')) {
            gone += 1;
            println!("{}: {line}", package.name);
        }
    }
    println!("{added} items are new since {revision}, {gone} are gone or not as they were");
    if gone > 0 { bail!("the next version breaks what {revision} promised") } else { Ok(()) }
}

/// Where the snapshot of a crate is.
fn snapshot(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.root().join("xtask/api").join(format!("{name}.txt"))
}

/// Every public item of a crate with all its features, one a line. What every type has (`Send`, `Into`, derived traits) is left
/// out.
fn offered(documentation: &Path, name: &str) -> Result<String> {
    let path = documentation.join(format!("{}.json", name.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(&path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| {
            format!("{name}: the crate public-api and this rustdoc do not go together")
        })?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Lines that only one of two texts has, marked `-` and `+`.
fn difference(kept: &str, offered: &str) -> Vec<String> {
    let only = |these: &str, those: &str, mark: char| -> Vec<String> {
        let those: std::collections::HashSet<&str> = those.lines().collect();
        these
            .lines()
            .filter(|line| !those.contains(line))
            .map(|line| format!("{mark} {line}"))
            .collect()
    };
    let mut lines = only(kept, offered, '-');
    lines.extend(only(offered, kept, '+'));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_marked() {
        let lines = difference("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n");
        assert_eq!(lines, ["- pub fn a()", "+ pub fn c()"]);
        assert!(difference("same\n", "same\n").is_empty());
    }
}
