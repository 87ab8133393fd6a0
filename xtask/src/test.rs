//! `test`: everything that tests, and an honest total at the end.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};

use crate::task::{Run, Told};
use crate::tool::cargo;
use crate::workspace::Workspace;

/// What earlier steps of the same run have skipped.
static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Says that `name` is skipped because of `reason`, and has it counted in the total at the end.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("skipped: {name}: {reason}");
    lock(&SKIPPED).insert(name.to_owned());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Arguments of `test`.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Arguments for `cargo test`, such as `-p CRATE`, in place of `--workspace`
    #[arg(last = true)]
    cargo: Vec<String>,
}

impl Run for Test {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let mut command = cargo();
        command.current_dir(workspace.root()).args(["test", "--all-features", "--no-fail-fast"]);
        if self.cargo.is_empty() {
            command.arg("--workspace");
        } else {
            command.args(&self.cargo);
        }
        // The harness shows what a passing test wrote only if asked; the lines about skipping are among it.
        command.args(["--", "--show-output"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run cargo")?;
        let total = Mutex::new(Total::default());
        let (out, err) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|threads| {
            threads.spawn(|| err.map(|err| copy(err, std::io::stderr(), &total)));
            out.map(|out| copy(out, std::io::stdout(), &total))
        })
        .transpose()?;
        let status = child.wait().context("cannot wait for cargo")?;
        let mut total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        total.never_run = lock(&SKIPPED).len() as u64;
        if !status.success() {
            eprintln!("error: cargo test: {status}");
        }
        println!("{total}");
        if status.success() && total.failed == 0 { Ok(()) } else { Err(Told.into()) }
    }
}

/// Passes every line of `from` on to `to`, and counts it.
fn copy(from: impl Read, mut to: impl Write, total: &Mutex<Total>) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? != 0 {
        to.write_all(&line)?;
        lock(total).read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

/// What the closing lines of all test runners say together.
#[derive(Default)]
pub(crate) struct Total {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Tests that passed without testing: names from lines `skipped: NAME: REASON`.
    skipped: BTreeSet<String>,
    /// What is no test and was skipped before.
    never_run: u64,
}

impl Total {
    /// Takes in one line of output.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some((name, _reason)) =
            line.strip_prefix("skipped: ").and_then(|rest| rest.split_once(": "))
        {
            self.skipped.insert(name.to_owned());
        }
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let Some((_verdict, counts)) = counts.split_once(". ") else { return };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// `N passed, N failed, N skipped`. A test that skipped itself was counted among the passed ones by its runner.
impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.skipped.len() as u64;
        let passed = self.passed.saturating_sub(skipped);
        let skipped = self.ignored + skipped + self.never_run;
        write!(f, "{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(lines: &[&str]) -> String {
        let mut total = Total::default();
        lines.iter().for_each(|line| total.read(line));
        total.to_string()
    }

    #[test]
    fn sums_closing_lines() {
        let lines = [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            "test a::b ... ok\n",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n",
        ];
        assert_eq!(total(&lines), "7 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn a_test_that_skips_itself_has_not_passed() {
        let lines = [
            "skipped: runs_on_gpu: no driver\n",
            "skipped: runs_on_gpu: no driver\n",
            "skipped: nothing\n",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        ];
        assert_eq!(total(&lines), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(total(&[]), "0 passed, 0 failed, 0 skipped");
    }
}
