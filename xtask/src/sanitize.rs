//! `sanitize`: the tests of the executors under AddressSanitizer, which finds bad accesses and, at the end, leaks.

use std::process::Command;

use anyhow::Result;

use crate::task::Run;
use crate::tool::{Tool, need, run};
use crate::workspace::Workspace;

/// Arguments of `sanitize`.
#[derive(clap::Args)]
pub(crate) struct Sanitize {
    /// What `cargo test` is told besides: `--test device`
    #[arg(last = true)]
    rest: Vec<String>,
}

/// The crates with `unsafe` in them, with all that runs on any machine.
const CRATES: &[&str] = &["exec-core", "exec-host"];
const FEATURES: &str = "exec-core/disk,exec-host/compile,exec-host/device";

/// Tests that cannot be: one counts pages, where the sanitizer keeps those that are freed; one runs under a debugger, where it does
/// not look for leaks.
const SKIPPED: &[&str] = &["memory_is_protected_and_given_back", "breaks_by_name_and_line"];

impl Run for Sanitize {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([Tool::new("rustup", "rustup; then: rustup toolchain install nightly")])?;
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        // a toolchain's instrumented libraries are none of another's
        let folder = workspace.target().join("sanitize");
        let mut command = Command::new("rustup");
        command.current_dir(workspace.root()).args(["run", "nightly", "cargo", "test"]);
        command.args(["--no-fail-fast", "--tests", "--target", &target, "--features", FEATURES]);
        command.args(CRATES.iter().flat_map(|name| ["--package", name]));
        command.arg("--target-dir").arg(folder).args(self.rest).arg("--");
        command.args(SKIPPED.iter().flat_map(|name| ["--skip", name]));
        // tests crash on purpose and handle that themselves
        command.env("RUSTFLAGS", "-Zsanitizer=address").env("ASAN_OPTIONS", "handle_segv=0");
        run(command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN"))
    }
}
