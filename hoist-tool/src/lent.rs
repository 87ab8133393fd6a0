//! Files that a program lends by name, and gives parts of when it is asked: those that a person chose in a browser.
//!
//! Commands see such a file as one slice of its size. What no command looks at is not read: code and debug information of large
//! ELF files, which are most of many. It stands as zeros, in memory that nobody has touched. Large archives are no slices: they are
//! read member by member (`stream`).

use core::ops::Range;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};

pub use lender::Lender;
use lender::STEP;
use pages::Pages;
#[cfg(feature = "device-code")]
pub(crate) use stream::Stream;

mod lender;
mod pages;
mod parts;
#[cfg(feature = "device-code")]
mod stream;

/// A file, as much of it as is looked at.
#[derive(Debug)]
pub struct Slices {
    bytes: Pages,
}

/// A lender, and how many bytes it was asked for.
#[derive(Debug)]
struct Counted {
    lender: Arc<dyn Lender>,
    read: AtomicU64,
}

impl Lender for Counted {
    fn size(&self) -> u64 {
        self.lender.size()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.lender.read(at, into)?;
        self.read.fetch_add(into.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

#[derive(Debug)]
struct File {
    lender: Arc<Counted>,
    /// What is handed over of it before it is opened.
    reading: Option<Reading>,
    /// Read when it is first opened.
    slices: Option<Arc<Slices>>,
}

static FILES: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// Files up to this size are read as a whole.
const WHOLE: u64 = 16 << 20;

/// Lends a file under a name: commands that open it get this one. It takes the place of one that was lent under it before.
pub fn lend(path: PathBuf, lender: Arc<dyn Lender>) {
    let lender = Arc::new(Counted { lender, read: AtomicU64::new(0) });
    files().insert(path, File { lender, reading: None, slices: None });
}

/// Bytes of lent files that were read.
#[must_use]
pub fn bytes_read() -> u64 {
    files().values().map(|file| file.lender.read.load(Ordering::Relaxed)).sum()
}

/// The parts of a lent file that its lender may [put] next, in order, so that they need not be asked for. None if that is all: also
/// of a large archive, and where none of this name is lent.
///
/// # Errors
/// If its first bytes cannot be read, or there is no memory for it.
pub fn wanted(path: &Path) -> Result<Option<Vec<Range<u64>>>> {
    #[cfg(feature = "device-code")]
    if stream(path)?.is_some() {
        return Ok(None);
    }
    let mut files = files();
    let Some(file) = files.get_mut(path).filter(|file| file.slices.is_none()) else {
        return Ok(None);
    };
    let mut reading = match file.reading.take() {
        Some(reading) => reading,
        None => Reading::new(file.lender.size(), WHOLE)?,
    };
    match reading.next() {
        Some(parts) => {
            file.reading = Some(reading);
            Ok(Some(parts))
        }
        None => {
            file.slices = Some(Arc::new(reading.slices));
            Ok(None)
        }
    }
}

/// Puts bytes of a lent file in their place: those of a [wanted] part.
///
/// # Errors
/// If none is wanted, or they leave the file.
pub fn put(path: &Path, at: u64, bytes: &[u8]) -> Result<()> {
    let mut files = files();
    let file =
        files.get_mut(path).and_then(|file| Some((&file.lender.read, file.reading.as_mut()?)));
    let (read, reading) = file.context("nothing is wanted of it")?;
    let end = at.checked_add(bytes.len() as u64).context("a part outside the file")?;
    reading.slices.part(at..end)?.copy_from_slice(bytes);
    read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    Ok(())
}

/// The file that is lent under this name, if one is.
///
/// # Errors
/// If it cannot be read, or there is no memory for it.
pub(crate) fn open(path: &Path) -> Result<Option<Arc<Slices>>> {
    let mut files = files();
    let Some(file) = files.get_mut(path) else { return Ok(None) };
    if file.slices.is_none() {
        // what was begun and did not come is asked for
        file.reading = None;
        let slices =
            Slices::read(&*file.lender, WHOLE).with_context(|| path.display().to_string())?;
        file.slices = Some(Arc::new(slices));
    }
    Ok(file.slices.clone())
}

/// A large archive that is lent under this name: read as it is looked at. None if it is no archive, or small.
///
/// # Errors
/// If it cannot be read.
#[cfg(feature = "device-code")]
pub(crate) fn stream(path: &Path) -> Result<Option<Stream>> {
    let lender = files().get(path).map(|file| Arc::clone(&file.lender));
    let Some(lender) = lender.filter(|lender| lender.size() > WHOLE) else { return Ok(None) };
    let stream = Stream::of(lender);
    let form = stream.form().with_context(|| path.display().to_string())?;
    Ok((form != crate::form::Form::Plain).then_some(stream))
}

fn files() -> MutexGuard<'static, BTreeMap<PathBuf, File>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parts of a file, step by step: each leads to the next.
#[derive(Debug)]
struct Reading {
    slices: Slices,
    /// The whole file is one part.
    is_whole: bool,
    step: usize,
}

impl Reading {
    /// A file of this size, all of it up to another.
    fn new(size: u64, whole: u64) -> Result<Self> {
        let bytes = Pages::new(size).with_context(|| format!("no memory for {size} bytes"))?;
        Ok(Self { slices: Slices { bytes }, is_whole: size <= whole, step: 0 })
    }

    /// The next parts, when those before are in their places.
    fn next(&mut self) -> Option<Vec<Range<u64>>> {
        let (bytes, step) = (self.slices.bytes(), self.step);
        self.step += 1;
        if !self.is_whole {
            return parts::next(bytes, step);
        }
        let all = 0..bytes.len() as u64;
        (step == 0).then(|| core::iter::once(all).collect())
    }
}

impl Slices {
    /// Reads what is looked at of a large part of an archive, which is no archive itself.
    ///
    /// # Errors
    /// If it cannot be read, or there is no memory for it.
    #[cfg(feature = "device-code")]
    pub(crate) fn of(part: &Stream) -> Result<Self> {
        Self::read(part, WHOLE)
    }

    /// Whether a file of this size is worth reading in parts.
    #[cfg(feature = "device-code")]
    pub(crate) const fn is_large(size: u64) -> bool {
        size > WHOLE
    }

    /// Reads what is looked at of a file; all of it up to a size.
    fn read(lender: &dyn Lender, whole: u64) -> Result<Self> {
        let mut reading = Reading::new(lender.size(), whole)?;
        while let Some(parts) = reading.next() {
            parts.into_iter().try_for_each(|part| reading.slices.fill(lender, part))?;
        }
        Ok(reading.slices)
    }

    fn fill(&mut self, lender: &dyn Lender, part: Range<u64>) -> Result<()> {
        let mut at = part.start;
        for into in self.part(part)?.chunks_mut(STEP) {
            lender.read(at, into)?;
            at += into.len() as u64;
        }
        Ok(())
    }

    fn part(&mut self, part: Range<u64>) -> Result<&mut [u8]> {
        let range = usize::try_from(part.start)?..usize::try_from(part.end)?;
        self.bytes.get_mut(range).context("a part outside the file")
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
        let lender = Arc::new(InMemory(bytes.clone()));
        let counted = Counted { lender, read: AtomicU64::new(0) };
        let slices = Slices::read(&counted, 0).unwrap();
        let read = counted.read.into_inner();
        assert!(read < 1 << 18, "{read}");
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

    #[cfg(feature = "device-code")]
    #[test]
    fn streams_are_the_file() {
        let bytes: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let stream = Stream::of(Arc::new(InMemory(bytes.clone())));
        let mut all = Vec::new();
        std::io::copy(&mut stream.reader(), &mut all).unwrap();
        assert!(all == bytes);
        let part = stream.part(1_000_001..1_000_011).part(3..99);
        let mut some = Vec::new();
        std::io::copy(&mut part.reader(), &mut some).unwrap();
        assert_eq!(some, bytes[1_000_004..1_000_011]);
        assert!(part.read(0, &mut [0; 8]).is_err() && part.read(u64::MAX, &mut [0; 2]).is_err());
        assert!(stream.part(u64::MAX..u64::MAX).head().unwrap().is_empty());
        // here and there
        for at in [19_999_990, 0, 7_000_000, 7_000_004, 15_000_000, 3] {
            let mut found = [0; 10];
            rawzip::ReaderAt::read_exact_at(&stream, &mut found, at as u64).unwrap();
            assert_eq!(found, bytes[at..at + 10], "{at}");
        }
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
