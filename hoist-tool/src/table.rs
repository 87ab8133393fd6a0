//! Tables for people: columns as wide as what is in them, no blanks at the ends of lines.

use std::fmt::{Display, Write as _};
use std::io::Write;
use std::iter::repeat_n;

use anyhow::Result;
use unicode_width::UnicodeWidthStr as _;

/// Blanks between columns.
const GAP: usize = 2;
/// The least width of a column.
const LEAST: usize = 2;

/// A table that is printed when it ends. Cells hold no line feeds: see [`Printable`](crate::printable::Printable).
pub struct Table<'o> {
    out: &'o mut dyn Write,
    /// All cells, one after another.
    text: String,
    /// Where each cell ends in `text`.
    ends: Vec<usize>,
    columns: usize,
}

impl<'o> Table<'o> {
    /// An empty table.
    #[must_use]
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self { out, text: String::new(), ends: Vec::new(), columns: 1 }
    }

    /// Adds a row. All rows of a table have as many cells.
    ///
    /// # Errors
    /// If a cell has no text.
    pub fn row<const N: usize>(&mut self, cells: [impl Display; N]) -> Result<()> {
        self.columns = N.max(1);
        for cell in cells {
            write!(self.text, "{cell}")?;
            self.ends.push(self.text.len());
        }
        Ok(())
    }

    /// Prints the table.
    ///
    /// # Errors
    /// If that fails.
    pub fn end(self) -> Result<()> {
        let mut start = 0;
        let cell = |&end: &usize| self.text.get(std::mem::replace(&mut start, end)..end);
        let cells: Vec<_> =
            self.ends.iter().filter_map(cell).map(|cell| (cell, width(cell))).collect();
        let mut widths = vec![LEAST; self.columns];
        for row in cells.chunks(self.columns) {
            widths.iter_mut().zip(row).for_each(|(most, (_, width))| *most = (*most).max(*width));
        }
        let mut line = String::new();
        for row in cells.chunks(self.columns) {
            line.clear();
            for ((cell, width), most) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(repeat_n(' ', most - width + GAP));
            }
            line.truncate(line.trim_end_matches(' ').len());
            line.push('\n');
            self.out.write_all(line.as_bytes())?;
        }
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
        let lines = "a         b          c\nlong one\ngröße 大  two words  x\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
    }
}
