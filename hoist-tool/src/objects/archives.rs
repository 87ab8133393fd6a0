//! The archives that are searched for what is missing: read by whichever thread comes to one first.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Error, Result};
use elf_layout::archives::{MemberError, MemberIndex};

use crate::input::{Input, Part};

/// The archives among some inputs, each once however often it is given.
pub(super) struct Archives<'a> {
    inputs: Vec<&'a Input>,
    of_inputs: Vec<Option<usize>>,
    /// Nothing of one that is damaged.
    read: Vec<OnceLock<Option<Archive<'a>>>>,
    /// The first that no thread has taken on.
    unread: AtomicUsize,
}

/// An archive whose symbols have been read.
pub(super) struct Archive<'a> {
    pub(super) parts: Vec<Part<'a>>,
    pub(super) index: MemberIndex<&'a [u8]>,
}

impl<'a> Archives<'a> {
    /// Those of which members are searched for.
    pub(super) fn new(inputs: &'a [Input]) -> Self {
        let mut different = Vec::<&Input>::new();
        let mut number = |input: &'a Input| {
            let known = different.iter().position(|other| other.is_same(input));
            known.unwrap_or_else(|| {
                different.push(input);
                different.len() - 1
            })
        };
        let is_searched = |input: &&Input| input.is_archive() && !input.is_whole();
        let of_inputs =
            inputs.iter().map(|input| Some(input).filter(is_searched).map(&mut number)).collect();
        let read = different.iter().map(|_| OnceLock::new()).collect();
        Self { inputs: different, of_inputs, read, unread: AtomicUsize::new(0) }
    }

    /// Number of the archive that each input is, if it is one.
    pub(super) fn of_inputs(&self) -> &[Option<usize>] {
        &self.of_inputs
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether archive `number` is searched again with others.
    pub(super) fn is_of_group(&self, number: usize) -> bool {
        self.inputs.get(number).is_some_and(|input| input.is_of_group())
    }

    /// Numbers of archives that no thread has taken on, for this one to [read](Self::read); the other ones come to others.
    pub(super) fn unread(&self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(|| {
            let number = self.unread.fetch_add(1, Ordering::Relaxed);
            (number < self.len()).then_some(number)
        })
    }

    /// Has no thread take on another one.
    pub(super) fn stop(&self) {
        self.unread.store(self.len(), Ordering::Relaxed);
    }

    /// Reads the symbols of archive `number`, unless that is done.
    pub(super) fn read(&self, number: usize) {
        if let Some((read, input)) = self.read.get(number).zip(self.inputs.get(number)) {
            read.get_or_init(|| Archive::new(input).ok());
        }
    }

    /// Archive `number`, with its symbols. As long as another thread is reading it, this one reads others.
    ///
    /// # Errors
    /// If it is damaged: which member.
    pub(super) fn get(&self, number: usize) -> Result<&Archive<'a>> {
        let (Some(read), Some(input)) = (self.read.get(number), self.inputs.get(number)) else {
            anyhow::bail!("no archive {number}");
        };
        let mut others = self.unread();
        while read.get().is_none()
            && let Some(other) = others.next()
        {
            self.read(other);
        }
        match read.get_or_init(|| Archive::new(input).ok()) {
            Some(archive) => Ok(archive),
            // is damaged still
            None => Err(Archive::new(input).err().unwrap_or_else(|| Error::msg(input.label()))),
        }
    }
}

impl<'a> Archive<'a> {
    fn new(input: &'a Input) -> Result<Self> {
        let parts = input.parts()?;
        let index = MemberIndex::new(parts.iter().map(|part| part.bytes).collect());
        let index = index.map_err(|MemberError { member, error }| {
            let label = parts.get(member).map(|part| part.label.clone());
            Error::new(error).context(label.unwrap_or_default())
        })?;
        Ok(Self { parts, index })
    }
}
