//! Functions and symbols of a cubin by name.

use std::cmp::Reverse;

use anyhow::{Result, bail};
use nvinfo::{Cubin, Function};

use crate::demangle::demangled;
use crate::kernel_filter::{KernelFilter, Sort};
use crate::pattern::Pattern;
use crate::printable::Printable;

/// The functions that are meant, in the order that is asked for: kernels if no pattern says which.
///
/// # Errors
/// If their attributes are damaged, where these decide the order.
pub(super) fn meant<'a>(
    cubin: &Cubin<'a>,
    filter: &KernelFilter,
    wanted: &[Pattern],
) -> Result<Vec<Function<'a>>> {
    let is_meant = |function: &Function<'_>| match wanted {
        [] => function.is_kernel(),
        _ => Pattern::any(wanted, &function.name().to_string()),
    };
    let mut found: Vec<_> = cubin.functions().filter(is_meant).collect();
    match filter.sort {
        None => {}
        Some(Sort::Size) => found.sort_by_key(|one| Reverse(one.section_header().size)),
        Some(Sort::Name) => found.sort_by_key(|one| one.name().to_string()),
        Some(Sort::Registers) => {
            let registers = |one: Function<'a>| anyhow::Ok((one.resources()?.registers, one));
            let mut counted: Vec<_> = found.into_iter().map(registers).collect::<Result<_>>()?;
            counted.sort_by_key(|(count, _)| Reverse(*count));
            found = counted.into_iter().map(|(_, one)| one).collect();
        }
    }
    found.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

/// The name of a function for people.
pub(super) fn readable(function: &Function<'_>, raw: bool) -> String {
    let name = function.name().to_string();
    demangled(&name).filter(|_| !raw).unwrap_or(name)
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
