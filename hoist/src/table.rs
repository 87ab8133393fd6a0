//! Tables for people: columns as wide as what is in them, no blanks at the ends of lines.

use std::io::{self, Write};

use anyhow::Result;
use tabwriter::TabWriter;

/// A table that is printed when it ends. Cells hold no tabs and no line feeds: see [`Printable`](crate::printable::Printable).
pub struct Table<'o>(TabWriter<Trimmed<'o>>);

impl<'o> Table<'o> {
    /// An empty table.
    #[must_use]
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self(TabWriter::new(Trimmed { out, blanks: 0 }).padding(2))
    }

    /// Adds a row. All rows of a table have as many cells.
    ///
    /// # Errors
    /// None before the table ends.
    pub fn row<const N: usize>(&mut self, cells: [impl AsRef<str>; N]) -> Result<()> {
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.0.write_all(b"\t")?;
            }
            self.0.write_all(cell.as_ref().as_bytes())?;
        }
        Ok(self.0.write_all(b"\n")?)
    }

    /// Prints the table.
    ///
    /// # Errors
    /// If that fails.
    pub fn end(mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

/// Leaves out blanks before a line feed.
struct Trimmed<'o> {
    out: &'o mut dyn Write,
    /// Blanks that are written if something follows on their line.
    blanks: usize,
}

impl Write for Trimmed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (line, end) = match part.split_last() {
                Some((b'\n', line)) => (line, &b"\n"[..]),
                _ => (part, &b""[..]),
            };
            let text = trim_end(line);
            if !text.is_empty() {
                write!(self.out, "{:1$}", "", core::mem::take(&mut self.blanks))?;
                self.out.write_all(text)?;
            }
            self.blanks += line.len() - text.len();
            if !end.is_empty() {
                self.blanks = 0;
                self.out.write_all(end)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes before the blanks at their end.
fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    line.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end() {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out);
        table.row(["a", "b", "c"]).unwrap();
        table.row(["long one", "", ""]).unwrap();
        table.row(["", "two words", "x"]).unwrap();
        table.end().unwrap();
        assert_eq!(out, b"a         b          c\nlong one\n          two words  x\n");
    }
}
