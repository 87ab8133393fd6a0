//! Wheels of the list: where they are, and where what becomes of them is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::tool;
use crate::workspace::Workspace;

/// A wheel of the list.
#[derive(Clone, Deserialize)]
pub(crate) struct Wheel {
    pub(crate) name: String,
    pub(crate) version: String,
    /// What is installed of the index, with `alone` in place of all that it depends on.
    #[serde(default)]
    pub(crate) requires: Vec<String>,
    /// Others of the list.
    #[serde(default)]
    pub(crate) with: Vec<String>,
    /// Why its dependencies are not installed.
    pub(crate) alone: Option<String>,
    /// A script that imports it.
    pub(crate) test: String,
    /// Runs whose result is installed, instead of all.
    #[serde(default)]
    pub(crate) runs: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    wheel: Vec<Wheel>,
}

/// Where things are.
pub(crate) struct Places {
    pub(crate) hoist: PathBuf,
    pub(crate) wheels: PathBuf,
    /// What was made.
    pub(crate) out: PathBuf,
    pub(crate) scratch: PathBuf,
}

/// The wheels of the list.
pub(crate) fn list() -> Result<Vec<Wheel>> {
    let list: List = toml::from_str(include_str!("wheels.toml"))?;
    Ok(list.wheel)
}

impl Wheel {
    /// Whether words of the command line mean it: parts of names, or none for all.
    pub(crate) fn is_meant(&self, only: &[String]) -> bool {
        only.is_empty() || only.iter().any(|part| self.name.contains(part))
    }
}

impl Places {
    /// For a task: with wheels and a hoist that exist, or else those that it obtains and builds.
    pub(crate) fn new(
        workspace: &Workspace,
        task: &str,
        wheels: Option<&Path>,
        hoist: Option<&Path>,
    ) -> Result<Self> {
        let wheels = match wheels {
            Some(folder) => fs::canonicalize(folder)?,
            None => workspace.kept("wheels-of-the-index")?,
        };
        let hoist = match hoist {
            Some(hoist) => fs::canonicalize(hoist)?,
            None => {
                let mut build = tool::cargo();
                build.current_dir(workspace.root());
                tool::run(build.args(["build", "--release", "--package", "hoist-tool"]))?;
                workspace.target().join("release/hoist")
            }
        };
        let scratch = workspace.scratch(&format!("{task}/scratch"))?;
        let out = workspace.kept(&format!("{task}/out"))?;
        Ok(Self { hoist, wheels, out, scratch })
    }

    /// What became of a wheel in a run, under its own name.
    pub(crate) fn made(&self, file: &Path, run: &str) -> Result<PathBuf> {
        let folder = self.out.join(run);
        fs::create_dir_all(&folder)?;
        Ok(folder.join(file.file_name().context("no name")?))
    }

    /// The wheel, obtained if it is not there.
    pub(crate) fn file(&self, wheel: &Wheel) -> Result<PathBuf> {
        let start = format!("{}-{}-", wheel.name.replace('-', "_"), wheel.version);
        let there = || -> Result<Option<PathBuf>> {
            let entries = fs::read_dir(&self.wheels)?.collect::<Result<Vec<_>, _>>()?;
            let is_it = |name: &str| name.starts_with(&start) && name.ends_with(".whl");
            let mut paths = entries.iter().map(fs::DirEntry::path);
            Ok(paths
                .find(|path| path.file_name().is_some_and(|name| is_it(&name.to_string_lossy()))))
        };
        if let Some(path) = there()? {
            return Ok(path);
        }
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]);
        pip.args(["--only-binary=:all:", "--dest"]).arg(&self.wheels);
        tool::run(pip.arg(format!("{}=={}", wheel.name, wheel.version)))?;
        there()?.context("was not obtained")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_twelve_wheels() {
        let wheels = list().unwrap();
        assert_eq!(wheels.len(), 12);
        for wheel in &wheels {
            assert!(
                wheel.with.iter().all(|name| wheels.iter().any(|other| other.name == *name)),
                "{}",
                wheel.name
            );
        }
    }
}
