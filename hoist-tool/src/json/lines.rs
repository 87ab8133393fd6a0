//! JSON Lines: what commands print as one object, an element a line.

use std::io::{self, Write};

/// `--json` and `--json-lines`.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct JsonArguments {
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
    /// Prints the same an element a line: `{"KEY": ELEMENT}` for each element of its lists, and for each other value.
    #[arg(long, conflicts_with = "json")]
    json_lines: bool,
}

/// The argument that asks for lines: [`line`](crate::line) looks for it.
pub(crate) const LINES: &str = "json_lines";

impl JsonArguments {
    /// Whether JSON is asked for. Who runs a command makes [lines](Lines) of it.
    #[must_use]
    pub const fn is_on(self) -> bool {
        self.json || self.json_lines
    }
}

/// Takes an object, as it comes, and writes a line for each element of its lists, and for each of its values that is no list.
#[derive(Debug)]
pub struct Lines<W> {
    out: W,
    /// Bytes of lines.
    text: Vec<u8>,
    /// The last key of the object, with its quotation marks.
    key: Vec<u8>,
    place: Place,
    /// Objects and lists around a byte, inside what is an element of a line.
    depth: usize,
    /// Whether a line is begun.
    is_open: bool,
    string: Option<Escape>,
}

/// Where in the object something stands that is no part of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before it, or behind it.
    Outside,
    /// Where a key may begin.
    Key,
    /// Behind a key.
    Value,
    /// Inside a list.
    List,
}

/// Whether the last byte of a string escapes the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    No,
    Yes,
}

impl<W: Write> Lines<W> {
    /// Lines for `out`.
    pub const fn new(out: W) -> Self {
        Self {
            out,
            text: Vec::new(),
            key: Vec::new(),
            place: Place::Outside,
            depth: 0,
            is_open: false,
            string: None,
        }
    }

    fn take(&mut self, byte: u8) {
        if let Some(escape) = self.string {
            self.push(byte);
            self.string = match (escape, byte) {
                (Escape::No, b'"') => None,
                (Escape::No, b'\\') => Some(Escape::Yes),
                _ => Some(Escape::No),
            };
            return;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => return,
            b'"' => self.string = Some(Escape::No),
            _ => {}
        }
        match (self.depth, self.place, byte) {
            (0, Place::Outside, b'{') => self.place = Place::Key,
            (0, Place::Key, b':') => self.place = Place::Value,
            (0, Place::Key, b'"') => {
                self.key.clear();
                self.push(byte);
            }
            (0, Place::Value, b'[') if !self.is_open => self.place = Place::List,
            (0, Place::List, b',') => self.end(),
            (0, Place::List, b']') => {
                self.end();
                self.place = Place::Value;
            }
            (0, Place::Value, b',') => {
                self.end();
                self.place = Place::Key;
            }
            (0, Place::Value | Place::Key, b'}') => {
                self.end();
                self.place = Place::Outside;
            }
            _ => {
                match byte {
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                self.push(byte);
            }
        }
    }

    /// Adds a byte to the key, or to a line that it begins.
    fn push(&mut self, byte: u8) {
        if self.place == Place::Key && self.depth == 0 {
            return self.key.push(byte);
        }
        if !self.is_open {
            self.text.push(b'{');
            self.text.extend_from_slice(&self.key);
            self.text.push(b':');
            self.is_open = true;
        }
        self.text.push(byte);
    }

    /// Ends a line, if one is begun.
    fn end(&mut self) {
        if core::mem::take(&mut self.is_open) {
            self.text.extend_from_slice(b"}\n");
        }
    }
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        json.iter().for_each(|byte| self.take(*byte));
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(json: &str, size: usize) -> String {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out);
        json.as_bytes().chunks(size).for_each(|part| lines.write_all(part).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn elements_have_lines() {
        let json = r#"{"files": [{"a": [1, {"b": "]},\"\\"}], "c": {}}, 2, "x", [], [[3]]],
            "none":[],"same":-5,"all":{"a":[1,2]},"text":"[1,2]","nothing":null}
"#;
        let expected = r#"{"files":{"a":[1,{"b":"]},\"\\"}],"c":{}}}
{"files":2}
{"files":"x"}
{"files":[]}
{"files":[[3]]}
{"same":-5}
{"all":{"a":[1,2]}}
{"text":"[1,2]"}
{"nothing":null}
"#;
        for size in [1, 2, 7, 1000] {
            assert_eq!(lines(json, size), expected);
        }
        assert_eq!(lines("{}\n{\"files\":[]}\n", 3), "");
    }

    #[test]
    fn what_is_cut_is_no_whole_line() {
        assert_eq!(lines(r#"{"a":[{"b":1},{"b":"#, 4), "{\"a\":{\"b\":1}}\n{\"a\":{\"b\":");
    }
}
