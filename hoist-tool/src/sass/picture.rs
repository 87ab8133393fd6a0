//! Control flow graphs as pictures.

use std::fmt::Write as _;

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
    let _ = writeln!(text, "  label=\"{}\";", escaped(&code.name, DOT));
    for (index, block) in blocks.iter().enumerate() {
        let _ = write!(text, "  b{index} [label=\"");
        for one in of(code, block) {
            let _ = write!(text, "{:04x}  {}\\l", one.offset, escaped(&one.text, DOT));
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
    for (index, block) in blocks.iter().enumerate() {
        let from = blocks.iter().enumerate().filter(|(_, other)| other.next.contains(&index));
        let from: Vec<_> = from.map(|(number, _)| number.to_string()).collect();
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
pub fn svg(code: &Code, blocks: &[Block]) -> String {
    let columns = code.instructions.iter().map(|one| one.text.len()).max().unwrap_or(0) + 8;
    let width = columns * 7 + 12;
    let mut tops = Vec::new();
    let mut end = GAP;
    for block in blocks {
        let height = of(code, block).len() * LINE + 10;
        tops.push((end, height));
        end += height + GAP;
    }
    let whole = LEFT * 2 + width;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"{end}\" font-family=\"monospace\" font-size=\"11\">\n\
         <title>{}</title>\n<defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\"><path \
         d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>\n",
        escaped(&code.name, SVG)
    );
    for (block, (top, height)) in blocks.iter().zip(&tops) {
        let _ = writeln!(
            text,
            "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"#f8f8f8\" stroke=\"#444\"/>"
        );
        for (line, one) in of(code, block).iter().enumerate() {
            let (x, y) = (LEFT + 6, top + (line + 1) * LINE);
            let words = escaped(&one.text, SVG);
            let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\">{:04x}  {words}</text>", one.offset);
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
            let _ = writeln!(
                text,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" marker-end=\"url(#a)\"/>"
            );
        }
    }
    text.push_str("</svg>\n");
    text
}

const DOT: &[(char, &str)] = &[('\\', "\\\\"), ('"', "\\\"")];
const SVG: &[(char, &str)] = &[('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")];

fn escaped(text: &str, table: &[(char, &str)]) -> String {
    let mut out = String::new();
    for one in text.chars() {
        match table.iter().find(|(special, _)| *special == one) {
            Some((_, written)) => out.push_str(written),
            None => out.push(one),
        }
    }
    out
}
