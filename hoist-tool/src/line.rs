//! The program `hoist`: words of a command line to an exit status. Errors are one line on standard error and status 1; a reader who
//! went away is no error.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

pub use clap::Parser;
use clap::{ColorChoice, ValueEnum as _};

use crate::cmd::CommandLine;
use crate::faults::Status;
use crate::paint;
use crate::shown::Shown;
use crate::words;
pub use crate::words::complaints;

/// Does what the words say, the first of which is the program's name: the exit status.
#[must_use]
pub fn main(words: Vec<OsString>) -> u8 {
    let words = of_program(of_tool(words));
    let (command, has_lines) = match words::parse::<CommandLine>(&words) {
        Ok((line, has_lines)) => {
            paint::choose(line.color);
            (line.command, has_lines)
        }
        Err(error) => {
            paint::choose(color(&words));
            // help and version are no errors, and go to standard output
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let mut out = Shown::painted(BufWriter::with_capacity(1 << 16, io::stdout().lock()), true);
    let done = words::run(|out| command.run(out), has_lines, &mut out);
    let done = done.and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => 0,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            // what is printed already explains the error
            let _ = out.flush();
            if let Some(Status(status)) = error.downcast_ref() {
                return *status;
            }
            complaints(&error).iter().for_each(|line| paint::error(line));
            1
        }
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

/// What a program that is run here is given is not ours: `hoist exec ls --color` is about the colours of `ls`, and `hoist exec ls -- -l`
/// has it list the file `-l`.
fn of_program(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut given = words.iter().map(|word| word.to_str().unwrap_or_default()).enumerate().skip(1);
    let mut is_exec = false;
    while let Some((at, word)) = given.next() {
        match word {
            // all behind it is the program's
            "--" => break,
            "--limit" | "--color" => drop(given.next()),
            _ if word.starts_with('-') => {}
            "exec" if !is_exec => is_exec = true,
            _ => {
                if is_exec && at + 1 < words.len() {
                    words.insert(at + 1, "--".into());
                }
                break;
            }
        }
    }
    words
}

/// When a command line that is not taken wants colours.
fn color(words: &[OsString]) -> ColorChoice {
    let words = words.iter().map(|word| word.to_str().unwrap_or_default());
    let words: Vec<&str> = words.take_while(|word| *word != "--").collect();
    let said = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--color") {
        Some("") => words.get(at + 1).copied(),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    });
    said.and_then(|when| ColorChoice::from_str(when, false).ok()).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_program_has_its_own_options() {
        for (line, expected) in [
            ("hoist exec ls --color=always", "hoist exec ls -- --color=always"),
            ("hoist exec ls -l --help", "hoist exec ls -- -l --help"),
            ("hoist exec ls -- -l", "hoist exec ls -- -- -l"),
            ("hoist exec -- ls -- -l", "hoist exec -- ls -- -l"),
            ("hoist exec --limit 0x1000 ls --limit", "hoist exec --limit 0x1000 ls -- --limit"),
            ("hoist exec --limit=9 ls -- -l", "hoist exec --limit=9 ls -- -- -l"),
            ("hoist run a.o main -- -l", "hoist run a.o main -- -l"),
            ("hoist exec ls", "hoist exec ls"),
            ("hoist exec --help", "hoist exec --help"),
            ("hoist --color never exec exec -l", "hoist --color never exec exec -- -l"),
            ("hoist show ls -l", "hoist show ls -l"),
        ] {
            assert_eq!(of_program(words(line)), words(expected));
        }
        #[cfg(feature = "host")]
        for (line, given) in [
            ("hoist exec ls --color=never", r#"["--color=never"]"#),
            ("hoist exec ls -- --color=never", r#"["--", "--color=never"]"#),
            ("hoist exec --limit 9 -- ls -- -l", r#"["--", "-l"]"#),
        ] {
            let parsed = CommandLine::try_parse_from(of_program(words(line))).unwrap();
            assert_eq!(parsed.color, ColorChoice::Auto, "{line}");
            let command = format!("{:?}", parsed.command);
            assert!(command.contains(&format!("arguments: {given}")), "{command}");
        }
    }

    #[test]
    fn colours_are_chosen_even_where_nothing_else_is_understood() {
        for (line, expected) in [
            ("hoist --color never nothing", ColorChoice::Never),
            ("hoist nothing --color=always", ColorChoice::Always),
            ("hoist nothing --colors=always", ColorChoice::Auto),
            ("hoist nothing --color", ColorChoice::Auto),
            ("hoist run x -- --color=always", ColorChoice::Auto),
        ] {
            assert_eq!(color(&words(line)), expected, "{line}");
        }
    }
}
