//! `fuzz`: runs the targets of `fuzz/` on seeds made of the fixtures.
//!
//! What a target finds worth keeping stays in its corpus, and the next run starts from there: `fuzz/corpus/TARGET`, or a folder that a
//! build server keeps from run to run (`--corpus`). Corpora are not committed: the seeds are made of the fixtures in every run, and
//! what was found to be wrong is in `fuzz/regressions`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

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
    /// Ends a target after so many inputs, chosen by the same dice each time: from the same corpus every run takes the same ones, so that a
    /// build server does not fail by chance
    #[arg(long, conflicts_with = "executions")]
    runs: Option<u64>,
    /// Runs the targets again and again, on all processors, until so many inputs were executed in all; tells how many of each
    #[arg(long)]
    executions: Option<u64>,
    /// The folder in which each target keeps what it finds worth it, in place of fuzz/corpus
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Skip it, by name, if this machine lacks the tools
    #[arg(long)]
    skip_missing: bool,
    /// The targets to run, in place of all
    target: Vec<String>,
}

/// What libFuzzer is told: a run that hangs or takes much memory is a finding.
const LIMITS: &[&str] = &["-timeout=10", "-rss_limit_mb=2048"];
/// Bytes of an input at most: little more than the largest seed has.
const SIZE: usize = 36 << 10;
/// The same of a long run, where many small inputs find more than few large ones, and how libFuzzer then chooses: by what an input costs.
const SIZE_OF_LONG: usize = 8 << 10;
const LIMITS_OF_LONG: &[&str] = &["-entropic_scale_per_exec_time=1"];
/// A long run goes without a sanitizer, which takes most of the time and finds nothing in crates that forbid `unsafe`, and without
/// watching comparisons, which is half of the rest: debug assertions and checks of overflow stay. What a sanitizer may find in others,
/// and inputs that only comparisons lead to, are for the short runs, with which it shares its corpus.
const BUILD_OF_LONG: &[&str] = &["--sanitizer", "none", "--no-trace-compares", "--target-dir"];

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
        let names: Vec<&str> = targets.iter().filter(wanted).map(String::as_str).collect();
        if let Some(count) = self.executions {
            return self.long(workspace, &names, count);
        }
        if self.target.is_empty() {
            run(&mut self.cargo_fuzz(workspace, "build")?)?;
        }
        let next = Mutex::new(names.iter());
        on_processors(names.len(), || {
            while let Some(name) = next.lock().ok().and_then(|mut names| names.next()) {
                let said = output(&mut self.one(workspace, name)?).with_context(|| advice(name))?;
                let said = String::from_utf8_lossy(&said.stderr);
                let done = said.lines().find(|line| line.starts_with("Done "));
                println!("{name}: {}", done.unwrap_or_default());
            }
            Ok(())
        })
    }
}

/// Has as many threads as there are processors, but `most`, work until all have ended.
fn on_processors(most: usize, work: impl Fn() -> Result<()> + Copy + Send) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(most)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// What to do with a finding.
fn advice(name: &str) -> String {
    format!("{name}: keep what was found in fuzz/regressions/{name}/ once it is mended")
}

/// What a long run has done with a target.
#[derive(Clone, Default)]
struct Tally {
    /// Inputs that were executed.
    executions: u64,
    /// Seconds that it ran.
    seconds: f64,
    /// Files with inputs that are findings.
    findings: Vec<String>,
}

impl Tally {
    /// Takes in what libFuzzer wrote: lines `#NUMBER` with what was executed so far, and where it put what it found.
    fn read(&mut self, log: &str) {
        let executed = |line: &str| {
            let digits = line.strip_prefix('#')?.split_ascii_whitespace().next()?;
            digits.trim_end_matches(':').parse::<u64>().ok()
        };
        self.executions += log.lines().filter_map(executed).max().unwrap_or(0);
        let found = log.lines().filter_map(|line| line.split_once("Test unit written to "));
        self.findings.extend(found.map(|(_, path)| path.trim().to_owned()));
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

    /// Runs the targets in turn, each for its seconds, as many at a time as there are processors, until `count` inputs were executed.
    fn long(&self, workspace: &Workspace, names: &[&str], count: u64) -> Result<()> {
        run(&mut self.cargo_fuzz(workspace, "build")?)?;
        let start = Instant::now();
        let tallies = Mutex::new(BTreeMap::<&str, Tally>::new());
        let next = Mutex::new(names.iter().cycle());
        let executed = || {
            let tallies = tallies.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            tallies.values().map(|tally| tally.executions).sum::<u64>()
        };
        let work = || -> Result<()> {
            while executed() < count {
                let name = next.lock().ok().and_then(|mut names| names.next().copied());
                let Some(name) = name else { return Ok(()) };
                let (start, mut command) = (Instant::now(), self.one(workspace, name)?);
                let said = command.stdin(Stdio::null()).output().context("cannot run rustup")?;
                let log = String::from_utf8_lossy(&said.stderr);
                let Ok(mut tallies) = tallies.lock() else { return Ok(()) };
                let tally = tallies.entry(name).or_default();
                let before = (tally.executions, tally.findings.len());
                tally.read(&log);
                tally.seconds += start.elapsed().as_secs_f64();
                if !said.status.success() && tally.findings.len() == before.1 {
                    bail!("{name}: {}\n{log}", said.status);
                }
                eprintln!("{name}: {} executions", tally.executions - before.0);
            }
            Ok(())
        };
        on_processors(names.len(), work)?;
        let tallies = tallies.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        println!("| target | executions | a second | findings |\n|---|---:|---:|---:|");
        for (name, tally) in &tallies {
            let rate = tally.executions as f64 / tally.seconds.max(1.0);
            println!("| {name} | {} | {rate:.0} | {} |", tally.executions, tally.findings.len());
        }
        let total: u64 = tallies.values().map(|tally| tally.executions).sum();
        println!("{total} executions in {:.0} seconds", start.elapsed().as_secs_f64());
        let found = tallies.iter().find(|(_, tally)| !tally.findings.is_empty());
        match found {
            Some((name, tally)) => bail!("{}: {}", tally.findings.join(", "), advice(name)),
            None => Ok(()),
        }
    }

    /// Runs a target on its corpus, its seeds and what was found before.
    fn one(&self, workspace: &Workspace, name: &str) -> Result<Command> {
        let fuzz = workspace.root().join("fuzz");
        let corpora = self.corpus.clone().unwrap_or_else(|| fuzz.join("corpus"));
        let corpus = workspace.root().join(corpora).join(name);
        fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
        let seeds = workspace.kept(&format!("fuzz-seeds-{name}"))?;
        let size = if self.executions.is_some() { SIZE_OF_LONG } else { SIZE };
        for (seed, bytes) in seeds::of(name, &workspace.fixtures())? {
            let path = seeds.join(&seed);
            if bytes.len() <= size {
                fs::write(path, bytes).with_context(|| format!("cannot write {seed}"))?;
            } else if path.exists() {
                fs::remove_file(path).with_context(|| format!("cannot remove {seed}"))?;
            }
        }
        let mut command = self.cargo_fuzz(workspace, "run")?;
        command.arg(name).args([&corpus, &seeds]);
        let found = fuzz.join("regressions").join(name);
        if found.is_dir() {
            command.arg(found);
        }
        command.arg("--").arg(format!("-max_total_time={}", self.seconds));
        command.arg(format!("-max_len={size}")).args(LIMITS).arg("-print_final_stats=1");
        if let Some(runs) = self.runs {
            command.arg(format!("-runs={runs}")).arg("-seed=1");
        }
        if self.executions.is_some() {
            command.args(LIMITS_OF_LONG);
        }
        Ok(command)
    }

    /// A command of cargo-fuzz, which wants a nightly compiler, whichever one runs this.
    fn cargo_fuzz(&self, workspace: &Workspace, what: &str) -> Result<Command> {
        let mut command = Command::new("rustup");
        command.current_dir(workspace.root()).args(["run", "nightly", "cargo", "fuzz", what]);
        command.args(["--fuzz-dir", "fuzz"]).env_remove("CARGO");
        if self.executions.is_some() {
            command.args(BUILD_OF_LONG).arg(workspace.kept("fuzz-long")?);
        }
        Ok(command)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_and_findings_are_told() {
        let mut tally = Tally::default();
        tally
            .read("INFO: Seed: 1\n#2\tINITED cov: 10\n#1024\tpulse cov: 12\n#2000\tDONE cov: 12\n");
        tally.read("#7\tNEW\n==1== ERROR: libFuzzer\nartifact; Test unit written to fuzz/artifacts/a/crash-1\n");
        assert_eq!(
            (tally.executions, tally.findings),
            (2007, vec!["fuzz/artifacts/a/crash-1".into()])
        );
    }
}
