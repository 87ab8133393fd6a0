//! The tasks of the workspace: `cargo xtask TASK`.
//!
//! A task is a line of [`TASKS`] and a file. Its arguments are a [`clap::Args`] struct of that file; what it does is
//! [`task::Run::run`]. A build server calls the same tasks as a person, so what fails there fails at home with the same
//! words.

mod api;
mod bare;
mod bare_metal;
mod calls;
mod ci;
mod fixtures;
mod fuzz;
mod generate;
mod gpu_test;
mod image;
mod layers;
mod lint;
mod manifest;
mod matrix;
mod no_panic;
mod raw_mock;
mod sanitize;
mod size;
mod targets;
mod task;
mod test;
mod tool;
mod value;
mod verdicts;
mod workspace;

use std::process::ExitCode;

use task::{Task, Told, task};
use workspace::Workspace;

/// Every task: name, what it is for.
#[rustfmt::skip]
const TASKS: &[Task] = &[
    task::<ci::Ci>            ("ci",       "All that a change must pass: lint, layers, fixtures, calls, and test last"),
    task::<lint::Lint>        ("lint",     "rustfmt, clippy and rustdoc without warnings"),
    task::<test::Test>        ("test",     "Every test and doctest of the workspace; ends with the total"),
    task::<matrix::TestMatrix>("test-matrix", "Every target, crate and feature set in one table"),
    task::<layers::Layers>    ("layers",   "Compare the picture in ARCHITECTURE.md with the manifests"),
    task::<fixtures::Fixtures>("fixtures", "Rebuild every fixture by its recorded command; tell which changed"),
    task::<calls::Calls>      ("calls",    "Link the fixtures with the system's linker and check fixtures/calls.toml"),
    task::<no_panic::NoPanic> ("no-panic", "Prove that no entry point of the lower crates can panic or allocates; tell their stack"),
    task::<size::Size>        ("size",     "Code of the lower crates on small machines, beside its budget"),
    task::<fuzz::Fuzz>        ("fuzz",     "Run the fuzz targets on seeds made of the fixtures"),
    task::<sanitize::Sanitize>("sanitize", "Tests of the executors under AddressSanitizer: bad accesses, leaks"),
    task::<bare_metal::BareMetal>("bare-metal", "Boot firmware that links objects: examples/bare-metal"),
    task::<gpu_test::GpuTest> ("gpu-test", "Run on a GPU: make a folder with programs and cubins, and a report there or elsewhere"),
    task::<raw_mock::RawMock> ("raw-mock", "GPUs without CUDA on tinygrad's mock of driver and GPU"),
    task::<verdicts::Verdicts>("verdicts", "Run programs of every compiler and code model; tell what hoist gets right"),
    task::<generate::Generate>("generate", "Make large inputs for benches"),
];

fn main() -> ExitCode {
    let command = TASKS.iter().fold(
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
        task::find(TASKS, name)?.run(arguments, &workspace)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<Told>() {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
