//! `miri`: tests in the interpreter that finds undefined behaviour, of the crates that call nothing of the system.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::task::Run;
use crate::tool::{Tool, need, output, run};
use crate::workspace::Workspace;

/// Arguments of `miri`.
#[derive(clap::Args)]
pub(crate) struct Miri {
    /// What `cargo miri test` is told besides: `-- lru`
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Crate, and the tests that run: of `elf-core` where zerocopy's casts are.
const TESTS: &[(&str, &[&str])] =
    &[("exec-core", &[]), ("elf-core", &["table", "raw", "file", "content", "archive"])];

impl Run for Miri {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([Tool::new(
            "rustup",
            "rustup; then: rustup toolchain install nightly --component miri,rust-src",
        )])?;
        output(Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"]))
            .context("rustup component add --toolchain nightly miri rust-src")?;
        for (name, tests) in TESTS {
            let mut command = Command::new("rustup");
            command.current_dir(workspace.root()).args(["run", "nightly", "cargo", "miri", "test"]);
            command.args(["--lib", "--package", name, "--target-dir"]);
            command.arg(workspace.target().join("miri")).args(&self.rest);
            if self.rest.is_empty() {
                command.arg("--").args(*tests);
            }
            // a proptest keeps failures in files, which are not there
            command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "4");
            run(command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN"))?;
        }
        Ok(())
    }
}
