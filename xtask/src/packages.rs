//! The crates of the workspace, as their manifests have them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::tool::{cargo, output};
use crate::workspace::Workspace;

/// The part of `cargo metadata` that is needed.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    dependencies: Vec<Dependency>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    targets: Vec<Target>,
    /// Registries that it may go to; `null` is all.
    publish: Option<Vec<String>>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `null` is a normal dependency.
    kind: Option<String>,
    pub(crate) optional: bool,
    /// There if the dependency is in the workspace.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Package {
    /// Whether it is for others.
    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    /// What is needed to build and run this crate, tests aside.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"))
    }

    /// The root file of its library.
    pub(crate) fn library(&self) -> Option<&Path> {
        let is = |target: &&Target| target.kind.iter().any(|kind| kind == "lib");
        self.targets.iter().find(is).map(|target| target.src_path.as_path())
    }

    /// The root files of its library, programs and examples.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Path> {
        let is = |target: &&Target| {
            target
                .kind
                .iter()
                .any(|kind| ["lib", "cdylib", "bin", "example"].contains(&kind.as_str()))
        };
        self.targets.iter().filter(is).map(|target| target.src_path.as_path())
    }
}

/// The crates of the workspace.
pub(crate) fn packages(workspace: &Workspace) -> Result<Vec<Package>> {
    let mut command = cargo();
    command.current_dir(workspace.root()).args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Metadata =
        serde_json::from_slice(&output(&mut command)?.stdout).context("cargo metadata")?;
    Ok(metadata.packages)
}
