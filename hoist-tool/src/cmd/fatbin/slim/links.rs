//! Names of one file (hard links), which stay names of one file.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;

use super::journal::Line;
use crate::mapped::Mapped;
use crate::{output, paint};

/// Files with several names of which some were met.
#[derive(Debug, Default)]
pub struct HardLinks(HashMap<(u64, u64), Met>);

#[derive(Debug)]
struct Met {
    /// What was done under the first name.
    line: Line,
    /// Names that still lead to what the file was.
    more: u64,
}

/// Which file it is, whatever its name, and the number of its names.
#[cfg(unix)]
fn identity(file: &Metadata) -> Option<((u64, u64), u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some(((file.dev(), file.ino()), file.nlink()))
}

#[cfg(not(unix))]
fn identity(_file: &Metadata) -> Option<((u64, u64), u64)> {
    None
}

impl HardLinks {
    /// What was done to a file under another name. It is that file if it has the digest, too: its number may be that of a new one.
    ///
    /// # Errors
    /// Those of `digest`.
    pub fn met(
        &self,
        file: &Metadata,
        digest: impl FnOnce() -> Result<String>,
    ) -> Result<Option<Line>> {
        let met = identity(file).and_then(|(key, _)| self.0.get(&key));
        let Some(Met { line, .. }) = met else { return Ok(None) };
        Ok((digest()? == line.original).then(|| line.clone()))
    }

    /// Says that a name of a file leads to another one now.
    pub fn add(&mut self, old: &Metadata, line: &Line) {
        let Some((key, names)) = identity(old) else { return };
        let new = || Met { line: line.clone(), more: names };
        let met = self.0.entry(key).or_insert_with(new);
        met.more = met.more.saturating_sub(1);
        // without a name it is gone, and its number is that of another file some day
        if met.more == 0 {
            self.0.remove(&key);
        }
    }

    /// Says which names were not met.
    pub fn tell(&self) {
        for met in self.0.values() {
            output::tell_links(&met.line.path, met.more);
        }
    }
}

/// Gives a file one more name, in place of the file of that name. Where the system does not let us, that one becomes a copy.
///
/// # Errors
/// If that fails, too.
pub fn name(file: &Path, name: &Path) -> Result<()> {
    let Err(error) = output::link(file, name) else { return Ok(()) };
    let shown = name.display();
    paint::warning(&format!("{shown}: is a file of its own from now on: {error}"));
    let content = Mapped::open(file)?;
    let copy = output::Output::new(name, |to| Ok(to.write_all(content.bytes())?))?;
    copy.like(file)?.keep_name()
}
