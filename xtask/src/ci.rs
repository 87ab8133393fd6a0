//! `ci`: what a build server runs. What a step prints is kept in `target/xtask/ci`; shown is what came of it, and of a step that failed
//! what failed at once and the lines that tell why behind the table: a build server may keep no more than the beginning, or the end.
//!
//! Each step is a process of its own, which leaves a report: so two can go beside each other.

mod disk;
mod log;
mod report;

use std::fmt::Write as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::matrix::TestMatrix;
use crate::task::{self, Reported, Run, Task};
use crate::tasks::TASKS;
use crate::test::{self, Skips};
use crate::workspace::Workspace;
use disk::Disk;
use report::Report;

/// Arguments of `ci`: none, but for the processes that it starts.
#[derive(clap::Args)]
pub(crate) struct Ci {
    /// Where one step leaves its report
    #[arg(long, hide = true, requires = "step")]
    report: Option<PathBuf>,
    /// One step, and no other
    #[arg(last = true, hide = true, requires = "report")]
    step: Vec<String>,
}

/// Words of a step, as they would be typed.
type Words = &'static [&'static str];

/// The steps that come first, one after another.
const FIRST: &[Words] = &[
    &["lint"],
    &["layers"],
    &["api"],
    &["licences", "--skip-missing"],
    &["fixtures", "--check"],
    &["calls"],
    // not beside the tests: it replaces the program `hoist`, which they run
    &["viewer", "--skip-missing"],
    // no-panic, bare-metal and size among its rows
    &["test-matrix", "--install", "--skip-missing"],
];

/// The steps beside the last one, which waits for programs and for one compiler at a time: the first of these have folders of cargo's of their
/// own, and compile while it does.
const BESIDE: &[Words] = &[
    &["web", "--test", "--skip-missing"],
    &["fuzz", "--runs", "100000", "--seconds", "10", "--skip-missing"],
    &["python", "--strict", "--skip-missing"],
];

/// The last step: so the output ends with the total of the tests.
const LAST: Words = &["test", "--strict"];

impl Run for Ci {
    fn run(self, workspace: &Workspace) -> Result<()> {
        if let Some(path) = self.report {
            return report::write(&path, || step(&self.step, workspace));
        }
        let logs = workspace.scratch("ci")?;
        // a step that compiles this program may replace its file
        let program = logs.join("xtask");
        std::fs::copy(std::env::current_exe()?, &program)?;
        let disk = Mutex::new(Disk::of(&logs));
        let run = |words: &[&str]| {
            let done = run(&program, words, &logs);
            if let Ok(Some(disk)) = disk.lock().as_deref_mut() {
                disk.look(&logs);
            }
            done
        };
        let all = |steps: &[Words]| -> Result<Vec<Done>> {
            steps.iter().map(|words| run(words)).collect()
        };
        let mut done = all(FIRST)?;
        let last = std::thread::scope(|scope| {
            let beside = scope.spawn(|| all(BESIDE));
            let last = run(LAST);
            done.extend(beside.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            last
        })?;
        done.push(last);
        let disk = disk.into_inner().ok().flatten();
        conclude(&done, &Skips::read(workspace)?, disk.as_ref())
    }
}

/// A step that has ended.
struct Done {
    name: String,
    seconds: u64,
    report: Report,
    text: String,
}

/// Runs a step in a process of its own.
fn run(program: &Path, words: &[&str], logs: &Path) -> Result<Done> {
    let name = words.join(" ");
    eprintln!("==> cargo xtask {name}");
    let start = Instant::now();
    let log = logs.join(words.first().copied().unwrap_or_default()).with_extension("log");
    let report = log.with_extension("json");
    let file = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
    let mut step = Command::new(program);
    step.arg("ci").arg("--report").arg(&report).arg("--").args(words);
    // both at the file's one offset, so that neither writes over the other
    step.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let status = step.status().with_context(|| format!("cannot start {name}"))?;
    let seconds = start.elapsed().as_secs();
    let report = report::read(&report).unwrap_or_else(|| Report::of_ended(status));
    let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    let result = if report.error.is_none() { "done" } else { "FAILED" };
    eprintln!("{name}: {result} in {seconds} seconds");
    if report.error.is_some() {
        eprint!("{}", log::failed(&text));
    }
    Ok(Done { name, seconds, report, text })
}

/// Tells what came of all, with the total of the tests at the end.
fn conclude(done: &[Done], skips: &Skips, disk: Option<&Disk>) -> Result<()> {
    let mut table =
        String::from("| step | result | seconds | of processor time |\n|---|---|---:|---:|\n");
    let mut failures = String::new();
    for Done { name, seconds, report, text } in done {
        let result = if report.error.is_none() { "done" } else { "FAILED" };
        let _ = writeln!(table, "| {name} | {result} | {seconds} | {:.0} |", report.processor);
        if let Some(error) = &report.error {
            let _ = writeln!(failures, "==> {name}: {error}\n{}", log::telling(text));
        }
    }
    let skipped = || done.iter().flat_map(|step| &step.report.skipped);
    let asked = skipped().filter(|(_, is_excused)| !is_excused).map(|(name, _)| name.as_str());
    let unexpected = skips.unexpected(asked);
    if !unexpected.is_empty() {
        let _ = writeln!(failures, "skipped, and should not be:\n  {}", unexpected.join("\n  "));
    }
    if let Some(disk) = disk {
        let _ = writeln!(table, "\n{disk}");
        if disk.was_full() && !failures.is_empty() {
            failures.insert_str(0, "==> the disk was full, which may be why:\n");
        }
    }
    let last = done.last().and_then(|step| step.text.lines().last()).unwrap_or_default();
    let last = test::with_skipped(last, skipped().count() as u64);
    println!("\n{table}\n{failures}{last}");
    if failures.is_empty() { Ok(()) } else { Err(Reported.into()) }
}

/// The matrix, which runs tasks itself.
const MATRIX: &Task = &task::task::<TestMatrix>("test-matrix", "");

/// The task of this name.
fn find(name: &str) -> Result<&'static Task> {
    task::find(TASKS.iter().chain([MATRIX]), name)
}

/// Runs the task named by the first of `words` with the others as its arguments.
fn step(words: &[String], workspace: &Workspace) -> Result<()> {
    let task = find(words.first().map(String::as_str).unwrap_or_default())?;
    let matches = task.command().try_get_matches_from(words)?;
    task.run(&matches, workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_a_task() {
        for words in FIRST.iter().chain(BESIDE).chain([&LAST]) {
            let task = find(words[0]).unwrap();
            task.command().try_get_matches_from(*words).unwrap();
        }
    }
}
