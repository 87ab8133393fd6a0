//! `licences`: what dependencies may be used under, where they come from, and what is known against them (`deny.toml`).

use anyhow::Result;

use crate::task::Run;
use crate::test;
use crate::tool::{Tool, cargo, need, output, run};
use crate::workspace::Workspace;

/// Arguments of `licences`.
#[derive(clap::Args)]
pub(crate) struct Licences {
    /// Ask for advisories, too: their database comes from the network
    #[arg(long)]
    advisories: bool,
    /// Skip it, by name, if this machine lacks the tool
    #[arg(long)]
    skip_missing: bool,
}

impl Run for Licences {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let tool = Tool::new("cargo-deny", "rustup; then: cargo install --locked cargo-deny");
        match need([tool]) {
            Err(error) if self.skip_missing => {
                test::skip("licences", &format!("{error:#}"));
                return Ok(());
            }
            found => found?,
        }
        let deny = |words: &[&str]| {
            let mut command = cargo();
            command.current_dir(workspace.root()).args(["deny", "--all-features"]).args(words);
            command
        };
        run(&mut deny(&["--offline", "check", "licenses", "bans", "sources"]))?;
        if self.advisories {
            match output(&mut deny(&["fetch", "db"])) {
                Ok(_) => run(&mut deny(&["check", "advisories"]))?,
                Err(error) => test::skip("advisories", &format!("{error:#}")),
            }
        }
        Ok(())
    }
}
