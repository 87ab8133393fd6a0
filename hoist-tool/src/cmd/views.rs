//! The commands that look into files and need no system: what a page in a browser has.

use std::io::Write;

use anyhow::Result;

use super::{cubin, fatbin, layout, show};

/// A command line with these alone.
#[derive(Debug, clap::Parser)]
#[command(name = "hoist")]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Show(show::Show),
    Layout(layout::Layout),
    #[command(subcommand)]
    Cubin(Cubin),
    #[command(subcommand)]
    Fatbin(Fatbin),
}

#[derive(Debug, clap::Subcommand)]
enum Cubin {
    Show(cubin::show::Show),
}

#[derive(Debug, clap::Subcommand)]
enum Fatbin {
    List(fatbin::list::List),
    Size(fatbin::size::Size),
    Diff(fatbin::diff::Diff),
    Report(fatbin::report::Report),
}

impl CommandLine {
    /// Does what the words say and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn run(self, out: &mut dyn Write) -> Result<()> {
        match self.command {
            Command::Show(command) => command.run(out),
            Command::Layout(command) => command.run(out),
            Command::Cubin(Cubin::Show(command)) => command.run(&[], out),
            Command::Fatbin(Fatbin::List(command)) => command.run(out),
            Command::Fatbin(Fatbin::Size(command)) => command.run(out),
            Command::Fatbin(Fatbin::Diff(command)) => command.run(out),
            Command::Fatbin(Fatbin::Report(command)) => command.run(out),
        }
    }
}
