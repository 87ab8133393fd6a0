//! The program `hoist`: words of a command line to an exit status. Errors are one line on standard error and status 1; a reader who
//! went away is no error.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

pub use clap::Parser;

use crate::cmd::CommandLine;
use crate::explain::Lines;
use crate::printable::Printable;
use crate::shown::Shown;

/// Does what the words say, the first of which is the program's name: the exit status.
#[must_use]
pub fn main(words: Vec<OsString>) -> u8 {
    let command = match CommandLine::try_parse_from(of_tool(words)) {
        Ok(line) => line.command,
        Err(error) => {
            // help and version are no errors, and go to standard output
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let mut out = Shown::new(BufWriter::with_capacity(1 << 16, io::stdout().lock()));
    let done = command.run(&mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => 0,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            // what is printed already explains the error
            let _ = out.flush();
            for line in complaints(&error) {
                eprintln!("hoist: {}", Printable::from(&*line));
            }
            1
        }
    }
}

/// What an error of a command says: its lines.
#[must_use]
pub fn complaints(error: &anyhow::Error) -> Vec<String> {
    match error.downcast_ref::<Lines>() {
        Some(Lines(lines)) => lines.clone(),
        None => vec![format!("{error:#}")],
    }
}

/// Under the name of one of NVIDIA's tools, by a link or a copy, the program is that command.
fn of_tool(mut words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|name| Path::new(name).file_stem()?.to_str());
    if let Some(tool) = ["cuobjdump", "nvprune"].into_iter().find(|tool| name == Some(tool)) {
        words.insert(1, tool.into());
    }
    words
}

/// Whether a write failed because nobody reads any more.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<io::Error>() {
        Some(error) => Some(error.kind()),
        None => {
            cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind)
        }
    };
    error.chain().any(|cause| kind(cause) == Some(io::ErrorKind::BrokenPipe))
}
