//! Tables for people: columns as wide as what is in them, no blanks at the ends of lines, and on a terminal no line that wraps.

mod fit;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::Write;
use std::{mem, slice};

use anyhow::Result;
use elf_core::{Name, is_hidden};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::apart::{MORE, apart};
use crate::paint::{self, Paint};
use fit::{GAP, INDENT, NARROW, fit};

/// The least width of a column.
const LEAST: usize = 2;
/// Bytes of cells that are held. Longer tables are printed in parts, whose columns only grow: a small file can have many rows.
const CHUNK: usize = 8 << 20;
/// Bytes of lines that are printed together.
const BLOCK: usize = 1 << 16;

/// A table that is printed when it ends. Cells keep to their place: what is [hidden](is_hidden) in them, line feeds too, is escaped.
pub struct Table<'o> {
    out: &'o mut dyn Write,
    /// All cells, one after another.
    text: String,
    /// Where each cell ends in `text`.
    ends: Vec<usize>,
    /// Cells with a colour, by their place in `ends`.
    paints: Vec<(usize, Paint)>,
    /// Whether the first row that is held says what the columns are.
    has_heading: bool,
    columns: usize,
    /// Of the columns that are printed.
    widths: Vec<usize>,
}

impl<'o> Table<'o> {
    /// An empty table.
    #[must_use]
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            text: String::new(),
            ends: Vec::new(),
            paints: Vec::new(),
            has_heading: false,
            columns: 1,
            widths: Vec::new(),
        }
    }

    /// Adds the first row, which says what the columns are.
    ///
    /// # Errors
    /// If a cell has no text.
    pub fn heading<const N: usize>(&mut self, cells: [impl Display; N]) -> Result<()> {
        self.has_heading = paint::is_on();
        self.row(cells)
    }

    /// Adds a row with a colour for one of its cells.
    ///
    /// # Errors
    /// If a cell has no text.
    pub fn painted<const N: usize>(
        &mut self,
        (column, paint): (usize, Paint),
        cells: [impl Display; N],
    ) -> Result<()> {
        if paint::is_on() {
            self.paints.push((self.ends.len() + column, paint));
        }
        self.row(cells)
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
            let cell = self.text.get(start..).unwrap_or_default();
            if !is_plain(cell) && cell.chars().any(is_hidden) {
                let cell = self.text.split_off(start);
                write!(self.text, "{}", Name::from(cell.as_str()))?;
            }
            self.ends.push(self.text.len());
        }
        if self.text.len() >= CHUNK {
            self.flush(columns())?;
        }
        Ok(())
    }

    /// Prints the table: as wide as what is in it, on a terminal no wider than that.
    ///
    /// # Errors
    /// If that fails.
    pub fn end(mut self) -> Result<()> {
        self.flush(columns())
    }

    /// Prints the rows that are held in so many columns of a terminal, each at least as wide as in rows before.
    fn flush(&mut self, limit: Option<usize>) -> Result<()> {
        let columns = self.columns;
        let mut widths = core::mem::take(&mut self.widths);
        widths.resize(columns, LEAST);
        let mut all = Cells::of(&self.text, &self.ends);
        while !all.is_empty() {
            let row = widths.iter_mut().zip(&mut all);
            row.for_each(|(most, (_, width))| *most = (*most).max(width));
        }
        // without a limit no cell is cut
        let cells: Vec<_> = limit.iter().flat_map(|_| Cells::of(&self.text, &self.ends)).collect();
        let (gap, breaks) = match limit {
            Some(limit) => fit(&mut widths, &cells, limit),
            None => (GAP, Vec::new()),
        };
        let is_cut = |(at, most): (usize, &usize)| {
            *most > 0 && cells.iter().skip(at).step_by(columns).any(|(_, width)| width > most)
        };
        let cut_columns = widths.iter().enumerate().map(|(at, most)| match is_cut((at, most)) {
            true => apart(cells.iter().skip(at).step_by(columns).map(|(cell, _)| *cell), *most),
            false => HashMap::new(),
        });
        let telling: Vec<_> = cut_columns.collect();
        let mut lines = Vec::with_capacity(BLOCK + (BLOCK >> 2));
        let mut paints = self.paints.iter().peekable();
        let mut all = Cells::of(&self.text, &self.ends);
        let mut index = 0;
        while !all.is_empty() {
            let is_heading = index == 0 && self.has_heading;
            let mut missing = 0;
            let row = widths.iter().zip(&telling).zip(&mut all).enumerate();
            for (column, ((most, told), (cell, width))) in row {
                if *most == 0 {
                    continue;
                }
                let (cell, width) = match told.get(cell) {
                    Some(told) => (Cow::Borrowed(&**told), told.width()),
                    None if width > *most => cut(cell, *most),
                    None => (Cow::Borrowed(cell), width),
                };
                let place = index * columns + column;
                while paints.next_if(|(painted, _)| *painted < place).is_some() {}
                let paint = paints.next_if(|(painted, _)| *painted == place);
                if breaks.contains(&column) {
                    end_line(&mut lines);
                    missing = INDENT;
                }
                if !cell.is_empty() {
                    blanks(missing, &mut lines);
                    missing = 0;
                    let paint = paint.map(|(_, paint)| *paint);
                    write_cell(&cell, paint.or(is_heading.then_some(Paint::Heading)), &mut lines);
                }
                missing += most.saturating_sub(width) + gap;
            }
            end_line(&mut lines);
            if lines.len() >= BLOCK {
                self.out.write_all(&lines)?;
                lines.clear();
            }
            index += 1;
        }
        self.out.write_all(&lines)?;
        self.widths = widths;
        self.text.clear();
        self.ends.clear();
        self.paints.clear();
        self.has_heading = false;
        Ok(())
    }
}

/// Cells of a table and how wide each is, one row after another.
struct Cells<'t> {
    text: &'t str,
    start: usize,
    ends: slice::Iter<'t, usize>,
}

impl<'t> Cells<'t> {
    fn of(text: &'t str, ends: &'t [usize]) -> Self {
        Self { text, start: 0, ends: ends.iter() }
    }

    fn is_empty(&self) -> bool {
        self.ends.len() == 0
    }
}

impl<'t> Iterator for Cells<'t> {
    type Item = (&'t str, usize);

    fn next(&mut self) -> Option<(&'t str, usize)> {
        let end = *self.ends.next()?;
        let cell = self.text.get(mem::replace(&mut self.start, end)..end)?;
        Some((cell, width(cell)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ends.size_hint()
    }
}

/// As much of a cell as a column has room for, and how wide that is: a wide character may not fill it.
fn cut(cell: &str, most: usize) -> (Cow<'_, str>, usize) {
    let mut kept = String::new();
    let mut used = 1;
    for one in cell.chars() {
        let width = one.width().unwrap_or(0);
        if used + width > most {
            break;
        }
        used += width;
        kept.push(one);
    }
    kept.push(MORE);
    (Cow::Owned(kept), used)
}

/// Ends a line where its last word does.
fn end_line(lines: &mut Vec<u8>) {
    while lines.last() == Some(&b' ') {
        lines.pop();
    }
    lines.push(b'\n');
}

/// Adds so many blanks.
fn blanks(count: usize, lines: &mut Vec<u8>) {
    lines.resize(lines.len() + count, b' ');
}

/// Adds a cell; what is painted of it are neither blanks before it nor behind it.
fn write_cell(cell: &str, paint: Option<Paint>, lines: &mut Vec<u8>) {
    let Some(paint) = paint else { return lines.extend(cell.as_bytes()) };
    let text = cell.trim_matches(' ');
    let before = cell.len() - cell.trim_start_matches(' ').len();
    blanks(before, lines);
    lines.extend(paint.mark());
    lines.extend(text.as_bytes());
    lines.extend(paint::END_MARK);
    blanks(cell.len() - before - text.len(), lines);
}

/// Whether a text is letters, digits and signs of ASCII: most is.
fn is_plain(text: &str) -> bool {
    // looked at to its end, so that the compiler can use vectors
    text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

/// A line of text, on a terminal without the middle part that it has no room for, with `end` behind it.
#[must_use]
pub fn line(text: &str, end: &str) -> String {
    let room = columns().map_or(usize::MAX, |columns| columns.saturating_sub(width(end)));
    if width(text) <= room {
        return format!("{text}{end}");
    }
    let half = room.saturating_sub(1) / 2;
    let start: String = text.chars().take(half).collect();
    let count = text.chars().count();
    let rest: String =
        text.chars().skip(count.saturating_sub(room.saturating_sub(half + 1))).collect();
    format!("{start}{MORE}{rest}{end}")
}

/// Lines of text, each as [`line()`] has it, but told apart if what fits of them is the same.
#[must_use]
pub fn lines<'t>(texts: &[&'t str]) -> Vec<Cow<'t, str>> {
    let told = columns().map_or_else(HashMap::new, |room| apart(texts.iter().copied(), room));
    let one = |text: &&'t str| told.get(text).map_or_else(|| line(text, ""), Clone::clone).into();
    texts.iter().map(one).collect()
}

/// The end of a path, on a terminal no more than a good part of a line: what tells files apart is there.
#[must_use]
pub fn tail(text: &str) -> String {
    let room = columns().map_or(usize::MAX, |columns| columns.saturating_mul(2) / 5);
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let kept = text.chars().skip(count.saturating_sub(room.saturating_sub(1)));
    std::iter::once(MORE).chain(kept).collect()
}

/// The width of the terminal that is printed to: what the environment's COLUMNS says, or standard output, if it is one.
#[must_use]
pub fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    said.or_else(terminal).filter(|columns| *columns >= NARROW)
}

#[cfg(target_os = "linux")]
fn terminal() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

#[cfg(not(target_os = "linux"))]
const fn terminal() -> Option<usize> {
    None
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

    #[test]
    fn no_line_wraps() {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out);
        table.row(["size", "nothing", "name", "other"]).unwrap();
        table.row(["1234567890", "", "größe of a long name", "another long name"]).unwrap();
        table.row(["1", "", "short", "x"]).unwrap();
        table.flush(Some(40)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines = "size        name           other\n1234567890  größe of a l…  another long…\n\
            1           short          x\n";
        assert_eq!(text, lines);
        assert!(text.lines().all(|line| line.width() <= 40));
    }

    #[test]
    fn numbers_are_whole() {
        let rows =
            [["#", "address", "offset", "flags"], ["1", "00000000004a0000", "0x1234", "ALLOC"]];
        let printed = |columns| {
            let mut out = Vec::new();
            let mut table = Table::new(&mut out);
            rows.iter().for_each(|row| table.row(*row).unwrap());
            table.flush(Some(columns)).unwrap();
            String::from_utf8(out).unwrap()
        };
        let close = "#  address          offset flags\n1  00000000004a0000 0x1234 ALLOC\n";
        assert_eq!(printed(32), close);
        let folded = "#   address\n    offset  flags\n1   00000000004a0000\n    0x1234  ALLOC\n";
        assert_eq!(printed(24), folded);
    }
}
