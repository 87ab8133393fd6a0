//! Text on its way to a terminal: whatever a file put into it, it moves no cursor and turns no direction.

use std::io::{self, Write};

use elf_core::{Name, is_hidden};

/// A writer of text that escapes what is [hidden](is_hidden) in it, but for the line feeds that commands write. Names in
/// the text keep to their line by [`Printable`](crate::printable::Printable).
///
/// Everything that commands print goes through one, except bytes that are asked for as such ([`bytes`]).
#[derive(Debug)]
pub struct Shown<W>(W);

impl<W: Write> Shown<W> {
    /// Escapes what is written to `out`.
    pub const fn new(out: W) -> Self {
        Self(out)
    }

    /// Writes what may hold anything.
    fn escape(&mut self, text: &[u8]) -> io::Result<()> {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => writeln!(self.0, "{}", Name(line))?,
                None => write!(self.0, "{}", Name(line))?,
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.write_all(text).map(|()| text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        // most text is letters and line feeds; looked at to its end, so that the compiler can use vectors
        if text.iter().fold(true, |plain, byte| plain & matches!(byte, b'\n' | b' '..=b'~')) {
            return self.0.write_all(text);
        }
        match str::from_utf8(text) {
            Ok(text) if !text.chars().any(|one| one != '\n' && is_hidden(one)) => {
                self.0.write_all(text.as_bytes())
            }
            _ => self.escape(text),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
    fn only_line_feeds_pass() {
        let mut out = Vec::new();
        let mut shown = Shown::new(&mut out);
        shown.write_all("größe\n\x1b[2J\u{202e}x\r\n".as_bytes()).unwrap();
        shown.write_all(b"\xff\n\n").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "größe\n\\u{1b}[2J\\u{202e}x\\r\n\\xff\n\n");
    }
}
