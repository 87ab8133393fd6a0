//! `lint`: form, and what the compiler's own readers have to say.

use std::process::Command;

use anyhow::Result;

use crate::documentation::documented;
use crate::task::Run;
use crate::tool::{cargo, run};
use crate::workspace::Workspace;

/// Arguments of `lint`: none.
#[derive(clap::Args)]
pub(crate) struct Lint {}

impl Run for Lint {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let cargo = |arguments: &[&str]| -> Command {
            let mut command = cargo();
            command.current_dir(workspace.root()).args(arguments);
            command
        };
        run(&mut cargo(&["fmt", "--all", "--check"]))?;
        let deny = ["--", "-D", "warnings"];
        run(cargo(&["clippy", "--workspace", "--all-targets", "--all-features"]).args(deny))?;
        documented(workspace, &[]).map(drop)
    }
}
