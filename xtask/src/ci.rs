//! `ci`: what a build server runs. What a step prints is kept in `target/xtask/ci`; shown is what came of it, and of a step that failed
//! what failed at once and the lines that tell why behind the table: a build server may keep no more than the beginning, or the end.

mod log;

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::Result;

use crate::matrix::TestMatrix;
use crate::task::{self, Reported, Run, Task};
use crate::tasks::TASKS;
use crate::workspace::Workspace;
use log::Log;

/// Arguments of `ci`: none.
#[derive(clap::Args)]
pub(crate) struct Ci {}

/// The steps, each as it would be typed. All of them run, whatever becomes of those before.
const STEPS: &[&[&str]] = &[
    &["lint"],
    &["layers"],
    &["api"],
    &["licences", "--skip-missing"],
    &["fixtures", "--check"],
    &["calls"],
    // no-panic, bare-metal and size among its rows
    &["test-matrix", "--install", "--skip-missing"],
    &["python", "--strict", "--skip-missing"],
    &["viewer", "--skip-missing"],
    &["web", "--test", "--skip-missing"],
    &["fuzz", "--runs", "100000", "--seconds", "60", "--skip-missing"],
];

/// The last step: so the output ends with the total of the tests.
const LAST: &[&str] = &["test", "--strict"];

impl Run for Ci {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let logs = workspace.scratch("ci")?;
        let mut failures = String::new();
        let mut table =
            String::from("| step | result | seconds | of processor time |\n|---|---|---:|---:|\n");
        let mut last_line = String::new();
        for words in STEPS.iter().chain([&LAST]) {
            let name = words.join(" ");
            eprintln!("==> cargo xtask {name}");
            let (start, used) = (Instant::now(), processor_time());
            let task = words.first().copied().unwrap_or_default();
            let mut log = Log::create(&logs.join(task).with_extension("log"))?;
            let outcome = log.of(|| step(words, workspace))?;
            let result = if outcome.is_ok() { "done" } else { "FAILED" };
            let (seconds, used) = (start.elapsed().as_secs(), processor_time() - used);
            let _ = writeln!(table, "| {name} | {result} | {seconds} | {used:.0} |");
            eprintln!("{result} in {seconds} seconds");
            let text = log.text()?;
            if let Err(error) = outcome {
                eprint!("{}", log::failed(&text));
                let _ = writeln!(failures, "==> {name}: {error:#}\n{}", log::telling(&text));
            }
            text.lines().last().unwrap_or_default().clone_into(&mut last_line);
        }
        println!("\n{table}\n{failures}{last_line}");
        if failures.is_empty() { Ok(()) } else { Err(Reported.into()) }
    }
}

/// Seconds that all programs which this one has run and waited for have spent on processors (`proc_pid_stat(5)`); 0 where that
/// is not told.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // the fields behind the program's name, which may have spaces in it: cutime and cstime are the 14th and 15th of them
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The matrix, which runs tasks itself.
const MATRIX: &Task = &task::task::<TestMatrix>("test-matrix", "");

/// The task of this name.
fn find(name: &str) -> Result<&'static Task> {
    task::find(TASKS.iter().chain([MATRIX]), name)
}

/// Runs the task named by the first of `words` with the others as its arguments.
fn step(words: &[&str], workspace: &Workspace) -> Result<()> {
    let task = find(words.first().copied().unwrap_or_default())?;
    let matches = task.command().try_get_matches_from(words)?;
    task.run(&matches, workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_a_task() {
        for words in STEPS.iter().chain([&LAST]) {
            let task = find(words[0]).unwrap();
            task.command().try_get_matches_from(*words).unwrap();
        }
    }
}
