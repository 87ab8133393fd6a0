//! Host files with other device code in them, that still work: regions change in place where they fit, else move to where nothing
//! else has to move.

use anyhow::{Result, bail, ensure};
use elf_core::archive::Archive;
use elf_core::names::{ET_DYN, ET_EXEC, ET_REL};
use fatbin::Region;

mod archive;
mod blob;
mod code;
mod edits;
mod elf;
mod grown;
mod linked;
mod object;
mod pointers;
mod trimmed;

pub use blob::Blob;
pub use edits::Edits;

/// A region that becomes another.
#[derive(Clone, Debug)]
pub struct Change {
    /// Offset of the region in the file.
    pub at: u64,
    /// Its size in bytes.
    pub size: u64,
    /// What it becomes.
    pub new: Blob,
}

impl Change {
    /// Offset of what follows the region.
    const fn end(&self) -> u64 {
        self.at.saturating_add(self.size)
    }

    /// Size of the new region in bytes.
    #[must_use]
    pub fn new_size(&self) -> u64 {
        self.new.len() as u64
    }

    /// The same change in a part of the file that starts at `start`.
    fn within(&self, start: u64) -> Self {
        Self { at: self.at.saturating_sub(start), ..self.clone() }
    }
}

/// What is to be done to a file, and what there is to say about it.
#[derive(Debug, Default)]
pub struct Plan {
    /// The changed bytes.
    pub edits: Edits,
    /// Regions that change where they are.
    pub in_place: usize,
    /// Regions that move into a new segment.
    pub moved: usize,
    /// Bytes that are zero from now on, and take no room on disk where the file system has holes.
    pub holes: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// How to make `changes`, which are of different regions, to a file.
///
/// # Errors
/// If the file is of a kind that cannot be changed, or a change would break it.
pub fn plan(bytes: &[u8], changes: &[Change]) -> Result<Plan> {
    for change in changes {
        ensure!(Region::parse(&*change.new).is_ok(), "what a region becomes is no region");
        change.new.rest();
    }
    if let Ok(archive) = Archive::parse(bytes) {
        return archive::plan(bytes, archive, changes);
    }
    if bytes.starts_with(b"\x7fELF") {
        return elf(bytes, changes);
    }
    ensure!(!bytes.starts_with(b"MZ"), "is a file of Windows, which cannot be changed here");
    ensure!(
        bytes.starts_with(&fatbin::raw::REGION_MAGIC.to_le_bytes()),
        "is neither an ELF file, nor an archive, nor a fatbin: what else refers into it is not known"
    );
    let mut plan = Plan { in_place: changes.len(), ..Plan::default() };
    for change in changes {
        plan.edits.replace(change.at..change.end(), change.new.clone())?;
    }
    Ok(plan)
}

/// How to make changes to an ELF file.
fn elf(bytes: &[u8], changes: &[Change]) -> Result<Plan> {
    let elf = elf::Elf::parse(bytes)?;
    match elf.file.header().r#type {
        ET_REL => object::plan(&elf, changes),
        ET_EXEC | ET_DYN => linked::plan(&elf, changes),
        other => {
            bail!("is neither an object, nor a library, nor an executable, but of type {other}")
        }
    }
}
