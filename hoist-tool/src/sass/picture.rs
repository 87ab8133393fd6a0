//! Control flow graphs as pictures.

use std::fmt::Write as _;

use svg::Document;
use svg::node::element::{Definitions, Marker, Path, Rectangle, Text, Title};

use super::blocks::Block;
use super::code::{Code, Instruction};

/// The instructions of a block.
fn of<'c>(code: &'c Code, block: &Block) -> &'c [Instruction] {
    code.instructions.get(block.start..block.end).unwrap_or_default()
}

/// For graphviz.
#[must_use]
pub fn dot(code: &Code, blocks: &[Block]) -> String {
    let mut text =
        String::from("digraph {\n  node [shape=box, fontname=monospace, fontsize=10];\n");
    let _ = writeln!(text, "  label=\"{}\";", quoted(&code.name));
    for (index, block) in blocks.iter().enumerate() {
        let _ = write!(text, "  b{index} [label=\"");
        for one in of(code, block) {
            let _ = write!(text, "{:04x}  {}\\l", one.offset, quoted(&one.text));
        }
        text.push_str("\"];\n");
        for next in &block.next {
            let _ = writeln!(text, "  b{index} -> b{next};");
        }
    }
    text.push_str("}\n");
    text
}

/// For a terminal: blocks in the order of the code, arrows as a list and as a column of marks.
#[must_use]
pub fn outline(code: &Code, blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut sources = vec![Vec::new(); blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        for next in &block.next {
            sources.get_mut(*next).into_iter().for_each(|from| from.push(number.to_string()));
        }
    }
    for ((index, block), from) in blocks.iter().enumerate().zip(&sources) {
        let next: Vec<_> = block.next.iter().map(ToString::to_string).collect();
        let is_loop = block.next.iter().any(|next| *next <= index);
        let rows = of(code, block);
        let start = rows.first().map_or(0, |one| one.offset);
        let _ = write!(text, "\u{250c} block {index} at {start:#x}, {} instructions", rows.len());
        if !from.is_empty() {
            let _ = write!(text, ", from {}", from.join(", "));
        }
        let live = rows.iter().filter_map(|one| one.live.get("GPR")).max();
        if let Some(live) = live {
            let _ = write!(text, ", {live} live");
        }
        text.push('\n');
        for one in rows {
            let _ = writeln!(text, "\u{2502} {:04x}  {}", one.offset, one.text);
        }
        let back = if is_loop { " (back)" } else { "" };
        let end = match next.as_slice() {
            [] => "end".to_owned(),
            next => format!("-> {}{back}", next.join(", ")),
        };
        let _ = writeln!(text, "\u{2514} {end}");
    }
    text
}

const LINE: usize = 14;
const GAP: usize = 24;
const LEFT: usize = 80;

/// For a browser: blocks from top to bottom, jumps forward on the right, back on the left.
#[must_use]
pub fn svg(functions: &[(Code, Vec<Block>)]) -> String {
    let mut pictures: Vec<_> = functions.iter().map(|(code, blocks)| graph(code, blocks)).collect();
    if pictures.len() == 1
        && let Some(Picture { document, .. }) = pictures.pop()
    {
        return format!("{document}\n");
    }
    let width = pictures.iter().map(|one| one.width).max().unwrap_or(0);
    let (mut all, mut top) = (Document::new().set("font-family", "monospace"), 0);
    for ((code, _), Picture { document, height, .. }) in functions.iter().zip(pictures) {
        let name = Text::new(code.name.as_str()).set("font-size", 13);
        top += HEADING;
        all = all.add(name.set("x", LEFT).set("y", top)).add(document.set("y", top));
        top += height;
    }
    format!("{}\n", all.set("width", width).set("height", top))
}

/// Room for the name above a graph, if there are several.
const HEADING: usize = 20;

/// A graph with its size.
struct Picture {
    document: Document,
    width: usize,
    height: usize,
}

fn graph(code: &Code, blocks: &[Block]) -> Picture {
    let columns = code.instructions.iter().map(|one| one.text.len()).max().unwrap_or(0) + 8;
    let width = columns * 7 + 12;
    let mut tops = Vec::new();
    let mut end = GAP;
    for block in blocks {
        let height = of(code, block).len() * LINE + 10;
        tops.push((end, height));
        end += height + GAP;
    }
    let head = Marker::new().set("id", "a").set("markerWidth", 8).set("markerHeight", 8);
    let head = head.set("refX", 7).set("refY", 4).set("orient", "auto");
    let head = head.add(Path::new().set("d", "M0,0 L8,4 L0,8 z"));
    let mut document = Document::new()
        .set("width", LEFT * 2 + width)
        .set("height", end)
        .set("font-family", "monospace")
        .set("font-size", 11)
        .add(Title::new(code.name.as_str()))
        .add(Definitions::new().add(head));
    for (block, (top, height)) in blocks.iter().zip(&tops) {
        let frame = Rectangle::new().set("x", LEFT).set("y", *top);
        let frame = frame.set("width", width).set("height", *height);
        document = document.add(frame.set("fill", "#f8f8f8").set("stroke", "#444"));
        for (line, one) in of(code, block).iter().enumerate() {
            let words = Text::new(format!("{:04x}  {}", one.offset, one.text));
            document = document.add(words.set("x", LEFT + 6).set("y", top + (line + 1) * LINE));
        }
    }
    for (index, (block, (top, height))) in blocks.iter().zip(&tops).enumerate() {
        for next in &block.next {
            let Some((to, _)) = tops.get(*next) else { continue };
            let from = top + height;
            let path = if *next == index + 1 {
                let x = LEFT + width / 2;
                format!("M{x},{from} L{x},{to}")
            } else {
                let far = 16 + index.abs_diff(*next).min(8) * 7;
                let (x, side) = if *next > index {
                    (LEFT + width, LEFT + width + far)
                } else {
                    (LEFT, LEFT.saturating_sub(far))
                };
                let (y, into) = (from - 6, to + 6);
                format!("M{x},{y} C{side},{y} {side},{into} {x},{into}")
            };
            let color = if *next > index { "#06c" } else { "#c30" };
            let path = Path::new().set("d", path).set("fill", "none").set("stroke", color);
            document = document.add(path.set("marker-end", "url(#a)"));
        }
    }
    Picture { document, width: LEFT * 2 + width, height: end }
}

/// Text within quotes of graphviz.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
