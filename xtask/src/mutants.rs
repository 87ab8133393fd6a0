//! `mutants`: changes the code in small ways and runs the tests, to find what no test watches. It takes hours.

use anyhow::Result;

use crate::packages::packages;
use crate::task::Run;
use crate::tool::{Tool, cargo, need, run};
use crate::workspace::Workspace;

/// Arguments of `mutants`.
#[derive(clap::Args)]
pub(crate) struct Mutants {
    /// The crates to change, in place of all that compute addresses
    crates: Vec<String>,
    /// What `cargo mutants` is told besides: `--shard 1/8`, `--re FUNCTION`
    #[arg(last = true)]
    rest: Vec<String>,
}

impl Run for Mutants {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([Tool::new("cargo-mutants", "rustup; then: cargo install --locked cargo-mutants")])?;
        let names = packages(workspace)?.into_iter().map(|package| package.name);
        let crates: Vec<String> = if self.crates.is_empty() {
            names.filter(|name| name == "elf-layout" || name.starts_with("reloc-")).collect()
        } else {
            self.crates
        };
        let mut command = cargo();
        command.current_dir(workspace.root());
        // some tests need features that are off by default, as storage from the heap
        command.args(["mutants", "--all-features", "--copy-vcs", "true", "--output"]);
        command.arg(workspace.target());
        command.args(crates.iter().flat_map(|name| ["--package", name.as_str()]));
        run(command.args(self.rest))
    }
}
