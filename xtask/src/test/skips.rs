//! The tests that may be skipped: `xtask/skips.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::total::Total;
use crate::workspace::Workspace;

/// The list, as its file has it.
#[derive(Deserialize)]
struct List {
    skip: Vec<Skip>,
}

/// Tests that need the same.
#[derive(Deserialize)]
struct Skip {
    /// What they need, for people.
    needs: String,
    /// A command of the shell that succeeds where it is there; without one, it is not there in any run of all tests.
    met: Option<String>,
    /// Their full names.
    tests: Vec<String>,
}

/// The list of tests that may be skipped, each where this machine lacks what it needs.
pub(crate) struct Skips {
    skips: Vec<Skip>,
    root: PathBuf,
}

impl Skips {
    /// Reads `xtask/skips.toml`.
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let path = workspace.root().join("xtask/skips.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text, workspace.root()).with_context(|| path.display().to_string())
    }

    fn parse(text: &str, root: &Path) -> Result<Self> {
        let list: List = toml::from_str(text)?;
        Ok(Self { skips: list.skip, root: root.to_owned() })
    }

    /// What a test or step (`STEP` stands for `STEP/PART`, too) may need.
    fn needs_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Skip> {
        let is = move |listed: &String| {
            name.strip_prefix(listed.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.skips.iter().filter(move |skip| skip.tests.iter().any(is))
    }

    /// The tests of `total` that are in the list under no need: a line for each.
    pub(crate) fn unlisted(&self, total: &Total) -> Vec<String> {
        let unlisted = total.skipped().filter(|(name, _)| self.needs_of(name).next().is_none());
        unlisted
            .map(|(name, reasons)| {
                let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
                format!("{name}: {}: not in xtask/skips.toml", reasons.join("; "))
            })
            .collect()
    }

    /// Those among `names` that are not to be skipped on this machine: a line for each.
    pub(crate) fn unexpected<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut answers: BTreeMap<String, bool> = BTreeMap::new();
        let mut lines = Vec::new();
        for name in names {
            let needs: Vec<&Skip> = self.needs_of(name).collect();
            if needs.is_empty() {
                lines.push(format!("{name}: not in xtask/skips.toml"));
                continue;
            }
            let mut is_met = |skip: &&Skip| {
                skip.met.as_deref().is_some_and(|met| {
                    *answers.entry(met.to_owned()).or_insert_with(|| self.succeeds(met))
                })
            };
            // needs that are listed one by one suffice one by one: a test is skipped for want of any
            if needs.iter().all(&mut is_met) {
                let all: Vec<&str> = needs.iter().map(|skip| skip.needs.as_str()).collect();
                lines.push(format!("{name}: this machine has what it needs: {}", all.join(", ")));
            }
        }
        lines
    }

    fn succeeds(&self, command: &str) -> bool {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).current_dir(&self.root);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.status().is_ok_and(|status| status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn list() -> Skips {
        let text = std::fs::read_to_string(root().join("xtask/skips.toml")).unwrap();
        Skips::parse(&text, &root()).unwrap()
    }

    const SAMPLE: &str = r#"
        [[skip]]
        needs = "what is here"
        met = "true"
        tests = ["a/b::here", "a/b::both"]

        [[skip]]
        needs = "what is nowhere"
        met = "false"
        tests = ["a/b::nowhere", "a/b::both", "step"]

        [[skip]]
        needs = "another test that starts it"
        tests = ["a/b::started"]
    "#;

    #[test]
    fn a_skip_without_a_reason_is_unexpected() {
        let skips = Skips::parse(SAMPLE, &root()).unwrap();
        let all =
            ["a/b::here", "a/b::both", "a/b::nowhere", "step/part", "stepping", "a/b::started"];
        assert_eq!(
            skips.unexpected(all.into_iter()),
            [
                "a/b::here: this machine has what it needs: what is here",
                "stepping: not in xtask/skips.toml",
            ]
        );
    }

    /// Every source of a package.
    fn sources(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|end| end == "rs") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn what_is_listed_exists_once_for_each_need() {
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        let skips = list();
        for skip in &skips.skips {
            let mut seen = std::collections::BTreeSet::new();
            for name in &skip.tests {
                assert!(seen.insert(name), "{name} is listed twice for {}", skip.needs);
                let Some((package, test)) = name.split_once('/') else { continue };
                let Some((_, test)) = test.rsplit_once("::") else { continue };
                let text = texts.entry(package).or_insert_with(|| {
                    let mut text = String::new();
                    sources(&root().join(package), &mut text);
                    text
                });
                let is_there = text.contains(&format!("fn {test}()"))
                    || text.contains(&format!("\n    {test}:"));
                assert!(is_there, "{package} has no test {test}");
            }
        }
    }
}
