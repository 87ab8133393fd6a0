//! Files that a program lends by name, and gives parts of when it is asked: those that a person chose in a browser.
//!
//! Commands see such a file as one slice of its size. What no command looks at is not read: code and debug information of large
//! ELF files, which are most of many. It stands as zeros, in memory that nobody has touched.

use core::fmt::Debug;
use core::ops::Range;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};

use pages::Pages;

mod pages;
mod parts;

/// Who has a file.
pub trait Lender: Debug + Send + Sync {
    /// Its size.
    fn size(&self) -> u64;

    /// Fills `into` with the bytes from `at` on.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;
}

/// A file, as much of it as is looked at.
#[derive(Debug)]
pub struct Slices {
    bytes: Pages,
    /// Bytes that were read.
    read: u64,
}

#[derive(Debug)]
struct File {
    lender: Arc<dyn Lender>,
    /// Read when it is first opened.
    slices: Option<Arc<Slices>>,
}

static FILES: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// Files up to this size are read as a whole.
const WHOLE: u64 = 16 << 20;
/// The most that is asked for at once.
const STEP: usize = 8 << 20;

/// Lends a file under a name: commands that open it get this one. It takes the place of one that was lent under it before.
pub fn lend(path: PathBuf, lender: Arc<dyn Lender>) {
    files().insert(path, File { lender, slices: None });
}

/// Bytes of lent files that were read.
#[must_use]
pub fn bytes_read() -> u64 {
    files().values().filter_map(|file| Some(file.slices.as_ref()?.read)).sum()
}

/// The file that is lent under this name, if one is.
///
/// # Errors
/// If it cannot be read, or there is no memory for it.
pub(crate) fn open(path: &Path) -> Result<Option<Arc<Slices>>> {
    let mut files = files();
    let Some(file) = files.get_mut(path) else { return Ok(None) };
    if file.slices.is_none() {
        let slices =
            Slices::read(&*file.lender, WHOLE).with_context(|| path.display().to_string())?;
        file.slices = Some(Arc::new(slices));
    }
    Ok(file.slices.clone())
}

fn files() -> MutexGuard<'static, BTreeMap<PathBuf, File>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slices {
    /// Reads what is looked at of a file; all of it up to a size.
    fn read(lender: &dyn Lender, whole: u64) -> Result<Self> {
        let size = lender.size();
        let bytes = Pages::new(size).with_context(|| format!("no memory for {size} bytes"))?;
        let mut slices = Self { bytes, read: 0 };
        if size <= whole {
            slices.fill(lender, 0..size)?;
            return Ok(slices);
        }
        for step in 0.. {
            let Some(parts) = parts::next(slices.bytes(), step) else { break };
            parts.into_iter().try_for_each(|part| slices.fill(lender, part))?;
        }
        Ok(slices)
    }

    fn fill(&mut self, lender: &dyn Lender, part: Range<u64>) -> Result<()> {
        let range = usize::try_from(part.start)?..usize::try_from(part.end)?;
        let into = self.bytes.get_mut(range).context("a part outside the file")?;
        let mut at = part.start;
        for into in into.chunks_mut(STEP) {
            lender.read(at, into)?;
            at += into.len() as u64;
            self.read += into.len() as u64;
        }
        Ok(())
    }

    /// The file as one slice.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct InMemory(Vec<u8>);

    impl Lender for InMemory {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
            let at = usize::try_from(at)?;
            into.copy_from_slice(self.0.get(at..at + into.len()).context("outside")?);
            Ok(())
        }
    }

    fn fixture(name: &str) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name);
        std::fs::read(path).unwrap()
    }

    /// A library with a megabyte of code that it does not have, and all else behind it.
    fn library() -> Vec<u8> {
        let mut bytes = fixture("fatbin/libt.so");
        let file = elf_core::File::parse(&bytes).unwrap();
        let header = *file.header();
        let is_text =
            |one: &elf_core::SectionHeader| file.section_name(one).unwrap().as_bytes() == b".text";
        let text = file.sections().into_iter().position(|one| is_text(&one)).unwrap();
        let rows = usize::from(header.section_header_count) * 64;
        let from = usize::try_from(header.section_headers).unwrap();
        let (code, size) = (bytes.len(), 1_u64 << 20);
        bytes.resize(code + (1 << 20), 0x90);
        let at = bytes.len() as u64;
        let row = bytes.len() + text * 64;
        bytes.extend_from_within(from..from + rows);
        bytes[0x28..0x30].copy_from_slice(&at.to_le_bytes());
        bytes[row + 0x18..row + 0x20].copy_from_slice(&(code as u64).to_le_bytes());
        bytes[row + 0x20..row + 0x28].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    #[test]
    fn what_is_looked_at_is_as_in_the_file() {
        let bytes = library();
        let slices = Slices::read(&InMemory(bytes.clone()), 0).unwrap();
        assert!(slices.read < 1 << 18, "{}", slices.read);
        let (file, found) = (
            elf_core::File::parse(&bytes).unwrap(),
            elf_core::File::parse(slices.bytes()).unwrap(),
        );
        let mut count = 0;
        for section in file.sections() {
            let name = file.section_name(&section).unwrap();
            if section.r#type != elf_core::names::SHT_NOBITS && name.as_bytes() != b".text" {
                assert_eq!(
                    file.section_data(&section).unwrap(),
                    found.section_data(&section).unwrap(),
                    "{name}"
                );
                count += 1;
            }
        }
        assert!(count > 20, "{count}");
        // up to a size, and of what is no ELF file, all is read
        assert_eq!(Slices::read(&InMemory(bytes.clone()), u64::MAX).unwrap().bytes(), bytes);
        let other = fixture("fatbin/zstd.fatbin");
        assert_eq!(Slices::read(&InMemory(other.clone()), 0).unwrap().bytes(), other);
    }

    #[test]
    fn damaged_files_are_damaged_alike() {
        let bytes = library();
        let told = |bytes: &[u8]| {
            elf_core::File::parse(bytes)
                .map(|file| file.sections().len())
                .map_err(|error| error.to_string())
        };
        for at in 0..64 {
            for value in [0, 1, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let slices = Slices::read(&InMemory(bytes.clone()), 0).unwrap();
                assert_eq!(told(slices.bytes()), told(&bytes), "{value} at {at}");
            }
        }
        for size in [0, 1, 63, 64, 4095, 4096, 4097, 20_000, bytes.len() - 1] {
            let cut = bytes[..size].to_vec();
            let slices = Slices::read(&InMemory(cut.clone()), 0).unwrap();
            assert_eq!(told(slices.bytes()), told(&cut), "{size}");
        }
    }
}
