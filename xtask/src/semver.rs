//! `semver`: whether the libraries still keep what an earlier state of the repository promised.

use anyhow::Result;

use crate::packages::packages;
use crate::task::Run;
use crate::tool::{Tool, cargo, need, run};
use crate::workspace::Workspace;

/// Arguments of `semver`.
#[derive(clap::Args)]
pub(crate) struct Semver {
    /// The commit or tag to compare with: the last version
    #[arg(long, default_value = "v0.1.0")]
    since: String,
}

impl Run for Semver {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([Tool::new(
            "cargo-semver-checks",
            "rustup; then: cargo install --locked cargo-semver-checks",
        )])?;
        let mut command = cargo();
        command.current_dir(workspace.root()).args(["semver-checks", "--all-features"]);
        command.args(["--baseline-rev", &self.since]);
        for package in packages(workspace)?.iter().filter(|package| package.is_published()) {
            command.args(["--package", &package.name]);
        }
        run(&mut command)
    }
}
