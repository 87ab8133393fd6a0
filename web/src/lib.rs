//! The commands of `hoist` that look into files, for a page in a browser.
//!
//! A page [lends](lend) the files that a person chose, and [runs](run) command lines on them: `fatbin report --json-lines FILE`. Parts
//! of files are asked for when they are looked at; what commands print comes back in whole lines. Nothing else goes in or out.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use hoist_tool::cmd::views::CommandLine;
use hoist_tool::lent::{self, Lender};
use hoist_tool::words;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// Fills `into` with the bytes of a file from `at` on: false if they cannot be read.
    #[wasm_bindgen(js_name = hoistRead)]
    fn read(file: u32, at: f64, into: &mut [u8]) -> bool;
    /// Takes whole lines of what a command prints.
    #[wasm_bindgen(js_name = hoistLines)]
    fn take(lines: &str);
}

/// A file that the page has, by its number there.
#[derive(Debug)]
struct Chosen {
    number: u32,
    size: u64,
}

impl Lender for Chosen {
    fn size(&self) -> u64 {
        self.size
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes of files have no more than 53 bits in a browser"
    )]
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        if !read(self.number, at as f64, into) {
            bail!("{} bytes at {at:#x} cannot be read", into.len());
        }
        Ok(())
    }
}

/// Lends file `number` of the page under a name.
#[wasm_bindgen]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of files are whole numbers of no more than 53 bits"
)]
pub fn lend(name: &str, number: u32, size: f64) {
    lent::lend(PathBuf::from(name), Arc::new(Chosen { number, size: size as u64 }));
}

/// The parts of a lent file that the page may [put] before a command asks for them: where each starts and ends. None if there are no
/// more, or the file is not read so; what is wrong with it, commands say.
#[wasm_bindgen]
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of files have no more than 53 bits in a browser"
)]
pub fn wanted(name: &str) -> Option<Vec<f64>> {
    let parts = lent::wanted(name.as_ref()).ok().flatten()?;
    Some(parts.into_iter().flat_map(|part| [part.start as f64, part.end as f64]).collect())
}

/// Takes bytes of a lent file from `at` on: false if they are not wanted.
#[wasm_bindgen]
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places in files are whole numbers of no more than 53 bits"
)]
pub fn put(name: &str, at: f64, bytes: &[u8]) -> bool {
    lent::put(name.as_ref(), at as u64, bytes).is_ok()
}

/// Bytes of files that were read.
#[wasm_bindgen]
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a number for people")]
pub fn bytes_read() -> f64 {
    lent::bytes_read() as f64
}

/// Runs a command line, without the program's name: what went wrong, in lines, or nothing.
#[wasm_bindgen]
#[must_use]
pub fn run(words: Vec<String>) -> String {
    run_into(words, take)
}

/// The same, with lines going to `take`.
pub fn run_into(words: Vec<String>, take: impl FnMut(&str)) -> String {
    let program = core::iter::once(OsString::from("hoist"));
    let words: Vec<_> = program.chain(words.into_iter().map(OsString::from)).collect();
    let (line, has_lines) = match words::parse::<CommandLine>(&words) {
        Ok(parsed) => parsed,
        Err(error) => return error.to_string(),
    };
    let mut out = WholeLines { text: Vec::new(), take };
    let done = words::run(|out| line.run(out), has_lines, &mut out);
    match done.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => String::new(),
        Err(error) => {
            // what is printed already explains the error
            let _ = out.end();
            words::complaints(&error).join("\n")
        }
    }
}

/// Bytes that are handed over together.
const TOGETHER: usize = 1 << 20;

/// Hands over what is written to it in whole lines.
struct WholeLines<F> {
    text: Vec<u8>,
    take: F,
}

impl<F: FnMut(&str)> WholeLines<F> {
    /// Hands over what there is up to `end`.
    fn hand(&mut self, end: usize) -> io::Result<()> {
        let text = self.text.get(..end).unwrap_or_default();
        (self.take)(str::from_utf8(text).map_err(io::Error::other)?);
        self.text.drain(..end);
        Ok(())
    }

    /// Hands over the whole lines that are left.
    fn end(&mut self) -> io::Result<()> {
        let end = self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.hand(end)
    }
}

impl<F: FnMut(&str)> Write for WholeLines<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= TOGETHER && bytes.contains(&b'\n') {
            self.end()?;
        }
        Ok(bytes.len())
    }

    /// Hands over all, also what does not end its line: text.
    fn flush(&mut self) -> io::Result<()> {
        self.hand(self.text.len())
    }
}

impl<F> fmt::Debug for WholeLines<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeLines").field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}
