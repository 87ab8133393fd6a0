//! What a task is: a name, a line of help, arguments, and a function.

use anyhow::{Context as _, Result};
use clap::{ArgMatches, Args, Command};

use crate::workspace::Workspace;

/// What a task does with its arguments.
pub(crate) trait Run: Args {
    /// Does the work.
    ///
    /// # Errors
    /// Whatever keeps the task from success, as a person wants to read it; [`Reported`] where all has been said already.
    fn run(self, workspace: &Workspace) -> Result<()>;
}

/// A line of the table of tasks.
pub(crate) struct Task {
    /// The word after `cargo xtask`.
    pub(crate) name: &'static str,
    about: &'static str,
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, &Workspace) -> Result<()>,
}

/// The task whose arguments are `A`.
pub(crate) const fn task<A: Run>(name: &'static str, about: &'static str) -> Task {
    Task {
        name,
        about,
        arguments: A::augment_args,
        run: |matches, workspace| A::from_arg_matches(matches)?.run(workspace),
    }
}

impl Task {
    /// The command line of this task.
    pub(crate) fn command(&self) -> Command {
        (self.arguments)(Command::new(self.name)).about(self.about)
    }

    /// Runs this task with what was parsed by [`Task::command`].
    ///
    /// # Errors
    /// As [`Run::run`].
    pub(crate) fn run(&self, matches: &ArgMatches, workspace: &Workspace) -> Result<()> {
        (self.run)(matches, workspace)
    }
}

/// The task called `name`.
///
/// # Errors
/// If `tasks` has none of that name.
pub(crate) fn find<'a>(tasks: impl IntoIterator<Item = &'a Task>, name: &str) -> Result<&'a Task> {
    tasks.into_iter().find(|task| task.name == name).with_context(|| format!("no task {name}"))
}

/// A failure that the task has reported itself: nothing is to be printed after it.
#[derive(Debug)]
pub(crate) struct Reported;

impl std::fmt::Display for Reported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the task has said what failed")
    }
}

impl std::error::Error for Reported {}
