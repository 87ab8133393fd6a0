//! Wheels of the list: where they are, and where what becomes of them is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::tool;

/// A wheel of the list.
#[derive(Clone, Deserialize)]
pub(super) struct Wheel {
    pub(super) name: String,
    pub(super) version: String,
    /// What is installed of the index, with `alone` in place of all that it depends on.
    #[serde(default)]
    pub(super) requires: Vec<String>,
    /// Others of the list.
    #[serde(default)]
    pub(super) with: Vec<String>,
    /// Why its dependencies are not installed.
    pub(super) alone: Option<String>,
    /// A script; without one it is not imported.
    pub(super) test: Option<String>,
}

#[derive(Deserialize)]
struct List {
    wheel: Vec<Wheel>,
}

/// Where things are.
pub(super) struct Places {
    pub(super) hoist: PathBuf,
    pub(super) wheels: PathBuf,
    /// What was made.
    pub(super) out: PathBuf,
    pub(super) scratch: PathBuf,
}

/// The wheels of the list.
pub(super) fn list() -> Result<Vec<Wheel>> {
    let list: List = toml::from_str(include_str!("wheels.toml"))?;
    Ok(list.wheel)
}

impl Places {
    /// What became of a wheel in a run, under its own name.
    pub(super) fn made(&self, file: &Path, run: &str) -> Result<PathBuf> {
        let folder = self.out.join(run);
        fs::create_dir_all(&folder)?;
        Ok(folder.join(file.file_name().context("no name")?))
    }

    /// The wheel, obtained if it is not there.
    pub(super) fn file(&self, wheel: &Wheel) -> Result<PathBuf> {
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
            assert!(wheel.test.is_some() || wheel.alone.is_some(), "{}", wheel.name);
        }
    }
}
