//! Colours on terminals.
//!
//! Commands write to any writer, through buffers and other threads. Where text begins to have a colour they write a mark: a byte that no
//! text has, and a letter. [`Shown`](crate::shown::Shown) makes escape sequences of marks, when all else is escaped: what stands in a
//! file has no colour and changes none. Marks are written only if standard output has colours, which [`choose`] decides.

use std::fmt::{Arguments, Display};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::picture::Kind;
use crate::printable::Printable;

/// What text is, which gives its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// What a part of the output is about.
    Title,
    /// The first line of a table.
    Heading,
    /// Instructions; what may be run.
    Code,
    /// What is only read.
    ReadOnly,
    /// What is written.
    Data,
    /// What is not loaded, or takes no room in the file.
    Faint,
    /// What is both written and run.
    Suspect,
    /// The first word of a note or warning.
    Warning,
    /// The first word of an error.
    Error,
}

/// Every paint, its letter in marks, and what it looks like.
const PAINTS: [(Paint, u8, Style); 9] = [
    (Paint::Title, b't', Style::new().bold()),
    (Paint::Heading, b'h', Style::new().underline()),
    (Paint::Code, b'x', AnsiColor::Blue.on_default()),
    (Paint::ReadOnly, b'r', AnsiColor::Green.on_default()),
    (Paint::Data, b'w', AnsiColor::Yellow.on_default()),
    (Paint::Faint, b'f', Style::new().dimmed()),
    (Paint::Suspect, b's', AnsiColor::Red.on_default()),
    (Paint::Warning, b'n', AnsiColor::Yellow.on_default().bold()),
    (Paint::Error, b'e', AnsiColor::Red.on_default().bold()),
];

/// Begins a mark: UTF-8 has no such byte.
const MARK: u8 = 0xff;
/// The letter where a paint ends.
const END: u8 = b'.';

/// Whether standard output and standard error have colours.
static STDOUT: AtomicBool = AtomicBool::new(false);
static STDERR: AtomicBool = AtomicBool::new(false);

/// Decides what has colours: a stream that is a terminal, unless the command line or the environment (`NO_COLOR`, `CLICOLOR`,
/// `CLICOLOR_FORCE`, `TERM`) says otherwise. The command line comes first.
pub fn choose(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    }
    .write_global();
    let has = |choice: ColorChoice| choice != ColorChoice::Never;
    STDOUT.store(has(AutoStream::choice(&io::stdout())), Ordering::Relaxed);
    STDERR.store(has(AutoStream::choice(&io::stderr())), Ordering::Relaxed);
}

/// Whether text has marks: as it does for standard output.
#[must_use]
pub fn is_on() -> bool {
    STDOUT.load(Ordering::Relaxed)
}

/// Whether standard error has colours.
#[must_use]
pub fn is_on_stderr() -> bool {
    STDERR.load(Ordering::Relaxed)
}

impl Paint {
    fn row(self) -> (u8, Style) {
        let row = PAINTS.iter().find(|(paint, ..)| *paint == self);
        row.map_or((END, Style::new()), |(_, letter, style)| (*letter, *style))
    }

    /// The mark where it begins.
    #[must_use]
    pub fn mark(self) -> [u8; 2] {
        [MARK, self.row().0]
    }
}

/// The mark where a paint ends.
pub const END_MARK: [u8; 2] = [MARK, END];

impl From<Kind> for Paint {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Code | Kind::Stubs => Self::Code,
            Kind::ReadOnly => Self::ReadOnly,
            Kind::Data | Kind::Got | Kind::Zeros => Self::Data,
            Kind::Header | Kind::NotLoaded | Kind::Padding => Self::Faint,
        }
    }
}

/// What permissions say, as `rwx` with `-` for what is not permitted.
#[must_use]
pub fn of_permissions(permissions: &str) -> Paint {
    match (permissions.contains('w'), permissions.contains('x')) {
        (true, true) => Paint::Suspect,
        (_, true) => Paint::Code,
        (true, _) => Paint::Data,
        _ => Paint::ReadOnly,
    }
}

/// The text before the first mark, the escape sequence that the mark stands for, and what follows it.
pub(crate) fn split(text: &[u8]) -> Option<(&[u8], String, &[u8])> {
    let style = |letter: u8| match PAINTS.iter().find(|(_, of, _)| *of == letter) {
        Some((.., style)) => Some(style.render().to_string()),
        None => (letter == END).then(|| anstyle::Reset.render().to_string()),
    };
    let mut marks = text.windows(2).enumerate().filter(|(_, pair)| pair.first() == Some(&MARK));
    let found = marks.find_map(|(at, pair)| Some((at, style(*pair.last()?)?)));
    let (at, sequence) = found?;
    Some((text.get(..at)?, sequence, text.get(at + 2..)?))
}

/// Writes text in a colour, if standard output has colours.
///
/// # Errors
/// If it cannot be written.
pub fn write(out: &mut dyn Write, paint: Paint, text: impl Display) -> io::Result<()> {
    if !is_on() {
        return write!(out, "{text}");
    }
    out.write_all(&paint.mark())?;
    write!(out, "{text}")?;
    out.write_all(&END_MARK)
}

/// Writes a line that says what follows.
///
/// # Errors
/// If it cannot be written.
pub fn title(out: &mut dyn Write, text: Arguments<'_>) -> io::Result<()> {
    write(out, Paint::Title, text)?;
    writeln!(out)
}

/// Writes a line that people should know of.
///
/// # Errors
/// If it cannot be written.
pub fn note(out: &mut dyn Write, text: &str) -> io::Result<()> {
    write(out, Paint::Warning, "note:")?;
    writeln!(out, " {}", Printable::from(text))
}

/// Says on standard error what went wrong.
pub fn error(text: &str) {
    complain(Paint::Error, text);
}

/// Says on standard error what did not go as it might, though the work goes on.
pub fn warning(text: &str) {
    complain(Paint::Warning, text);
}

fn complain(paint: Paint, text: &str) {
    let text = Printable::from(text);
    if is_on_stderr() {
        let style = paint.row().1;
        eprintln!("{style}hoist:{style:#} {text}");
    } else {
        eprintln!("hoist: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paint_has_a_letter_of_its_own() {
        let mut letters: Vec<u8> = PAINTS.iter().map(|(_, letter, _)| *letter).collect();
        letters.push(END);
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), PAINTS.len() + 1);
        for (paint, letter, _) in PAINTS {
            assert_eq!(paint.mark(), [MARK, letter]);
        }
    }

    #[test]
    fn marks_are_found_and_other_bytes_are_not() {
        let text = [b"a\xff\xffz".as_slice(), &Paint::Title.mark(), b"b"].concat();
        let (before, sequence, after) = split(&text).unwrap();
        assert_eq!((before, &*sequence, after), (&b"a\xff\xffz"[..], "\x1b[1m", &b"b"[..]));
        let (before, sequence, after) = split(b"b\xff.c").unwrap();
        assert_eq!((before, &*sequence, after), (&b"b"[..], "\x1b[0m", &b"c"[..]));
        assert!(split(b"\xff").is_none() && split("größe".as_bytes()).is_none());
    }

    #[test]
    fn what_is_written_and_run_stands_out() {
        assert_eq!(of_permissions("rwx"), Paint::Suspect);
        assert_eq!(of_permissions("r-x"), Paint::Code);
        assert_eq!(of_permissions("rw-"), Paint::Data);
        assert_eq!(of_permissions("r--"), Paint::ReadOnly);
    }
}
