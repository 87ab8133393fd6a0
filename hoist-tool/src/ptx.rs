//! What is in a PTX source: its version, its target, and where each function stands.

use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

/// A PTX source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PtxModule<'t> {
    /// `.version`: `8.4`.
    pub version: Option<&'t str>,
    /// `.target`, with what stands beside the architecture: `sm_90a`.
    pub target: Option<&'t str>,
    /// Functions that have a body.
    pub functions: Vec<PtxFunction<'t>>,
}

/// A function with its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxFunction<'t> {
    /// Its name, mangled.
    pub name: &'t str,
    /// Whether it is a kernel (`.entry`).
    pub is_kernel: bool,
    /// Where it stands in the source, from `.visible` to the last brace.
    pub place: Range<usize>,
}

/// A part of a source that is neither blank nor a comment.
enum Token<'t> {
    /// A name, a directive or a number.
    Word(&'t str),
    Sign(char),
}

/// Words of a source with their places; comments and texts are passed over.
struct Tokens<'t> {
    text: &'t str,
    chars: Peekable<CharIndices<'t>>,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = (usize, Token<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (at, one) = self.chars.next()?;
            match one {
                one if one.is_whitespace() => {}
                '/' if self.text.get(at..).is_some_and(|rest| rest.starts_with("//")) => {
                    self.pass(at, "\n", 0);
                }
                '/' if self.text.get(at..).is_some_and(|rest| rest.starts_with("/*")) => {
                    self.pass(at, "*/", 2);
                }
                '"' => self.pass(at, "\"", 1),
                one if is_word(one) => {
                    let mut end = at + one.len_utf8();
                    while let Some((next, _)) = self.chars.next_if(|(_, one)| is_word(*one)) {
                        end = next + 1;
                    }
                    return Some((at, Token::Word(self.text.get(at..end).unwrap_or_default())));
                }
                sign => return Some((at, Token::Sign(sign))),
            }
        }
    }
}

impl Tokens<'_> {
    /// Goes on behind the next `end`, `from` where what it ends begins, `size` of it being passed over.
    fn pass(&mut self, from: usize, end: &str, size: usize) {
        let inside = from + size.max(1);
        let found = self.text.get(inside..).and_then(|rest| rest.find(end));
        let end = found.map_or(self.text.len(), |found| inside + found + size);
        while self.chars.next_if(|(at, _)| *at < end).is_some() {}
    }
}

fn is_word(one: char) -> bool {
    one.is_ascii_alphanumeric() || matches!(one, '_' | '.' | '$' | '%' | '@')
}

/// What is in a source. Of a damaged one, what can be told.
#[must_use]
pub fn ptx_module(text: &str) -> PtxModule<'_> {
    let mut module = PtxModule::default();
    let mut tokens = Tokens { text, chars: text.char_indices().peekable() };
    // of the statement that is open: its place, whether of a kernel, the name
    let (mut start, mut is_kernel, mut name) = (None, None, None);
    let (mut braces, mut brackets) = (0usize, 0usize);
    while let Some((at, token)) = tokens.next() {
        match token {
            Token::Sign('{') => braces += 1,
            Token::Sign('}') => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    if let (Some(start), Some(is_kernel), Some(name)) = (start, is_kernel, name) {
                        let place = start..at + 1;
                        module.functions.push(PtxFunction { name, is_kernel, place });
                    }
                    (start, is_kernel, name) = (None, None, None);
                }
            }
            _ if braces > 0 => {}
            Token::Sign(';') => (start, is_kernel, name) = (None, None, None),
            Token::Sign('(') => brackets += 1,
            Token::Sign(')') => brackets = brackets.saturating_sub(1),
            Token::Sign(_) => {}
            Token::Word(word @ (".version" | ".target" | ".address_size" | ".file")) => {
                let rest = text.get(at + word.len()..).unwrap_or_default();
                let line = rest.lines().next().unwrap_or_default();
                let value = line.split("//").next().map(str::trim);
                match word {
                    ".version" => module.version = module.version.or(value),
                    ".target" => module.target = module.target.or(value),
                    _ => {}
                }
                tokens.pass(at, "\n", 0);
                (start, is_kernel, name) = (None, None, None);
            }
            Token::Word(word) => {
                start = start.or(Some(at));
                match word {
                    ".entry" => is_kernel = Some(true),
                    ".func" => is_kernel = Some(false),
                    word if is_kernel.is_some() && brackets == 0 && !word.starts_with('.') => {
                        name = name.or(Some(word));
                    }
                    _ => {}
                }
            }
        }
    }
    module
}

/// Bytes within which a source says what it is.
pub const HEAD: usize = 1 << 16;

impl PtxModule<'_> {
    /// The architecture of `.target`.
    #[must_use]
    pub fn sm(&self) -> Option<fatbin::Sm> {
        self.target?.split([',', ' ', '\t']).next()?.parse().ok()
    }
}

/// Whether a file is PTX as it stands.
#[must_use]
pub fn is_ptx(bytes: &[u8]) -> bool {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let is_version = |line: &[u8]| {
        let rest = line.trim_ascii().strip_prefix(b".version ");
        rest.is_some_and(|rest| rest.trim_ascii_start().first().is_some_and(u8::is_ascii_digit))
    };
    head.split(|byte| *byte == b'\n').any(is_version) && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::{is_ptx, ptx_module};

    const SOURCE: &str = "// .version 1.0\n.version 8.4 // of CUDA 12.4\n.target sm_90a, texmode_independent\n\
        .address_size 64\n.file 1 \"a;{b.cu\"\n.extern .func (.param .b32 r) vprintf (.param .b64 a);\n\
        .global .align 4 .b8 table[2] = {1, 2};\n\
        .func (.reg .b32 r) helper(.reg .b32 x)\n{ { ret; } }\n\
        /* .entry no { } */\n.visible .entry _Z3addPf(.param .u64 p)\n.maxntid 128\n{\n// }\nret;\n}\n";

    #[test]
    fn functions_and_directives() {
        let module = ptx_module(SOURCE);
        assert_eq!(module.version, Some("8.4"));
        assert_eq!(module.target, Some("sm_90a, texmode_independent"));
        let found: Vec<_> = module.functions.iter().map(|one| (one.name, one.is_kernel)).collect();
        assert_eq!(found, [("helper", false), ("_Z3addPf", true)]);
        let place = module.functions[1].place.clone();
        assert!(SOURCE[place.clone()].starts_with(".visible .entry"), "{place:?}");
        assert!(SOURCE[place.clone()].ends_with("ret;\n}"), "{place:?}");
        assert!(is_ptx(SOURCE.as_bytes()) && !is_ptx(b"\x7fELF"));
    }

    #[test]
    fn every_truncation_is_read() {
        for end in (0..SOURCE.len()).filter(|end| SOURCE.is_char_boundary(*end)) {
            assert!(ptx_module(&SOURCE[..end]).functions.len() <= 2, "{end}");
        }
    }
}
