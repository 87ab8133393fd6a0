//! From a file to a program in memory.

use core::fmt;

use elf_core::File;
use elf_image::{AddressKind, Image, Pages};

use crate::machine::{self, Arch};
use crate::protection;

/// Memory that programs are put into.
pub struct Region {
    start: usize,
    end: usize,
    /// What is behind the last program that may stand anywhere.
    next: usize,
}

/// A program that is in memory.
pub struct Loaded {
    /// Address of its first byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Where it begins.
    pub entry: u64,
    /// Which permissions its pages want.
    pub pages: Pages<'static>,
}

/// Why a program is not loaded.
pub enum Error {
    /// The file.
    Image(elf_image::Error),
    /// It has no place.
    Memory { base: u64, size: u64 },
    /// It does not say where it begins.
    Entry,
    /// The machine cannot give its pages their permissions.
    Permissions,
}

impl From<elf_image::Error> for Error {
    fn from(error: elf_image::Error) -> Self {
        Self::Image(error)
    }
}

impl From<elf_core::Error> for Error {
    fn from(error: elf_core::Error) -> Self {
        Self::Image(error.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(error) => error.fmt(f),
            Self::Memory { base, size } => write!(f, "no {size:#x} bytes of memory at {base:#x}"),
            Self::Entry => f.write_str("no entry"),
            Self::Permissions => f.write_str("the machine has no more regions of memory"),
        }
    }
}

impl Region {
    /// Memory from `start` to `end`.
    ///
    /// # Safety
    /// It is there, and nobody else's.
    pub const unsafe fn new(start: usize, end: usize) -> Self {
        Self { start, end, next: start }
    }

    /// The memory of an image at `base`, if it is all inside.
    fn memory(&mut self, base: u64, size: u64) -> Option<&mut [u8]> {
        let (start, size) = (usize::try_from(base).ok()?, usize::try_from(size).ok()?);
        let end = start.checked_add(size).filter(|end| *end <= self.end)?;
        if start < self.start {
            return None;
        }
        self.next = self.next.max(end);
        let start = core::ptr::with_exposed_provenance_mut(start);
        // SAFETY: it is inside of the region, which is ours, and borrowed as long as this.
        Some(unsafe { core::slice::from_raw_parts_mut(start, size) })
    }
}

/// Loads a program where it has to be, or behind what is there, and gives its pages their permissions.
pub fn load(file: &'static [u8], region: &mut Region) -> Result<Loaded, Error> {
    let image = Image::parse(File::parse_segments(file)?, AddressKind::Physical)?;
    let size = image.size();
    let base = if image.is_fixed() {
        image.start()
    } else {
        let alignment = image.alignment().max(machine::PAGE);
        let first = (region.next as u64).checked_next_multiple_of(alignment);
        first.and_then(|first| first.checked_add(image.start())).unwrap_or(u64::MAX)
    };
    let memory = region.memory(base, size).ok_or(Error::Memory { base, size })?;
    image.write(memory)?;
    image.relocate_relative::<Arch>(memory, base)?;
    machine::code_has_changed(memory.as_ptr(), memory.len());
    let entry = image.entry(base).ok_or(Error::Entry)?;
    let loaded = Loaded { base, size, entry, pages: image.pages(machine::PAGE)? };
    // SAFETY: the region is for programs, and this one is relocated.
    match unsafe { protection::protect(&loaded) } {
        true => Ok(loaded),
        false => Err(Error::Permissions),
    }
}
