//! `fixtures/fixtures.toml` and `fixtures/calls.toml` as types.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// `fixtures.toml`: how every binary was made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipes {
    /// The programs that commands start with.
    pub(crate) tools: BTreeMap<String, Maker>,
    /// The binaries, each after those it is made from.
    pub(crate) fixture: Vec<Recipe>,
}

/// A compiler, assembler, linker or archiver.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Maker {
    /// The Debian package that brings it.
    pub(crate) package: String,
    /// The first line of what it answers to `--version`.
    pub(crate) version: String,
}

/// How one binary was made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    /// What is made, relative to `fixtures/`.
    pub(crate) output: String,
    /// What it is made from, relative to `fixtures/`.
    pub(crate) sources: Vec<String>,
    /// A line for `sh`, run in the folder of `output`.
    pub(crate) command: String,
    /// What is special about it.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the file")]
    pub(crate) about: String,
}

impl Recipe {
    /// The program that the command starts with.
    pub(crate) fn program(&self) -> &str {
        self.command.split_whitespace().next().unwrap_or_default()
    }
}

/// `calls.toml`: what the functions in the fixtures return.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Programs {
    /// Sets of objects and the calls that can be made of them.
    pub(crate) program: Vec<Program>,
}

/// The same calls for one or several builds of the same program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    /// `x86_64`, `i386`, `aarch64`, `arm` or `riscv64`.
    pub(crate) arch: String,
    /// Each the files that are loaded together, relative to `fixtures/`.
    pub(crate) builds: Vec<Vec<String>>,
    /// Whether `.init_array` has to run before the calls.
    #[serde(default)]
    #[expect(dead_code, reason = "a linked program always runs it")]
    pub(crate) initialisers: bool,
    /// Each made of a program that has just been loaded.
    pub(crate) calls: Vec<Call>,
}

/// One call and what is to come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// Symbol name.
    pub(crate) function: String,
    /// Arguments as `hoist run` takes them.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Type of the returned value.
    #[serde(default = "void")]
    pub(crate) ret: String,
    /// The returned value; absent if `ret` is `void`.
    pub(crate) expect: Option<String>,
    /// The contents of each buffer argument after the call, in order, as `buf:` arguments.
    #[serde(default)]
    pub(crate) buffers: Vec<String>,
    /// What the call writes to standard output.
    #[serde(default)]
    pub(crate) prints: String,
    /// Whether a program of the system's linker gives the same answer.
    #[serde(default = "yes")]
    pub(crate) linked: bool,
}

fn void() -> String {
    "void".into()
}

fn yes() -> bool {
    true
}

/// Reads one of the two files.
///
/// # Errors
/// If it cannot be read or is not what it should be.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} is not as it should be", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn every_fixture_is_there_and_comes_after_what_it_is_made_from() {
        let fixtures = Workspace::find().unwrap().fixtures();
        let recipes: Recipes = read(&fixtures.join("fixtures.toml")).unwrap();
        let outputs: BTreeSet<&str> =
            recipes.fixture.iter().map(|recipe| recipe.output.as_str()).collect();
        assert_eq!(outputs.len(), recipes.fixture.len(), "an output is recorded twice");
        let mut made = BTreeSet::new();
        for recipe in &recipes.fixture {
            assert!(fixtures.join(&recipe.output).is_file(), "{} is missing", recipe.output);
            assert!(
                recipes.tools.contains_key(recipe.program()),
                "{}: unknown tool",
                recipe.output
            );
            for source in &recipe.sources {
                assert!(fixtures.join(source).is_file(), "{source} is missing");
                assert!(
                    !outputs.contains(source.as_str()) || made.contains(source.as_str()),
                    "{source} comes too late"
                );
            }
            made.insert(recipe.output.as_str());
        }
    }

    #[test]
    fn every_called_object_is_recorded() {
        let fixtures = Workspace::find().unwrap().fixtures();
        let recipes: Recipes = read(&fixtures.join("fixtures.toml")).unwrap();
        let programs: Programs = read(&fixtures.join("calls.toml")).unwrap();
        for object in programs.program.iter().flat_map(|program| program.builds.iter().flatten()) {
            assert!(
                recipes.fixture.iter().any(|recipe| recipe.output == *object),
                "{object} is not recorded"
            );
        }
    }
}
