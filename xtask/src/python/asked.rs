//! What the library in a wheel asks of others by name, and nobody has: maturin looks at versions of symbols, and what the linker found
//! nowhere has none.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use elf_core::names::{SHT_GNU_versym, STB_WEAK};
use elf_core::{File, SymbolTable};

/// Refuses the library in a folder of an unpacked wheel if it asks for a name that its C library lacks. `musl` is the file of that
/// library; glibc's names have versions, and so no file is needed.
///
/// # Errors
/// If it asks for such a name, or cannot be read.
pub(super) fn check(folder: &Path, musl: Option<&Path>) -> Result<()> {
    let mut libraries = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new("so")) {
            continue;
        }
        libraries += 1;
        let read =
            |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        let names = match musl {
            None => without_version(&read(&path)?),
            Some(musl) => without_definition(&read(&path)?, &read(musl)?),
        };
        let names = names.with_context(|| path.display().to_string())?;
        if !names.is_empty() {
            bail!("{} asks for what its C library lacks: {}", path.display(), list(&names));
        }
    }
    ensure!(libraries == 1, "{libraries} libraries in {}", folder.display());
    Ok(())
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// What is asked for by name alone. Only the interpreter's symbols are.
fn without_version(library: &[u8]) -> Result<BTreeSet<String>> {
    let file = File::parse(library)?;
    let section = file.sections().iter().find(|section| section.r#type == SHT_GNU_versym);
    let versions = file.section_data(&section.context("no versions of symbols")?)?;
    let (versions, _) = versions.as_chunks::<2>();
    let mut versions = versions.iter().map(|version| u16::from_le_bytes(*version));
    // 0 and 1 stand for no version
    asked(&table(&file)?, |_| versions.next().is_none_or(|version| version < 2))
}

/// What is asked for and not defined by another library.
fn without_definition(library: &[u8], other: &[u8]) -> Result<BTreeSet<String>> {
    let other = File::parse(other)?;
    let other = table(&other)?;
    let mut defined = BTreeSet::new();
    for symbol in other.symbols().iter().filter(|symbol| !symbol.is_undefined()) {
        defined.insert(other.name_of(&symbol)?.to_string());
    }
    let file = File::parse(library)?;
    asked(&table(&file)?, |name| !defined.contains(name))
}

fn table<'a>(file: &File<'a>) -> Result<SymbolTable<'a>> {
    file.dynamic_symbol_table()?.context("no dynamic symbols")
}

/// Undefined symbols that are not weak, not the interpreter's, and `lacks`; it is asked for each symbol, in order.
fn asked(table: &SymbolTable<'_>, mut lacks: impl FnMut(&str) -> bool) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for symbol in table.symbols().iter() {
        let name = table.name_of(&symbol)?.to_string();
        let is_asked = symbol.is_undefined() && symbol.binding() != STB_WEAK && !name.is_empty();
        if lacks(&name) && is_asked && !name.starts_with("Py") && !name.starts_with("_Py") {
            names.insert(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_has_are_found() -> Result<()> {
        let own = fs::read(std::env::current_exe()?)?;
        assert_eq!(without_version(&own)?, BTreeSet::new(), "a program that is linked");
        // of libraries that are not there, all is asked for
        let file = File::parse(&own)?;
        let all = asked(&table(&file)?, |_| true)?;
        assert!(all.contains("malloc") && !all.contains("main"), "{all:?}");
        assert!(without_definition(&own, &own)?.contains("malloc"));
        Ok(())
    }
}
