//! Tables for people: columns as wide as what is in them, no blanks at the ends of lines.

use std::fmt::{Display, Write as _};
use std::io::Write;
use std::iter::repeat_n;

use anyhow::Result;
use elf_core::{Name, is_hidden};
use unicode_width::UnicodeWidthStr as _;

/// Blanks between columns.
const GAP: usize = 2;
/// The least width of a column.
const LEAST: usize = 2;
/// Bytes of cells that are held. Longer tables are printed in parts, whose columns only grow: a small file can have many rows.
const CHUNK: usize = 8 << 20;

/// A table that is printed when it ends. Cells keep to their place: what is [hidden](is_hidden) in them, line feeds too, is escaped.
pub struct Table<'o> {
    out: &'o mut dyn Write,
    /// All cells, one after another.
    text: String,
    /// Where each cell ends in `text`.
    ends: Vec<usize>,
    columns: usize,
    /// Of the columns that are printed.
    widths: Vec<usize>,
}

impl<'o> Table<'o> {
    /// An empty table.
    #[must_use]
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self { out, text: String::new(), ends: Vec::new(), columns: 1, widths: Vec::new() }
    }

    /// Adds a row. All rows of a table have as many cells.
    ///
    /// # Errors
    /// If a cell has no text.
    pub fn row<const N: usize>(&mut self, cells: [impl Display; N]) -> Result<()> {
        self.columns = N.max(1);
        for cell in cells {
            let start = self.text.len();
            write!(self.text, "{cell}")?;
            let is_plain = self.text.get(start..).is_none_or(|cell| !cell.chars().any(is_hidden));
            if !is_plain {
                let cell = self.text.split_off(start);
                write!(self.text, "{}", Name::from(cell.as_str()))?;
            }
            self.ends.push(self.text.len());
        }
        if self.text.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    /// Prints the table, or the rest of a long one.
    ///
    /// # Errors
    /// If that fails.
    pub fn end(mut self) -> Result<()> {
        self.flush()
    }

    /// Prints the rows that are held, in columns that are at least as wide as before.
    fn flush(&mut self) -> Result<()> {
        let mut start = 0;
        let cell = |&end: &usize| self.text.get(std::mem::replace(&mut start, end)..end);
        let cells: Vec<_> =
            self.ends.iter().filter_map(cell).map(|cell| (cell, width(cell))).collect();
        self.widths.resize(self.columns, LEAST);
        let widths = &mut self.widths;
        for row in cells.chunks(self.columns) {
            widths.iter_mut().zip(row).for_each(|(most, (_, width))| *most = (*most).max(*width));
        }
        let mut line = String::new();
        for row in cells.chunks(self.columns) {
            line.clear();
            for ((cell, width), most) in row.iter().zip(&*widths) {
                line.push_str(cell);
                line.extend(repeat_n(' ', most - width + GAP));
            }
            line.truncate(line.trim_end_matches(' ').len());
            line.push('\n');
            self.out.write_all(line.as_bytes())?;
        }
        self.text.clear();
        self.ends.clear();
        Ok(())
    }
}

/// Columns of a terminal that a text takes.
fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
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
        table.row(["größe 大", "two words", "x"]).unwrap();
        table.end().unwrap();
        let mut hostile = Vec::new();
        let mut table = Table::new(&mut hostile);
        table.row(["a\nb", "\u{202e}", "\x1b[1m"]).unwrap();
        table.end().unwrap();
        assert_eq!(hostile, b"a\\nb  \\u{202e}  \\u{1b}[1m\n");
        let lines = "a         b          c\nlong one\ngröße 大  two words  x\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
    }
}
