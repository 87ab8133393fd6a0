//! Where there are no files to write: commands print, or say so.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};

/// A file that is written: none.
#[derive(Debug)]
pub struct Output;

impl Output {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn new(path: &Path, _write: impl FnOnce(&mut File) -> Result<()>) -> Result<Self> {
        bail!("{}: no files are written here", path.display())
    }

    /// Nothing: there is none.
    ///
    /// # Errors
    /// None.
    pub const fn keep(self) -> Result<()> {
        Ok(())
    }
}

/// Writes text to what a command prints to.
///
/// # Errors
/// If it cannot be written, or goes to a file.
pub fn text(
    path: Option<&Path>,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match path {
        None => write(out),
        Some(path) => bail!("{}: no files are written here", path.display()),
    }
}
