//! Lent files that are read as they are looked at, and not kept: archives, of which one member after another is wanted.

use core::ops::Range;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use rawzip::ReaderAt;

use super::lender::{Lender, STEP};
use crate::form::{Form, HEAD};

/// Bytes that are asked for at a place that nothing led to; more where one goes on.
const FIRST: usize = 1 << 20;

/// A lent file, or a part of one.
#[derive(Debug)]
pub(crate) struct Stream {
    lender: Arc<dyn Lender>,
    at: u64,
    size: u64,
    window: Mutex<Window>,
}

/// What was read last.
#[derive(Debug, Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
    /// Bytes that are asked for at once.
    step: usize,
}

impl Stream {
    /// A whole file.
    pub(super) fn of(lender: Arc<dyn Lender>) -> Self {
        let size = lender.size();
        Self { lender, at: 0, size, window: Mutex::default() }
    }

    /// A part of it, or as much of that as there is.
    pub(crate) fn part(&self, range: Range<u64>) -> Self {
        let (start, end) = (range.start.min(self.size), range.end.min(self.size));
        let at = self.at.saturating_add(start);
        let size = end.saturating_sub(start);
        Self { lender: Arc::clone(&self.lender), at, size, window: Mutex::default() }
    }

    /// What it begins with, as far as that tells what it is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn head(&self) -> Result<Vec<u8>> {
        let mut head = vec![0; HEAD.min(usize::try_from(self.size).unwrap_or(HEAD))];
        self.read(0, &mut head)?;
        Ok(head)
    }

    /// Whether it is an archive by what it begins with, compressed files counted.
    pub(crate) fn form(&self) -> Result<Form> {
        Ok(Form::of(&self.head()?))
    }

    /// All of it from its start.
    pub(crate) const fn reader(&self) -> Reader<'_> {
        Reader { stream: self, at: 0 }
    }
}

impl Lender for Stream {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let end = at.checked_add(into.len() as u64);
        end.filter(|end| *end <= self.size).context("a part outside the file")?;
        self.lender.read(self.at.saturating_add(at), into)
    }
}

impl ReaderAt for Stream {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = |window: &Window| usize::try_from(at.checked_sub(window.at)?).ok();
        if inside(&window).is_none_or(|from| from >= window.bytes.len()) {
            let end = window.at.saturating_add(window.bytes.len() as u64);
            let goes_on = at.checked_sub(end).is_some_and(|gap| gap < window.step as u64);
            window.step = if goes_on { window.step.saturating_mul(2).min(STEP) } else { FIRST };
            let mut bytes = core::mem::take(&mut window.bytes);
            bytes.resize(window.step.min(left), 0);
            self.read(at, &mut bytes).map_err(io::Error::other)?;
            (window.at, window.bytes) = (at, bytes);
        }
        let found = inside(&window).and_then(|from| window.bytes.get(from..)).unwrap_or_default();
        let count = found.len().min(into.len());
        into.iter_mut().zip(found).for_each(|(to, from)| *to = *from);
        Ok(count)
    }
}

/// Reads from start to end.
#[derive(Debug)]
pub(crate) struct Reader<'s> {
    stream: &'s Stream,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read_at(into, self.at)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}
