//! Errors with the names of objects, sections and symbols: as long as the objects are there.

use elf_core::names::STT_TLS;
use elf_core::{File, Name};
use elf_layout::{ErrorKind, undefined_symbols};

use crate::Host;
use crate::error::{Error, UndefinedSymbol};
use crate::symbols::LoadSymbols;

/// Undefined symbols that are told together.
const MOST: usize = 100;

/// The error with the names that it is about.
pub(crate) fn explain(error: Error, files: &[File<'_>], links: &mut LoadSymbols<'_>) -> Error {
    match error {
        Error::Layout(error) if error.kind.is_of_image() => Error::Layout(error),
        Error::Layout(error) => match error.kind {
            ErrorKind::Undefined { symbol, .. } => {
                undefined(error, name(files, error.object, symbol), files, links)
            }
            _ => Error::Object { text: error.explain(files).to_string().into(), error },
        },
        Error::NearThreadLocal { size, cause, error, .. } => {
            let text = error.explain(files).to_string().into();
            Error::NearThreadLocal { size, cause, error, text }
        }
        Error::ThreadLocal { size, cause, .. } => {
            Error::ThreadLocal { size, cause, text: largest_variable(files).into() }
        }
        mut error => {
            if let Some((object, section, name)) = error.section_mut() {
                *name = section_name(files, object, section).into();
            }
            error
        }
    }
}

/// All symbols that are undefined, in one error.
fn undefined(
    error: elf_layout::Error,
    name: String,
    files: &[File<'_>],
    links: &mut LoadSymbols<'_>,
) -> Error {
    let mut is_missing = |name: Name<'_>| links.find(name).is_none();
    let (mut all, more) = undefined_symbols::<Host>(files, MOST, &mut is_missing);
    if all.is_empty() {
        all.push(error);
    }
    let texts = all.iter().map(|error| error.explain(files).to_string());
    let mut text = texts.collect::<Vec<_>>().join("; ");
    if more > 0 {
        text += &format!("; and {more} more symbols are undefined");
    }
    Error::Undefined(Box::new(UndefinedSymbol { text, name, error, all, more }))
}

/// Which object has the most thread-local data, and their largest variable: what to call them, with a colon.
fn largest_variable(files: &[File<'_>]) -> String {
    let variables = files.iter().enumerate().flat_map(|(object, file)| {
        let table = file.symbol_table().ok().flatten();
        table.into_iter().flat_map(move |table| {
            let variables = table.symbols().iter().filter(|symbol| symbol.r#type() == STT_TLS);
            let named = variables.map(|symbol| (symbol.size, table.name_of(&symbol)));
            named.map(|(size, name)| (size, object, name)).collect::<Vec<_>>()
        })
    });
    match variables.max_by_key(|(size, ..)| *size) {
        Some((size, object, Ok(name))) => format!("object {object}: {name} of {size} bytes: "),
        _ => String::new(),
    }
}

fn section_name(files: &[File<'_>], object: usize, section: u32) -> String {
    let name = || {
        let file = files.get(object)?;
        Some(file.section_name(&file.section(section).ok()?).ok()?.to_string())
    };
    name().unwrap_or_default()
}

fn name(files: &[File<'_>], object: usize, symbol: u32) -> String {
    let name = || {
        let table = files.get(object)?.symbol_table().ok()??;
        Some(table.name_of(&table.get(symbol).ok()?).ok()?.to_string())
    };
    name().unwrap_or_default()
}
