//! `ci`: what a build server runs.

use anyhow::Result;

use crate::task::{Run, Told};
use crate::workspace::Workspace;
use crate::{TASKS, task};

/// Arguments of `ci`: none.
#[derive(clap::Args)]
pub(crate) struct Ci {}

/// The steps, each as it would be typed. All of them run, whatever becomes of those before.
const STEPS: &[&[&str]] = &[&["lint"], &["layers"], &["fixtures", "--check"], &["calls"]];

/// The last step: so the output ends with the total of the tests.
const LAST: &[&str] = &["test"];

impl Run for Ci {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let mut failed = Vec::new();
        for words in STEPS {
            if let Err(error) = step(words, workspace) {
                eprintln!("error: {}: {error:#}", words.join(" "));
                failed.push(words.join(" "));
            }
        }
        if !failed.is_empty() {
            eprintln!("ci: failed so far: {}", failed.join(", "));
        }
        let outcome = step(LAST, workspace);
        if failed.is_empty() { outcome } else { Err(Told.into()) }
    }
}

/// Runs the task named by the first of `words` with the others as its arguments.
fn step(words: &[&str], workspace: &Workspace) -> Result<()> {
    eprintln!("==> cargo xtask {}", words.join(" "));
    let task = task::find(TASKS, words.first().copied().unwrap_or_default())?;
    let matches = task.command().try_get_matches_from(words)?;
    task.run(&matches, workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_a_task() {
        for words in STEPS.iter().chain([&LAST]) {
            let task = task::find(TASKS, words[0]).unwrap();
            task.command().try_get_matches_from(*words).unwrap();
        }
    }
}
