//! Words of a command line to a command that is run: what the program `hoist` and other fronts share.

use std::ffi::OsString;
use std::io::Write;

use anyhow::Result;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::explain;
use crate::faults::in_words;
use crate::json::{LINES, Lines};

/// The command line, and whether what it prints is to become JSON Lines.
///
/// # Errors
/// If the words are no command line; also where they ask for help.
pub fn parse<C: CommandFactory + FromArgMatches>(
    words: &[OsString],
) -> Result<(C, bool), clap::Error> {
    let mut matches = C::command().try_get_matches_from(words)?;
    let has_lines = has_lines(&matches);
    Ok((C::from_arg_matches_mut(&mut matches)?, has_lines))
}

fn has_lines(matches: &ArgMatches) -> bool {
    let mut deepest = matches;
    while let Some((_, inner)) = deepest.subcommand() {
        deepest = inner;
    }
    matches!(deepest.try_get_one::<bool>(LINES), Ok(Some(true)))
}

/// Runs a command, whose JSON becomes JSON Lines if they are wanted.
///
/// # Errors
/// Those of the command.
pub fn run(
    command: impl FnOnce(&mut dyn Write) -> Result<()>,
    has_lines: bool,
    out: &mut dyn Write,
) -> Result<()> {
    if has_lines { command(&mut Lines::new(out)) } else { command(out) }
}

/// What an error of a command says: its lines.
#[must_use]
pub fn complaints(error: &anyhow::Error) -> Vec<String> {
    match error.downcast_ref::<explain::Lines>() {
        Some(explain::Lines(lines)) => lines.clone(),
        None => vec![in_words(error)],
    }
}
