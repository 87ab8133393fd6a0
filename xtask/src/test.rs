//! `test`: everything that tests, and an honest total at the end.

mod skips;
mod total;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use serde::Deserialize;

pub(crate) use skips::Skips;
pub(crate) use total::Total;

use crate::task::{Reported, Run};
use crate::tool::cargo;
use crate::workspace::Workspace;

/// What this process has skipped, and whether it has found that it may be: then it is not looked up again.
static SKIPPED: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());

/// What `cargo` runs the programs of this machine with.
const RUNNER: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";

/// What this process has skipped, and whether it has found that it may be.
pub(crate) fn skipped_steps() -> Vec<(String, bool)> {
    lock(&SKIPPED).iter().map(|(name, excused)| (name.clone(), *excused)).collect()
}

/// The closing line of a total, with so many steps that were skipped; as it is, if it is none.
pub(crate) fn with_skipped(line: &str, steps: u64) -> String {
    let parts = line.rsplit_once(", ").and_then(|(rest, skipped)| {
        let number = skipped.strip_suffix(" skipped")?.parse::<u64>().ok()?;
        Some(format!("{rest}, {} skipped", number.checked_add(steps)?))
    });
    parts.unwrap_or_else(|| line.to_owned())
}

/// Says that `name` is skipped because of `reason`, and has it counted in the total at the end.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("skipped: {name}: {reason}");
    lock(&SKIPPED).insert(name.to_owned(), false);
}

/// The same of what the step has found that it may be skipped on this machine, by a list of its own.
pub(crate) fn skip_excused(name: &str, reason: &str) {
    println!("skipped: {name}: {reason}");
    lock(&SKIPPED).insert(name.to_owned(), true);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Arguments of `test`.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Fails if a test is skipped for no reason that `xtask/skips.toml` has and this machine gives
    #[arg(long)]
    strict: bool,
    /// Arguments for `cargo test`, such as `-p CRATE`, in place of `--workspace`
    #[arg(last = true)]
    cargo: Vec<String>,
}

impl Run for Test {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let skips = Skips::read(workspace)?;
        let asked: &[String] =
            if self.cargo.is_empty() { &[String::from("--workspace")] } else { &self.cargo };
        let command = || {
            let mut command = cargo();
            command.current_dir(workspace.root()).args(["test", "--all-features"]).args(asked);
            command
        };
        let mut total = Total::of_programs(programs(command())?);
        let mut tests = command();
        // tests of damaged files make many errors, of which none wants to know who called
        tests.arg("--no-fail-fast").env("RUST_LIB_BACKTRACE", "0");
        let status = count(tests, std::io::stdout(), &mut total)?;
        if !status.success() {
            eprintln!("error: cargo test: {status}");
        }
        let unexpected = skips.unexpected(total.skipped().map(|(name, _)| name));
        if !unexpected.is_empty() {
            println!("skipped, and should not be:");
            unexpected.iter().for_each(|line| println!("  {line}"));
        }
        println!("{total}");
        let is_good = status.success() && total.failed == 0;
        let is_allowed = unexpected.is_empty() || !self.strict;
        if is_good && is_allowed { Ok(()) } else { Err(Reported.into()) }
    }
}

/// The part of cargo's messages that is needed.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    executable: Option<String>,
}

/// Builds the programs that `cargo test` runs: the package of each, by its file's name.
fn programs(mut command: Command) -> Result<BTreeMap<String, String>> {
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    if !output.status.success() {
        eprintln!("error: cargo test --no-run: {}", output.status);
        return Err(Reported.into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let artifacts = messages.filter(|message| message.reason == "compiler-artifact");
    Ok(artifacts
        .filter_map(|message| {
            let (package, program) = (message.package_id?, message.executable?);
            Some((file_name(&program).to_owned(), package_name(&package).to_owned()))
        })
        .collect())
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The name in a package's id: `path+file:///FOLDER/NAME#VERSION`, or `...#NAME@VERSION`.
fn package_name(id: &str) -> &str {
    let (place, version) = id.split_once('#').unwrap_or((id, ""));
    version.split_once('@').map_or_else(|| file_name(place), |(name, _)| name)
}

/// Runs tests, passes on what they print to `to`, and counts it.
pub(crate) fn count(mut tests: Command, to: impl Write, total: &mut Total) -> Result<ExitStatus> {
    // The harness shows what a passing test wrote only if asked; the lines about skipping are among it.
    tests.args(["--", "--show-output"]);
    // A program that hangs is ended, and all that it has started: who waits for this task would learn nothing.
    if std::env::var_os(RUNNER).is_none() {
        tests.env(RUNNER, "timeout --kill-after=10 900");
    }
    // one pipe: which runner a line is of, is said on the other output
    let (reader, writer) = std::io::pipe().context("a pipe")?;
    tests.stdout(writer.try_clone().context("a pipe")?).stderr(writer);
    let mut child = tests.spawn().context("cannot run cargo")?;
    drop(tests); // its ends of the pipe
    copy(reader, to, total)?;
    child.wait().context("cannot wait for cargo")
}

/// Passes every line of `from` on to `to`, and counts it.
fn copy(from: impl Read, mut to: impl Write, total: &mut Total) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? != 0 {
        to.write_all(&line)?;
        total.read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_names() {
        for id in [
            "path+file:///a/elf-core#0.1.0",
            "path+file:///a/another%20folder#elf-core@0.1.0",
            "registry+https://example.org/index#elf-core@0.1.0",
        ] {
            assert_eq!(package_name(id), "elf-core");
        }
    }

    #[test]
    fn steps_that_were_skipped_are_counted() {
        assert_eq!(
            with_skipped("9 passed, 0 failed, 1 skipped", 2),
            "9 passed, 0 failed, 3 skipped"
        );
        assert_eq!(with_skipped("error: no space, it seems", 2), "error: no space, it seems");
    }
}
