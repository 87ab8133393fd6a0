//! `layers`: the picture in ARCHITECTURE.md against the manifests, the rules of the lower crates, and circles of files.
//!
//! The picture is a fenced block of ARCHITECTURE.md whose info string has the word `layers`. A line is a crate and an
//! arrow to each crate of ours that its manifest names (features included, development left out):
//!
//! ```text
//! elf-core   ->
//! elf-layout -> elf-core
//! exec-host  -> exec-core elf-layout
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::circles;
use crate::packages::{Package, packages};
use crate::places;
use crate::task::Run;
use crate::tool::{cargo, output};
use crate::unsafe_code;
use crate::workspace::Workspace;

/// Arguments of `layers`: none.
#[derive(clap::Args)]
pub(crate) struct Layers {}

/// Crates that read untrusted bytes, beside those of architectures (`reloc-*`): `no_std`, without `unsafe`, and with few friends.
const LOWER: &[&str] = &["elf-core", "elf-image", "elf-layout", "nvinfo", "fatbin", "archs"];

/// Whether a crate is one of them.
pub(crate) fn is_lower(name: &str) -> bool {
    LOWER.contains(&name) || name.starts_with("reloc-")
}

/// What lower crates may depend on beside each other. Optional dependencies are free: the default build is without them.
const ALLOWED: &[&str] = &["zerocopy", "bitflags"];

/// Lines that the `lib.rs` of a lower crate must have.
const ATTRIBUTES: &[&str] = &["#![no_std]", "#![forbid(unsafe_code)]"];

/// Crates that have no place in the picture: nobody can depend on them.
const OUTSIDE: &[&str] = &["benches", "xtask"];

/// Crate to the crates of ours that it depends on.
type Arrows = BTreeMap<String, BTreeSet<String>>;

impl Run for Layers {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let packages = packages(workspace)?;
        let path = workspace.root().join("ARCHITECTURE.md");
        let text = fs::read_to_string(&path).context("cannot read ARCHITECTURE.md")?;
        let drawn = picture(&text).context("ARCHITECTURE.md")?;

        let mut faults = differences(&drawn, &arrows(&packages));
        for package in packages.iter().filter(|package| is_lower(&package.name)) {
            faults.extend(package.foreign());
            faults.extend(package.default_features());
            faults.extend(package.without_attributes()?);
        }
        if packages.iter().any(|package| package.name == "hoist") {
            faults.extend(facade(workspace)?);
        }
        faults.extend(unsafe_code::faults(&packages, workspace)?);
        faults.extend(places::faults(workspace)?);
        let circles = circles::faults(&packages, workspace)?;
        for fault in faults.iter().chain(&circles) {
            println!("{fault}");
        }
        if !faults.is_empty() || !circles.is_empty() {
            let (drawn, circles) = (faults.len(), circles.len());
            bail!(
                "{drawn} differences between ARCHITECTURE.md, UNSAFE.md and the crates, {circles} faults of files"
            );
        }
        println!(
            "{} crates are as ARCHITECTURE.md draws them, without circles of files",
            drawn.len()
        );
        Ok(())
    }
}

impl Package {
    /// Faults: dependencies that a lower crate must not have.
    fn foreign(&self) -> impl Iterator<Item = String> {
        self.needs()
            .filter(|needed| {
                !needed.optional
                    && needed.path.is_none()
                    && !ALLOWED.contains(&needed.name.as_str())
            })
            .map(|needed| format!("{}: must not depend on {}", self.name, needed.name))
    }

    /// Faults: default features of a lower crate that bring a heap or another crate. Forms of files they may bring.
    fn default_features(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut rest = vec!["default"];
        let mut seen = BTreeSet::new();
        while let Some(feature) = rest.pop().filter(|feature| seen.insert(*feature)) {
            for part in self.features.get(feature).into_iter().flatten() {
                if part == "alloc" || part == "std" || part.starts_with("dep:") {
                    faults.push(format!("{}: {part} must not be on by default", self.name));
                }
                rest.push(part);
            }
        }
        faults
    }

    /// Faults: what the `lib.rs` of a lower crate does not say.
    fn without_attributes(&self) -> Result<Vec<String>> {
        let Some(library) = self.library() else {
            return Ok(vec![format!("{}: is no library", self.name)]);
        };
        let text = fs::read_to_string(library)
            .with_context(|| format!("cannot read {}", library.display()))?;
        let missing =
            ATTRIBUTES.iter().filter(|attribute| !text.lines().any(|line| line == **attribute));
        Ok(missing
            .map(|attribute| format!("{}: lib.rs does not say {attribute}", self.name))
            .collect())
    }
}

/// The arrows as the manifests have them.
fn arrows(packages: &[Package]) -> Arrows {
    let inside = packages.iter().filter(|package| !OUTSIDE.contains(&package.name.as_str()));
    inside
        .map(|package| {
            let ours = package.needs().filter(|needed| needed.path.is_some());
            (package.name.clone(), ours.map(|needed| needed.name.clone()).collect())
        })
        .collect()
}

/// The arrows as the fenced block of `text` draws them.
fn picture(text: &str) -> Result<Arrows> {
    let is_start = |line: &&str| {
        line.strip_prefix("```").is_some_and(|info| info.split(' ').any(|w| w == "layers"))
    };
    let mut lines = text.lines().skip_while(|line| !is_start(line));
    lines.next().context("no fenced block is marked `layers`")?;
    let mut arrows = Arrows::new();
    for line in
        lines.take_while(|line| !line.starts_with("```")).filter(|line| !line.trim().is_empty())
    {
        let (from, to) = line.split_once("->").with_context(|| format!("no arrow in: {line}"))?;
        let to = to.split_whitespace().map(str::to_owned).collect();
        if arrows.insert(from.trim().to_owned(), to).is_some() {
            bail!("{} is drawn twice", from.trim());
        }
    }
    Ok(arrows)
}

/// What `drawn` and `real` do not have in common, a line for each.
fn differences(drawn: &Arrows, real: &Arrows) -> Vec<String> {
    let mut faults = Vec::new();
    let crates: BTreeSet<&String> = drawn.keys().chain(real.keys()).collect();
    for name in crates {
        match (drawn.get(name), real.get(name)) {
            (Some(_), None) => faults.push(format!("{name}: drawn, but not in the workspace")),
            (None, _) => faults.push(format!("{name}: in the workspace, but not drawn")),
            (Some(drawn), Some(real)) => {
                faults.extend(
                    drawn
                        .difference(real)
                        .map(|to| format!("{name} -> {to}: drawn, but not in the manifest")),
                );
                faults.extend(
                    real.difference(drawn)
                        .map(|to| format!("{name} -> {to}: in the manifest, but not drawn")),
                );
            }
        }
    }
    faults
}

/// What the library must not bring to who asks for no features: an argument parser, and what compiles or finds C code.
const HEAVY: &[&str] = &["anyhow", "bindgen", "cc", "clap", "cmake", "pkg-config", "rusqlite"];

/// Faults: what `hoist` pulls in when all its features are off, beyond `elf-core`, and what of [`HEAVY`] the default ones bring.
fn facade(workspace: &Workspace) -> Result<Vec<String>> {
    let bare = pulled(workspace, &["--no-default-features", "--depth", "1"])?;
    let surplus = bare.iter().filter(|name| !["hoist", "elf-core"].contains(&name.as_str()));
    let surplus = surplus.map(|name| format!("hoist: without features, pulls in {name}"));
    let usual = pulled(workspace, &[])?;
    let heavy = HEAVY.iter().filter(|name| usual.contains(**name));
    let heavy = heavy.map(|name| format!("hoist: with default features, pulls in {name}"));
    Ok(surplus.chain(heavy).collect())
}

/// The packages that `hoist` needs to be built and to run, as far as `cargo tree` with these words shows them.
fn pulled(workspace: &Workspace, words: &[&str]) -> Result<BTreeSet<String>> {
    let mut command = cargo();
    command.current_dir(workspace.root()).args(["tree", "--package", "hoist"]).args(words);
    command.args(["--edges", "normal,build", "--prefix", "none"]);
    let tree = String::from_utf8(output(&mut command)?.stdout)?;
    Ok(tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Title\n```rust\nx -> y\n```\n```text layers\na   ->\n\nb   -> a\nc   -> a b\n```\nd -> a\n";

    fn arrows_of(lines: &[(&str, &[&str])]) -> Arrows {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        lines.iter().map(|(from, to)| ((*from).to_owned(), owned(to))).collect()
    }

    #[test]
    fn the_block_is_read_and_nothing_else() {
        assert_eq!(
            picture(TEXT).unwrap(),
            arrows_of(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"])])
        );
        assert!(picture("no block").is_err());
        assert!(picture("``` layers\na b\n```").is_err());
        assert!(picture("``` layers\na ->\na ->\n```").is_err());
    }

    #[test]
    fn every_difference_is_told() {
        let drawn = arrows_of(&[("a", &[]), ("b", &["a"]), ("old", &[])]);
        let real = arrows_of(&[("a", &["b"]), ("b", &[]), ("new", &[])]);
        let faults = differences(&drawn, &real);
        assert_eq!(
            faults,
            [
                "a -> b: in the manifest, but not drawn",
                "b -> a: drawn, but not in the manifest",
                "new: in the workspace, but not drawn",
                "old: drawn, but not in the workspace",
            ]
        );
        assert_eq!(differences(&drawn, &drawn), [] as [&str; 0]);
    }
}
