//! `test`: everything that tests, and an honest total at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
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
    /// Fails if a test is skipped that `xtask/skips.toml` does not have
    #[arg(long)]
    strict: bool,
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
        // one pipe: which runner a line is of, is said on the other output
        let (reader, writer) = std::io::pipe().context("a pipe")?;
        command.stdout(writer.try_clone().context("a pipe")?).stderr(writer);
        let mut child = command.spawn().context("cannot run cargo")?;
        drop(command); // its ends of the pipe
        let mut total = Total::default();
        copy(reader, std::io::stdout(), &mut total)?;
        let status = child.wait().context("cannot wait for cargo")?;
        total.never_run = lock(&SKIPPED).len() as u64;
        if !status.success() {
            eprintln!("error: cargo test: {status}");
        }
        let unknown = total.unknown(&known(workspace)?);
        if !unknown.is_empty() {
            println!("skipped, and not in xtask/skips.toml:");
            unknown.iter().for_each(|(name, reason)| println!("  {name}: {reason}"));
        }
        println!("{total}");
        if self.strict && !unknown.is_empty() {
            return Err(Told.into());
        }
        if status.success() && total.failed == 0 { Ok(()) } else { Err(Told.into()) }
    }
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

/// The list of tests that may be skipped.
#[derive(serde::Deserialize)]
struct Skips {
    /// Why a test may be skipped, by its full name.
    skips: BTreeMap<String, String>,
}

/// The tests that may be skipped, by full name.
fn known(workspace: &Workspace) -> Result<BTreeMap<String, String>> {
    let path = workspace.root().join("xtask/skips.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let skips: Skips = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(skips.skips)
}

/// What the closing lines of all test runners say together.
#[derive(Default)]
pub(crate) struct Total {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// The runner whose lines come: the name of the crate or file of tests.
    runner: String,
    /// The test whose output comes.
    test: String,
    /// Tests that passed without testing, by their full names, and why: lines `skipped: NAME: REASON`.
    skipped: BTreeMap<String, String>,
    /// Tests that are marked so, in the same way.
    marked: BTreeMap<String, String>,
    /// What is no test and was skipped before.
    never_run: u64,
}

impl Total {
    /// The tests that were skipped and are not in the list, and why.
    fn unknown(&self, known: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
        let all = self.skipped.iter().chain(&self.marked);
        let unknown = all.filter(|(name, _)| !known.contains_key(*name));
        unknown.map(|(name, reason)| (name.as_str(), reason.as_str())).collect()
    }

    /// Notes whose output comes next.
    fn follow(&mut self, line: &str) {
        let line = line.trim_start();
        if let Some(crate_name) = line.strip_prefix("Doc-tests ") {
            (self.runner, self.test) = (format!("doc {crate_name}"), String::new());
        } else if let Some((_, program)) =
            line.strip_prefix("Running ").and_then(|rest| rest.split_once(" ("))
        {
            let file = program.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
            let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
            (self.runner, self.test) = (name.to_owned(), String::new());
        } else if let Some(test) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.test = test.to_owned();
        }
    }

    /// Takes in one line of output.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim_end();
        self.follow(line);
        if let Some((name, reason)) =
            line.strip_prefix("skipped: ").and_then(|rest| rest.split_once(": "))
        {
            let test = if self.test.is_empty() { name } else { &self.test };
            self.skipped.insert(format!("{}::{test}", self.runner), reason.to_owned());
        }
        let marked = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ignored"));
        if let Some((test, reason)) = marked {
            let reason = reason.trim_start_matches(", ").to_owned();
            self.marked.insert(format!("{}::{test}", self.runner), reason);
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
    fn skips_have_full_names() {
        let mut total = Total::default();
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/elf_core-0123456789abcdef)",
            "test file::tests::slow ... ignored, takes minutes",
            "     Running tests/links.rs (target/debug/deps/links-0123456789abcdef)",
            "---- one stdout ----",
            "skipped: links: needs cc",
            "---- two stdout ----",
            "skipped: links: needs cc",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s",
        ] {
            total.read(line);
        }
        assert_eq!(total.to_string(), "0 passed, 0 failed, 2 skipped");
        let known = [(String::from("links::one"), String::new())].into();
        let unknown = total.unknown(&known);
        assert_eq!(
            unknown,
            [("links::two", "needs cc"), ("elf_core::file::tests::slow", "takes minutes")]
        );
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(total(&[]), "0 passed, 0 failed, 0 skipped");
    }
}
