//! Errors of a layout in words: file, section, offset, type, symbol, value and limit by name, in one line.

use core::fmt::{self, Display};

use archs::with_arch;
use elf_core::Name;
pub use elf_layout::explain::{section_name, symbol_name as name_in};
use elf_layout::{Error, ErrorKind, undefined_symbols};

use crate::objects::Objects;
use crate::printable::{Printable, Readable};

/// Several errors, each with a line of its own: what is wrong in several places.
#[derive(Debug)]
pub struct Lines(pub Vec<String>);

impl Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl core::error::Error for Lines {}

/// An error of a layout together with the objects that it speaks of.
#[derive(Clone, Copy)]
pub struct Explained<'e, 'a> {
    error: Error,
    objects: &'e Objects<'a>,
}

/// Undefined symbols that are told together.
const MOST: usize = 100;

impl<'a> Objects<'a> {
    /// Says what is wrong, by name.
    #[must_use]
    pub fn explain(&self, error: Error) -> anyhow::Error {
        anyhow::Error::msg(Explained { error, objects: self }.to_string())
    }

    /// The same; of undefined symbols all, each with its first user, that `is_known` does not know either.
    #[must_use]
    pub fn explain_all(&self, error: Error, is_known: &dyn Fn(Name<'_>) -> bool) -> anyhow::Error {
        if !matches!(error.kind, ErrorKind::Undefined { .. }) {
            return self.explain(error);
        }
        let mut is_missing = |name: Name<'_>| !is_known(name);
        let (all, more) = with_arch!(self.machine(), A => {
            undefined_symbols::<A>(self.files(), MOST, &mut is_missing)
        });
        if all.is_empty() { self.explain(error) } else { self.lines(&all, more) }
    }

    /// Several errors, and how many more there are.
    pub(crate) fn lines(&self, all: &[Error], more: usize) -> anyhow::Error {
        let line = |error: &Error| Explained { error: *error, objects: self }.to_string();
        let mut lines: Vec<String> = all.iter().map(line).collect();
        if more > 0 {
            lines.push(format!("{more} more symbols are undefined"));
        }
        anyhow::Error::new(Lines(lines))
    }
}

impl Display for Explained<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label =
            |object, f: &mut fmt::Formatter<'_>| Printable::from(self.objects.label(object)).fmt(f);
        let explained = self.error.explain(self.objects.files()).with_labels(&label);
        explained.with_names(|name, f| Readable(name).fmt(f)).fmt(f)
    }
}
