//! JSON as it is printed: characters that a terminal would not show as themselves are escaped in strings, so that the text means the
//! same and is harmless.

use std::io::{self, Write};

use elf_core::is_hidden;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

mod lines;

pub(crate) use lines::LINES;
pub use lines::{JsonArguments, Lines};

/// Writes a value in one line, without a line feed at its end.
///
/// # Errors
/// If that fails.
pub fn write<T: Serialize + ?Sized>(out: &mut dyn Write, value: &T) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Escaped(CompactFormatter)))
}

/// Writes a value in lines, for people too.
///
/// # Errors
/// If that fails.
pub fn write_pretty<T: Serialize + ?Sized>(
    out: &mut dyn Write,
    value: &T,
) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Escaped(PrettyFormatter::new())))
}

struct Escaped<F>(F);

/// Passes calls on.
macro_rules! as_inside {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<W: Write + ?Sized>(&mut self, out: &mut W $(, $name: $type)*) -> io::Result<()> {
            self.0.$method(out $(, $name)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Escaped<F> {
    as_inside! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, hidden)) = rest.char_indices().find(|(_, one)| is_hidden(*one)) {
            out.write_all(rest.get(..at).unwrap_or_default().as_bytes())?;
            // all of them are in the basic plane
            write!(out, "\\u{:04x}", u32::from(hidden))?;
            rest = rest.get(at + hidden.len_utf8()..).unwrap_or_default();
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_mean_the_same() {
        let all: String = (0..=0xffff).filter_map(char::from_u32).collect();
        let mut out = Vec::new();
        write(&mut out, &serde_json::json!({ "x": [all, 1], "y": {} })).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.chars().any(is_hidden));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["x"][0], all);
        let mut out = Vec::new();
        write_pretty(&mut out, &serde_json::json!({ "x": ["\u{202e}"] })).unwrap();
        assert_eq!(out, b"{\n  \"x\": [\n    \"\\u202e\"\n  ]\n}");
    }
}
