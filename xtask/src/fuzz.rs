//! `fuzz`: runs the targets of `fuzz/` on seeds made of the fixtures.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::task::Run;
use crate::test;
use crate::tool::{Tool, need, output, run};
use crate::workspace::Workspace;

#[path = "../../fuzz/src/seeds.rs"]
#[allow(unreachable_pub, reason = "it is public where the targets are")]
mod seeds;

/// Arguments of `fuzz`.
#[derive(clap::Args)]
pub(crate) struct Fuzz {
    /// How long each target runs, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Skip it, by name, if this machine lacks the tools
    #[arg(long)]
    skip_missing: bool,
    /// The targets to run, in place of all
    target: Vec<String>,
}

/// What libFuzzer is told: inputs little larger than the largest seed; a run that hangs or takes much memory is a finding.
const LIMITS: &[&str] = &["-max_len=36864", "-timeout=10", "-rss_limit_mb=2048"];

impl Run for Fuzz {
    fn run(self, workspace: &Workspace) -> Result<()> {
        match self.tools() {
            Err(error) if self.skip_missing => {
                test::skip("fuzz", &format!("{error:#}"));
                return Ok(());
            }
            tools => tools?,
        }
        let targets = targets(workspace)?;
        if let Some(unknown) = self.target.iter().find(|name| !targets.contains(name)) {
            bail!("no target {unknown}; there are {}", targets.join(", "));
        }
        let wanted = |name: &&String| self.target.is_empty() || self.target.contains(name);
        for name in targets.iter().filter(wanted) {
            self.one(workspace, name).with_context(|| {
                format!("{name}: keep what was found in fuzz/regressions/{name}/ once it is mended")
            })?;
        }
        Ok(())
    }
}

impl Fuzz {
    /// Looks for what fuzzing needs beside the compiler of the workspace.
    fn tools(&self) -> Result<()> {
        need([Tool::new("cargo-fuzz", "rustup; then: cargo install cargo-fuzz")])?;
        output(Command::new("rustup").args(["run", "nightly", "rustc", "-V"]))
            .context("nightly Rust is missing: rustup toolchain install nightly")?;
        Ok(())
    }

    /// Runs a target on its corpus, its seeds and what was found before.
    fn one(&self, workspace: &Workspace, name: &str) -> Result<()> {
        let fuzz = workspace.root().join("fuzz");
        let corpus = fuzz.join("corpus").join(name);
        fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
        let seeds = workspace.scratch(&format!("fuzz-seeds-{name}"))?;
        for (seed, bytes) in seeds::of(name, &workspace.fixtures())? {
            fs::write(seeds.join(&seed), bytes).with_context(|| format!("cannot write {seed}"))?;
        }
        // the sanitizer wants a nightly compiler, whichever one runs this
        let mut command = Command::new("rustup");
        command.current_dir(workspace.root()).args(["run", "nightly", "cargo", "fuzz", "run"]);
        command.args(["--fuzz-dir", "fuzz", name]).args([&corpus, &seeds]);
        let found = fuzz.join("regressions").join(name);
        if found.is_dir() {
            command.arg(found);
        }
        command.arg("--").arg(format!("-max_total_time={}", self.seconds));
        run(command.args(LIMITS).arg("-print_final_stats=1").env_remove("CARGO"))
    }
}

/// The names of all targets: one file each.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root().join("fuzz").join("fuzz_targets");
    let files =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for file in files {
        names.extend(file?.path().file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}
