//! The command line. Errors are one line on standard error and exit status 1; a reader who went away is no error.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use hoist_tool::cmd::CommandLine;
use hoist_tool::explain::Lines;
use hoist_tool::printable::Printable;
use hoist_tool::shown::Shown;

fn main() -> ExitCode {
    let command = CommandLine::parse_from(words()).command;
    let mut out = Shown::new(BufWriter::with_capacity(1 << 16, io::stdout().lock()));
    let done = command.run(&mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // what is printed already explains the error
            let _ = out.flush();
            match error.downcast_ref::<Lines>() {
                Some(Lines(lines)) => lines.iter().for_each(|line| complain(line)),
                None => complain(&format!("{error:#}")),
            }
            ExitCode::FAILURE
        }
    }
}

/// The words of the command line. Under the name of one of NVIDIA's tools, by a link or a copy, the program is that command.
fn words() -> Vec<OsString> {
    let mut words: Vec<_> = std::env::args_os().collect();
    let name = words.first().and_then(|name| Path::new(name).file_stem()?.to_str());
    if let Some(tool) = ["cuobjdump", "nvprune"].into_iter().find(|tool| name == Some(tool)) {
        words.insert(1, tool.into());
    }
    words
}

/// A line on standard error.
fn complain(line: &str) {
    eprintln!("hoist: {}", Printable::from(line));
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
