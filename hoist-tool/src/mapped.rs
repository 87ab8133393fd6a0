//! Files in memory without being read: pages come when they are looked at, and go when they are done with.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use memmap2::Mmap;

use crate::budget::Limits;
use crate::lent::{self, Slices};
use crate::read::read_open;
use cut::Watch;

#[cfg_attr(windows, path = "mapped/advice/windows.rs")]
mod advice;
#[cfg_attr(windows, path = "mapped/cut/windows.rs")]
mod cut;

/// The bytes of a file.
#[derive(Debug)]
pub struct Mapped {
    /// Who sees to it that the file stays as long as it is: until the mapping goes.
    _watch: Option<Watch>,
    content: Content,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

#[derive(Debug)]
enum Content {
    Mapped(Mmap),
    /// What cannot be mapped: a pipe, a terminal.
    Read(Vec<u8>),
    /// What a program lends.
    Lent(Arc<Slices>),
}

impl Mapped {
    /// Maps a file; reads what is no file, or is lent.
    ///
    /// # Errors
    /// If that fails.
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(lent) = lent::open(path)? {
            return Ok(Self { _watch: None, content: Content::Lent(lent) });
        }
        let context = || path.display().to_string();
        let file = File::open(path).with_context(context)?;
        if !file.metadata().with_context(context)?.is_file() {
            return read_open(file, path, Limits::default()).map(Self::of);
        }
        let mapped = Self::map(&file).with_context(context)?;
        match Watch::new(mapped.bytes(), path) {
            Some(watch) => Ok(Self { _watch: Some(watch), ..mapped }),
            // one of very many: what cannot be watched is read
            None => read_open(file, path, Limits::default()).map(Self::of),
        }
    }

    /// Maps an open file that has no name, so that nobody else can make it shorter.
    ///
    /// # Errors
    /// If that fails.
    pub fn map(file: &File) -> Result<Self> {
        // SAFETY: the mapping is private and read-only, and nothing in this process writes to the file. Another process may: if
        // it cuts the file, this process ends with an error (`cut`); different bytes at a second look are bad input to all code
        // behind this.
        let map = unsafe { Mmap::map(file) }?;
        advice::far_apart(&map);
        Ok(Self { _watch: None, content: Content::Mapped(map) })
    }

    /// What was read of a file that is lent.
    #[cfg(feature = "device-code")]
    pub(crate) fn lent(slices: Slices) -> Self {
        Self { _watch: None, content: Content::Lent(Arc::new(slices)) }
    }

    /// Bytes that are in memory anyway.
    #[must_use]
    pub const fn of(bytes: Vec<u8>) -> Self {
        Self { _watch: None, content: Content::Read(bytes) }
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Mapped(map) => map,
            Content::Read(bytes) => bytes,
            Content::Lent(lent) => lent.bytes(),
        }
    }

    /// Says that a range will be read from its start to its end.
    pub fn will_read(&self, range: Range<u64>) {
        if let (Content::Mapped(map), Some((start, size))) = (&self.content, self.pages(range)) {
            advice::in_order(map, start, size);
        }
    }

    /// Says that a range will be read at once, as a whole.
    pub fn reads(&self, range: Range<u64>) {
        if let (Content::Mapped(map), Some((start, size))) = (&self.content, self.pages(range)) {
            advice::at_once(map, start, size);
        }
    }

    /// Lets go of the pages that lie in a range: they come back from the file if they are looked at again.
    pub fn done_with(&self, range: Range<u64>) {
        if let (Content::Mapped(map), Some((start, size))) = (&self.content, self.pages(range)) {
            advice::done(map, start, size);
        }
    }

    /// A range in whole pages, cut to the file: the first page may hold other bytes too, the last is left out.
    fn pages(&self, range: Range<u64>) -> Option<(usize, usize)> {
        const PAGE: usize = 1 << 16;
        let start = usize::try_from(range.start).ok()? / PAGE * PAGE;
        let end = usize::try_from(range.end).ok()?.min(self.bytes().len());
        let size = end.checked_sub(start)?;
        (size != 0).then_some((start, size))
    }
}
