//! Functions and symbols of a cubin by name.

use anyhow::{Result, bail};
use nvinfo::{Cubin, Function};

use crate::pattern::Pattern;
use crate::printable::Printable;

/// The functions that a pattern means.
pub(super) fn functions<'a, 'p>(
    cubin: &Cubin<'a>,
    pattern: &'p Pattern,
) -> impl Iterator<Item = Function<'a>> + use<'a, 'p> {
    let functions = cubin.functions();
    functions.filter(move |function| pattern.matches(&function.name().to_string()))
}

/// The function of this name.
pub(super) fn function<'a>(cubin: &Cubin<'a>, name: &str) -> Result<Function<'a>> {
    let mut functions = cubin.functions();
    match functions.find(|function| function.name() == name) {
        Some(function) => Ok(function),
        None => bail!("no function {}", Printable::from(name)),
    }
}

/// The name of symbol `index`: of its section if it has none, its number if that has none either.
pub(super) fn symbol_name(cubin: &Cubin<'_>, index: u32) -> String {
    let name = cubin.symbols().and_then(|table| {
        let symbol = table.get(index).ok()?;
        crate::explain::name_in(cubin.file(), table, index, &symbol).ok()
    });
    match name {
        Some(name) if !name.is_empty() => Printable::from(name).to_string(),
        _ => format!("symbol {index}"),
    }
}
