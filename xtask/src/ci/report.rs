//! What a step leaves for the process that has started it.

use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::task::Reported;
use crate::test;

/// What came of a step.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// Seconds that its programs have spent on processors.
    pub(super) processor: f64,
    /// What it has skipped, and whether it has found that it may be.
    pub(super) skipped: Vec<(String, bool)>,
    /// Why it failed.
    pub(super) error: Option<String>,
}

impl Report {
    /// Of a step that left none.
    pub(super) fn of_ended(status: ExitStatus) -> Self {
        Self { processor: 0.0, skipped: Vec::new(), error: Some(format!("ended early: {status}")) }
    }
}

/// Runs a step, and leaves its report.
pub(super) fn write(path: &Path, step: impl FnOnce() -> Result<()>) -> Result<()> {
    let outcome = step();
    let error = outcome.as_ref().err().map(|error| format!("{error:#}"));
    let report = Report { processor: processor_time(), skipped: test::skipped_steps(), error };
    let text = serde_json::to_vec(&report)?;
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    outcome
        .inspect_err(|error| {
            if !error.is::<Reported>() {
                eprintln!("error: {error:#}");
            }
        })
        .map_err(|_| Reported.into())
}

/// The report that is there.
pub(super) fn read(path: &Path) -> Option<Report> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Seconds that all programs which this one has run and waited for have spent on processors (`proc_pid_stat(5)`); 0 where that
/// is not told.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // the fields behind the program's name, which may have spaces in it: cutime and cstime are the 14th and 15th of them
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
