//! The text that nvdisasm prints, read.

use std::collections::BTreeMap;

use serde::Serialize;

/// A function's code.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Code {
    /// Its name, mangled.
    pub name: String,
    /// Its instructions in order.
    pub instructions: Vec<Instruction>,
}

/// An instruction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Instruction {
    /// Offset in the function's section, in bytes.
    pub offset: u64,
    /// Labels that stand at it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// As nvdisasm writes it.
    pub text: String,
    /// Live registers by kind (`GPR`, `UGPR`, `PRED`), if that was asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub live: BTreeMap<String, u32>,
    /// Where it comes from, where that begins with this instruction and was asked for: the innermost line first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<SourceLine>,
}

/// A line of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceLine {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl Instruction {
    /// The instruction without its predicate.
    #[must_use]
    pub fn operation(&self) -> &str {
        match self.text.strip_prefix('@').and_then(|text| text.split_once(char::is_whitespace)) {
            Some((_, operation)) => operation.trim_start(),
            None => &self.text,
        }
    }

    /// Whether it is only for threads of which a predicate holds.
    #[must_use]
    pub fn is_predicated(&self) -> bool {
        self.text.starts_with('@') && !self.text.starts_with("@PT ")
    }

    /// The name of the operation without what is behind a dot.
    #[must_use]
    pub fn opcode(&self) -> &str {
        let end = |one: char| !one.is_ascii_alphanumeric() && one != '_';
        self.operation().split(end).next().unwrap_or_default()
    }
}

/// What nvdisasm prints for functions, in its order.
#[must_use]
pub fn parse(text: &str) -> Vec<Code> {
    let mut all: Vec<Code> = Vec::new();
    let mut labels = Vec::new();
    let mut source = Vec::new();
    let mut kinds: Vec<String> = Vec::new();
    for line in text.lines() {
        let (line, columns) = match line.find("// |").or_else(|| line.find("// +")) {
            Some(at) => line.split_at(at),
            None => (line, ""),
        };
        let cells: Vec<_> = columns.split('|').skip(1).map(str::trim).collect();
        if cells.iter().any(|cell| cell.starts_with(|one: char| one.is_ascii_uppercase())) {
            kinds = cells.iter().map(|cell| cell.trim_start_matches("# ").to_owned()).collect();
        }
        let line = line.trim();
        if let Some(name) = line.strip_prefix("//---").and_then(section_name) {
            (labels, source) = (Vec::new(), Vec::new());
            let code = name
                .strip_prefix(".text.")
                .map(|name| Code { name: name.to_owned(), ..Code::default() });
            // what is no code has no instructions
            all.push(code.unwrap_or_default());
        } else if let Some(found) = line.strip_prefix("//##").and_then(source_line) {
            source.push(found);
        } else if let Some((offset, text)) = instruction(line) {
            let live = kinds.iter().zip(&cells);
            let live = live.filter_map(|(kind, cell)| Some((kind.clone(), cell.parse().ok()?)));
            let (labels, source) = (std::mem::take(&mut labels), std::mem::take(&mut source));
            if let Some(code) = all.last_mut() {
                code.instructions.push(Instruction {
                    offset,
                    labels,
                    text: text.to_owned(),
                    live: live.collect(),
                    source,
                });
            }
        } else if let Some(label) = line.strip_suffix(':').filter(|label| label.starts_with(".L")) {
            labels.push(label.to_owned());
        }
    }
    all.retain(|code| !code.name.is_empty());
    all
}

impl Code {
    /// Leaves out the padding behind the last instruction.
    pub(super) fn trim(&mut self) {
        let end = self.instructions.iter().rposition(|one| one.opcode() != "NOP");
        self.instructions.truncate(end.map_or(0, |end| end + 1));
    }
}

/// The name in a heading: `----- .text.k -----`.
fn section_name(line: &str) -> Option<&str> {
    line.trim_matches('-').split_whitespace().next()
}

/// `File "a.cu", line 9 inlined at "b.cu", line 3`: the first of them.
fn source_line(line: &str) -> Option<SourceLine> {
    let (_, rest) = line.split_once("File \"")?;
    let (file, rest) = rest.split_once('"')?;
    let (_, rest) = rest.split_once("line ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(SourceLine { file: file.to_owned(), line: digits.parse().ok()? })
}

/// `/*00d0*/ EXIT ;`.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (offset, text) = line.strip_prefix("/*")?.split_once("*/")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let text = text.split("/*").next().unwrap_or_default().trim();
    Some((offset, text.trim_end_matches(';').trim_end()))
}
