//! Files that a command takes as they are: no folder, no archive of files, not standard input.

use std::path::Path;

use anyhow::{Result, bail};

use crate::form::Form;
use crate::mapped::Mapped;

/// Opens such a file.
///
/// # Errors
/// If it is none, with the command that looks into it; if it cannot be read.
pub fn open(path: &Path) -> Result<Mapped> {
    check(path)?;
    Mapped::open(path)
}

/// Whether it may be such a file.
///
/// # Errors
/// If it is none, with the command that looks into it.
pub fn check(path: &Path) -> Result<()> {
    let label = path.display();
    if path.as_os_str() == "-" && !path.exists() {
        bail!("{label}: standard input is not taken here: name a file");
    }
    if path.is_dir() {
        bail!("{label}: a folder: `hoist fatbin extract` takes device code out of it");
    }
    if Form::of_file(path).is_some_and(|form| form != Form::Plain) {
        bail!(
            "{label}: an archive of files: `hoist fatbin list` looks into it, `hoist fatbin extract` takes device code out of it, \
             `hoist wheel slim` changes a wheel"
        );
    }
    Ok(())
}
