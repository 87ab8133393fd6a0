//! The tasks of the workspace: `cargo xtask TASK`.
//!
//! A task is a line of [`TASKS`] in `tasks.rs` and a file. Its arguments are a [`clap::Args`] struct of that file; what it does is
//! [`task::Run::run`]. A build server calls the same tasks as a person, so what fails there fails at home with the same
//! words.

mod api;
mod bare;
mod bare_metal;
mod boot_loader;
mod calls;
mod ci;
mod circles;
mod debian;
mod documentation;
mod fixtures;
mod fuzz;
mod generate;
mod gpu_test;
mod image;
mod kernel_modules;
mod layers;
mod ld_so;
mod library_work;
mod licences;
mod lint;
mod manifest;
mod matrix;
mod miri;
mod mutants;
mod no_panic;
mod nvcc_modes;
mod packages;
mod places;
mod public_api;
mod python;
mod raw_mock;
mod sanitize;
mod semver;
mod size;
mod slim_wheels;
mod targets;
mod task;
mod tasks;
mod test;
mod tool;
mod unsafe_code;
mod value;
mod verdicts;
mod viewer;
mod web;
mod whole_archives;
mod whole_libraries;
mod workspace;

use std::process::ExitCode;

use task::{Reported, Task, task};
use tasks::TASKS;
use workspace::Workspace;

/// The tasks that run others of [`TASKS`].
#[rustfmt::skip]
const RUNNERS: &[Task] = &[
    task::<ci::Ci>            ("ci",       "All that a change must pass: lint, layers, api, fixtures, calls, and test last"),
    task::<matrix::TestMatrix>("test-matrix", "Every target, crate and feature set in one table"),
];

fn main() -> ExitCode {
    let command = RUNNERS.iter().chain(TASKS).fold(
        clap::Command::new("xtask")
            .bin_name("cargo xtask")
            .about("The tasks of the workspace")
            .subcommand_required(true),
        |command, task| command.subcommand(task.command()),
    );
    let matches = command.get_matches();
    let outcome = Workspace::find().and_then(|workspace| {
        let (name, arguments) =
            matches.subcommand().ok_or_else(|| anyhow::anyhow!("no task given"))?;
        task::find(RUNNERS.iter().chain(TASKS), name)?.run(arguments, &workspace)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<Reported>() {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
