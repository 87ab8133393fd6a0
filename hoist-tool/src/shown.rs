//! Text on its way to a terminal: whatever a file put into it, it moves no cursor and turns no direction.

use std::io::{self, Write};

use elf_core::{Name, is_hidden};

use crate::paint;

/// A writer of text that escapes what is [hidden](is_hidden) in it, but for the ends of lines that commands write, or PTX of Windows has
/// (`\r\n`). Names in the text keep to their line by [`Printable`](crate::printable::Printable).
///
/// Everything that commands print goes through one, except bytes that are asked for as such ([`bytes`]).
#[derive(Debug)]
pub struct Shown<W> {
    out: W,
    /// Whether text has marks of colours, and whether they become escape sequences.
    marks: Option<bool>,
}

impl<W: Write> Shown<W> {
    /// Escapes what is written to `out`.
    pub const fn new(out: W) -> Self {
        Self { out, marks: None }
    }

    /// What commands write to: their text has marks of [colours](crate::paint) if standard output has colours. They become escape
    /// sequences if `out`, too, has colours.
    pub fn painted(out: W, has_colours: bool) -> Self {
        Self { out, marks: paint::is_on().then_some(has_colours) }
    }

    /// Writes what may hold anything.
    fn escape(&mut self, text: &[u8]) -> io::Result<()> {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let ends: [&[u8]; 2] = [b"\r\n", b"\n"];
            let end = ends.into_iter().find(|end| line.ends_with(end)).unwrap_or_default();
            let line = line.strip_suffix(end).unwrap_or(line);
            write!(self.out, "{}", Name(line))?;
            self.out.write_all(end)?;
        }
        Ok(())
    }

    /// Writes what has no marks.
    fn write_text(&mut self, text: &[u8]) -> io::Result<()> {
        // most text is letters and line feeds; looked at to its end, so that the compiler can use vectors
        if text.iter().fold(true, |plain, byte| plain & matches!(byte, b'\n' | b' '..=b'~')) {
            return self.out.write_all(text);
        }
        match str::from_utf8(text) {
            Ok(text) if !has_hidden(text) => self.out.write_all(text.as_bytes()),
            _ => self.escape(text),
        }
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.write_all(text).map(|()| text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        let mut rest = text;
        while let Some(has_colours) = self.marks
            && let Some((before, sequence, after)) = paint::split(rest)
        {
            self.write_text(before)?;
            if has_colours {
                self.out.write_all(sequence.as_bytes())?;
            }
            rest = after;
        }
        self.write_text(rest)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether anything but the ends of lines is hidden in `text`.
fn has_hidden(text: &str) -> bool {
    let (lines, rest) = text.rsplit_once('\n').unwrap_or(("", text));
    let mut lines = lines.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    rest.chars().any(is_hidden) || lines.any(|line| line.chars().any(is_hidden))
}

/// Writes bytes to standard output as they are, and nothing else.
///
/// # Errors
/// If that fails.
pub fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ends_of_lines_pass() {
        let mut out = Vec::new();
        let mut shown = Shown::new(&mut out);
        shown.write_all("größe\n\x1b[2J\u{202e}x\r\n".as_bytes()).unwrap();
        shown.write_all(b"\xff\n\n").unwrap();
        shown.write_all(b"a\r\r\nb\rc\r\n\r\nd\r").unwrap();
        shown.write_all(b"e\r\n\r\n").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "größe\n\\u{1b}[2J\\u{202e}x\r\n\\xff\n\na\\r\r\nb\\rc\r\n\r\nd\\re\r\n\r\n"
        );
    }

    #[test]
    fn colours_are_those_of_marks_only() {
        let text = b"\xfft\x1b[31mtitle\xff.\nname \x1b[1m\xff\n";
        let shown = |mut shown: Shown<&mut Vec<u8>>| shown.write_all(text).unwrap();
        let (mut plain, mut bare, mut painted) = (Vec::new(), Vec::new(), Vec::new());
        shown(Shown::new(&mut plain));
        shown(Shown { out: &mut bare, marks: Some(false) });
        shown(Shown { out: &mut painted, marks: Some(true) });
        assert_eq!(
            String::from_utf8(painted).unwrap(),
            "\x1b[1m\\u{1b}[31mtitle\x1b[0m\nname \\u{1b}[1m\\xff\n"
        );
        assert_eq!(bare, b"\\u{1b}[31mtitle\nname \\u{1b}[1m\\xff\n");
        assert_eq!(
            String::from_utf8(plain).unwrap(),
            "\\xfft\\u{1b}[31mtitle\\xff.\nname \\u{1b}[1m\\xff\n"
        );
    }
}
