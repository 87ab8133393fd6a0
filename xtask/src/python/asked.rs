//! What the library in a wheel asks of others by name, and nobody has: maturin looks at versions of symbols, and what the linker found
//! nowhere has none.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use elf_core::File;
use elf_core::names::{SHT_GNU_versym, STB_WEAK};

/// Refuses the library in a folder of an unpacked wheel if it asks for a name that glibc, as it was when the wheel's machines had it, lacks.
///
/// # Errors
/// If it asks for such a name, or cannot be read.
pub(super) fn check(folder: &Path) -> Result<()> {
    let mut libraries = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new("so")) {
            continue;
        }
        libraries += 1;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let names = without_version(&bytes).with_context(|| path.display().to_string())?;
        if !names.is_empty() {
            let names: Vec<_> = names.into_iter().collect();
            bail!("{} asks for what its C library lacks: {}", path.display(), names.join(", "));
        }
    }
    ensure!(libraries == 1, "{libraries} libraries in {}", folder.display());
    Ok(())
}

/// What is asked for by name alone: undefined symbols that are not weak, and not the interpreter's.
fn without_version(library: &[u8]) -> Result<BTreeSet<String>> {
    let file = File::parse(library)?;
    let section = file.sections().iter().find(|section| section.r#type == SHT_GNU_versym);
    let versions = file.section_data(&section.context("no versions of symbols")?)?;
    let (versions, _) = versions.as_chunks::<2>();
    let table = file.dynamic_symbol_table()?.context("no dynamic symbols")?;
    let mut names = BTreeSet::new();
    for (symbol, version) in table.symbols().iter().zip(versions).skip(1) {
        // 0 and 1 stand for no version
        let has_version = u16::from_le_bytes(*version) > 1;
        if has_version || !symbol.is_undefined() || symbol.binding() == STB_WEAK {
            continue;
        }
        let name = table.name_of(&symbol)?.to_string();
        if !name.starts_with("Py") && !name.starts_with("_Py") {
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
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/x86_64");
        let library = fs::read(fixtures.join("libshared.so"))?;
        let names = without_version(&library)?;
        assert!(names.contains("imported"), "{names:?}");
        Ok(())
    }
}
