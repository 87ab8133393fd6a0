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

/// Crate, which of its tests, and what `cargo test` is given besides: those that go over every character or every damage would take hours.
const TESTS: &[(&str, &[&str], &[&str])] = &[
    ("exec-core", &["--lib"], &[]),
    (
        "elf-core",
        &["--lib"],
        &[
            "--skip=nothing_that_is_shown_is_hidden",
            "--skip=damage_is_no_panic",
            "--skip=work_is_bounded",
        ],
    ),
    // zerocopy's casts, of all classes
    ("elf-core", &["--test", "raw"], &[]),
];

impl Run for Miri {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([Tool::new(
            "rustup",
            "rustup; then: rustup toolchain install nightly --component miri,rust-src",
        )])?;
        output(Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"]))
            .context("rustup component add --toolchain nightly miri rust-src")?;
        for (name, which, words) in TESTS {
            let mut command = Command::new("rustup");
            command.current_dir(workspace.root()).args(["run", "nightly", "cargo", "miri", "test"]);
            command.args(*which).args(["--package", name, "--target-dir"]);
            command.arg(workspace.target().join("miri")).args(&self.rest);
            if self.rest.is_empty() {
                command.arg("--").args(*words);
            }
            // a proptest keeps failures in files, which are not there
            command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "4");
            run(command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN"))?;
        }
        Ok(())
    }
}
