//! Pictures of files and images: strips of bytes to scale, as SVG that needs nothing beside it.
//!
//! A [`Strip`] has a scale of its own. What is too narrow to have a name in it has one where the pointer rests, and neighbours of
//! one [`Kind`] that are narrower than a line are drawn as one.

use std::io::Write;

use anyhow::Result;
use elf_core::is_hidden;
use svg::Document;
use svg::node::element::{Group, Rectangle, Style, Text, Title};

/// What a block is, which gives its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Headers of the file.
    Header,
    /// Instructions.
    Code,
    /// What is only read.
    ReadOnly,
    /// What is written.
    Data,
    /// Zeros that no file holds.
    Zeros,
    /// The global offset table.
    Got,
    /// Stubs.
    Stubs,
    /// What is not loaded: symbols, relocations, debugging information.
    NotLoaded,
    /// Between all others.
    Padding,
}

/// Every kind, its class in the style sheet and what the legend says.
const KINDS: [(Kind, &str, &str); 9] = [
    (Kind::Header, "header", "headers"),
    (Kind::Code, "code", "code"),
    (Kind::ReadOnly, "ro", "read-only data"),
    (Kind::Data, "data", "data"),
    (Kind::Zeros, "zeros", "zeros"),
    (Kind::Got, "got", "global offset table"),
    (Kind::Stubs, "stubs", "stubs"),
    (Kind::NotLoaded, "rest", "not loaded"),
    (Kind::Padding, "padding", "padding"),
];

pub(crate) const STYLE: &str = "\
svg{background:#fff;font:11px monospace}text{fill:#222}.name{fill:#111}.scale{fill:#666}.head{font-weight:bold}\
rect{stroke:#fff;stroke-width:.5}.header{fill:#b8b8b8}.code{fill:#8db8e8}.ro{fill:#a9d8a9}.data{fill:#f3c283}\
.zeros{fill:#f7e3bf}.got{fill:#e59aa5}.stubs{fill:#b9a4e0}.rest{fill:#dcdcdc}.padding{fill:#f4f4f4;stroke:#bbb}.bar{fill:#777}\
.range{fill:#666;paint-order:stroke;stroke:#fff;stroke-width:4px}\
@media (prefers-color-scheme:dark){svg{background:#1b1b1b}text{fill:#ddd}.scale{fill:#999}rect{stroke:#1b1b1b}\
.padding{fill:#2a2a2a;stroke:#555}.bar{fill:#999}.range{fill:#999;stroke:#1b1b1b}}";

/// Bytes of one sort, which follow one another.
#[derive(Clone, Debug)]
pub struct Block {
    /// Where it begins, on the scale of its strip.
    pub start: u64,
    /// Its size.
    pub size: u64,
    /// What it is.
    pub kind: Kind,
    /// What it is called.
    pub name: String,
}

/// A range of bytes to scale.
#[derive(Clone, Debug)]
pub struct Strip {
    /// What it is.
    pub title: String,
    /// Where it begins.
    pub start: u64,
    /// Its size.
    pub size: u64,
    /// What is in it.
    pub blocks: Vec<Block>,
    /// Ranges that lie across blocks: they are drawn below them.
    pub ranges: Vec<Block>,
}

/// Pixels: of the whole, beside strips, of a strip, of a range, of a letter.
pub(crate) const WIDTH: f64 = 1000.0;
pub(crate) const MARGIN: f64 = 10.0;
const STRIP: f64 = 34.0;
pub(crate) const LINE: f64 = 15.0;
const LETTER: f64 = 6.7;
/// What is narrower is not told apart.
const LEAST: f64 = 0.5;

impl Strip {
    /// Pixels from the left for a place, which is cut to the strip.
    #[expect(clippy::cast_precision_loss, reason = "pixels need no more than 52 bits")]
    fn x(&self, place: u64) -> f64 {
        let offset = place.saturating_sub(self.start).min(self.size);
        MARGIN + offset as f64 / self.size.max(1) as f64 * (WIDTH - 2.0 * MARGIN)
    }

    /// Left and right of a block.
    fn edges(&self, block: &Block) -> (f64, f64) {
        (self.x(block.start), self.x(block.start.saturating_add(block.size)))
    }

    /// Its blocks in order, with padding between them; neighbours of one kind that are too narrow are one.
    fn drawn(&self) -> Vec<(Block, usize)> {
        let mut blocks: Vec<&Block> = self.blocks.iter().filter(|block| block.size > 0).collect();
        blocks.sort_by_key(|block| (block.start, std::cmp::Reverse(block.size)));
        let mut drawn: Vec<(Block, usize)> = Vec::new();
        let mut end = self.start;
        let gap = |from: u64, to: u64| Block {
            start: from,
            size: to.saturating_sub(from),
            kind: Kind::Padding,
            name: String::from("padding"),
        };
        for block in blocks {
            if block.start > end {
                self.push(&mut drawn, gap(end, block.start));
            }
            end = end.max(block.start.saturating_add(block.size));
            self.push(&mut drawn, block.clone());
        }
        let whole = self.start.saturating_add(self.size);
        if whole > end {
            self.push(&mut drawn, gap(end, whole));
        }
        drawn
    }

    fn push(&self, drawn: &mut Vec<(Block, usize)>, block: Block) {
        let narrow = |block: &Block| {
            let (left, right) = self.edges(block);
            right - left < LEAST
        };
        let is_padding = block.kind == Kind::Padding;
        if let Some((last, count)) = drawn.last_mut()
            && narrow(&block)
            && (is_padding || last.kind == block.kind)
        {
            if narrow(last) {
                let end = block.start.saturating_add(block.size);
                last.size = last.size.max(end.saturating_sub(last.start));
                *count += usize::from(!is_padding);
                return;
            }
            if is_padding {
                return;
            }
        }
        drawn.push((block, 1));
    }

    /// Draws it below `top`, and gives where it ends.
    fn draw(&self, mut document: Document, top: f64) -> (Document, f64) {
        let mut y = top + LINE;
        document = document.add(text("head", MARGIN, y - 4.0, &self.title));
        for (block, count) in self.drawn() {
            let (left, right) = self.edges(&block);
            let mut words =
                format!("{}: {:#x} bytes at {:#x}", block.name, block.size, block.start);
            if count > 1 {
                words = format!("{words}, and {} more", count - 1);
            }
            let mut group = Group::new().add(Title::new(plain(&words))).add(rectangle(
                class(block.kind),
                (left, right),
                (y, STRIP),
            ));
            if let Some(name) = fitting(&block.name, right - left) {
                group = group.add(text("name", left + 3.0, y + STRIP / 2.0 + 4.0, &name));
            }
            document = document.add(group);
        }
        y += STRIP;
        for range in &self.ranges {
            let (left, right) = self.edges(range);
            let words = format!("{}: {:#x} bytes at {:#x}", range.name, range.size, range.start);
            let bar = rectangle("bar", (left, right), (y + 3.0, 4.0));
            document = document.add(Group::new().add(Title::new(plain(&words))).add(bar));
            let wide = letters(&range.name);
            let x = if right + wide + 4.0 < WIDTH { right + 4.0 } else { left - wide - 4.0 };
            document = document.add(text("range", x.max(MARGIN), y + 9.0, &range.name));
            y += LINE - 4.0;
        }
        y += LINE;
        let end = format!("{:#x}", self.start.saturating_add(self.size));
        let right = WIDTH - MARGIN - letters(&end);
        document = document.add(text("scale", MARGIN, y - 3.0, &format!("{:#x}", self.start)));
        document = document.add(text("scale", right, y - 3.0, &end));
        (document, y + 6.0)
    }
}

/// Writes strips below one another, with a legend of the kinds in them.
///
/// # Errors
/// If they cannot be written.
pub fn write(title: &str, strips: &[Strip], out: &mut dyn Write) -> Result<()> {
    let mut document = Document::new().add(Title::new(plain(title))).add(Style::new(STYLE));
    let mut x = MARGIN;
    let is_used = |kind: Kind| {
        let mut drawn = strips.iter().flat_map(Strip::drawn);
        drawn.any(|(block, _)| block.kind == kind)
    };
    for (_, class, words) in KINDS.into_iter().filter(|(kind, ..)| is_used(*kind)) {
        document = document.add(rectangle(class, (x, x + 10.0), (MARGIN, 10.0)));
        document = document.add(text("scale", x + 14.0, MARGIN + 9.0, words));
        x += letters(words) + 30.0;
    }
    let mut y = MARGIN + 2.0 * LINE;
    for strip in strips {
        (document, y) = strip.draw(document, y);
    }
    end(document, y, out)
}

/// Writes a document that is `height` high.
pub(crate) fn end(document: Document, height: f64, out: &mut dyn Write) -> Result<()> {
    let document = document
        .set("viewBox", format!("0 0 {WIDTH} {height:.0}"))
        .set("width", WIDTH)
        .set("height", format!("{height:.0}"));
    Ok(writeln!(out, "{document}")?)
}

fn class(kind: Kind) -> &'static str {
    KINDS.iter().find(|(of, ..)| *of == kind).map_or("rest", |(_, class, _)| class)
}

pub(crate) fn rectangle(
    class: &str,
    (left, right): (f64, f64),
    (top, height): (f64, f64),
) -> Rectangle {
    Rectangle::new()
        .set("class", class)
        .set("x", format!("{left:.2}"))
        .set("y", format!("{top:.1}"))
        .set("width", format!("{:.2}", (right - left).max(0.3)))
        .set("height", height)
}

pub(crate) fn text(class: &str, x: f64, y: f64, words: &str) -> Text {
    Text::new(plain(words))
        .set("class", class)
        .set("x", format!("{x:.1}"))
        .set("y", format!("{y:.1}"))
}

/// Text that ends at `x`.
#[cfg(feature = "device-code")]
pub(crate) fn text_end(class: &str, x: f64, y: f64, words: &str) -> Text {
    text(class, x, y, words).set("text-anchor", "end")
}

/// Text that XML can hold, and that turns no direction: no control characters, not even escaped ones.
pub(crate) fn plain(words: &str) -> String {
    words.chars().map(|one| if is_hidden(one) { '\u{fffd}' } else { one }).collect()
}

/// Pixels that text takes.
#[expect(clippy::cast_precision_loss, reason = "names are not that long")]
pub(crate) fn letters(words: &str) -> f64 {
    words.chars().count() as f64 * LETTER
}

/// As much of a name as there is room for: at least three letters of it.
pub(crate) fn fitting(name: &str, room: f64) -> Option<String> {
    if letters(name) + 6.0 <= room {
        return Some(name.to_owned());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no more than 1000"
    )]
    let count = ((room - 6.0) / LETTER).max(0.0) as usize;
    (count >= 4).then(|| name.chars().take(count - 1).chain(['\u{2026}']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, size: u64, kind: Kind, name: &str) -> Block {
        Block { start, size, kind, name: name.to_owned() }
    }

    #[test]
    fn names_are_text() {
        let name = "<script>alert('1')</script>&\"\u{202e}\u{1b}";
        let blocks = vec![block(0, 10, Kind::Code, name)];
        let strip =
            Strip { title: name.to_owned(), start: 0, size: 10, blocks, ranges: Vec::new() };
        let mut out = Vec::new();
        write(name, &[strip], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;"), "{text}");
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn ten_thousand_narrow_blocks_are_few() {
        let blocks = (0..10_000).map(|at| block(at * 16, 12, Kind::Code, ".text")).collect();
        let strip =
            Strip { title: String::new(), start: 0, size: 160_000, blocks, ranges: Vec::new() };
        let drawn = strip.drawn();
        assert!(drawn.len() <= 2 * 980 + 2, "{}", drawn.len());
        assert_eq!(drawn.iter().map(|(_, count)| count).sum::<usize>(), 10_000);
    }

    #[test]
    fn strips_end_where_numbers_end() {
        let blocks = vec![block(u64::MAX - 4, 100, Kind::Data, ".data")];
        let strip = Strip {
            title: String::new(),
            start: u64::MAX - 8,
            size: 100,
            blocks,
            ranges: Vec::new(),
        };
        let mut out = Vec::new();
        write("end", &[strip], &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains(".data"));
    }
}
