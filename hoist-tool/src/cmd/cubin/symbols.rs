//! Functions and symbols of a cubin by name.

use anyhow::{Result, bail};
use nvinfo::{Cubin, Function};

use crate::kernel_filter::KernelFilter;
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
    Ok(filter.choose(cubin.functions().filter(is_meant).collect())?)
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
