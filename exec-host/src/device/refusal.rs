//! Why an image was not loaded, with names: who has bytes and no file cannot look symbol 4 up.

use core::fmt;
use std::string::String;

use elf_core::File;
use elf_layout::ErrorKind;

use crate::Error;

/// An error of loading an image, and what its numbers are called there.
#[derive(Debug)]
pub(super) struct Refusal {
    error: Error,
    section: Option<String>,
    symbol: Option<String>,
}

impl Refusal {
    /// Finds the names in the image.
    pub(super) fn new(error: Error, image: &[u8]) -> Self {
        let (mut section, mut symbol) = (None, None);
        if let Error::Layout(error) = &error
            && let Ok(file) = File::parse(image)
        {
            section = name_of_section(&file, error.section);
            symbol = symbol_in(&error.kind).and_then(|index| name_of_symbol(&file, index));
        }
        Self { error, section, symbol }
    }
}

/// The symbol that an error is about.
const fn symbol_in(kind: &ErrorKind) -> Option<u32> {
    match kind {
        ErrorKind::Apply(error) => Some(error.symbol),
        ErrorKind::Undefined { symbol, .. }
        | ErrorKind::NotLoaded { symbol, .. }
        | ErrorKind::Indirect { symbol, .. }
        | ErrorKind::Discarded { symbol, .. }
        | ErrorKind::Duplicate { symbol, .. } => Some(*symbol),
        _ => None,
    }
}

fn name_of_section(file: &File<'_>, section: u32) -> Option<String> {
    let header = file.section(section).ok().filter(|_| section != 0)?;
    Some(file.section_name(&header).ok()?.to_string()).filter(|name| !name.is_empty())
}

fn name_of_symbol(file: &File<'_>, symbol: u32) -> Option<String> {
    let table = file.symbol_table().ok()??;
    Some(table.name_of(&table.get(symbol).ok()?).ok()?.to_string()).filter(|name| !name.is_empty())
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, section, symbol } = self;
        error.fmt(f)?;
        match (section, symbol) {
            (Some(section), Some(symbol)) => write!(f, " (section {section}, symbol {symbol})"),
            (Some(section), None) => write!(f, " (section {section})"),
            (None, Some(symbol)) => write!(f, " (symbol {symbol})"),
            (None, None) => Ok(()),
        }
    }
}

impl core::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
