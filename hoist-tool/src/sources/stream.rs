//! Archives that are read from their start to their end: tar, and what is compressed as a whole.

use std::io::{self, Read, Write as _};

use anyhow::{Context as _, Result, anyhow};

use super::budget::{Budget, Left};
use super::form::{Form, HEAD, is_wanted, may_hold};
use super::{Order, Source, own_name, spooled};
use crate::mapped::Mapped;

/// Files up to this size are unpacked in memory.
const IN_MEMORY: u64 = 16 << 20;

/// What is done with files, however deep inside others they are.
pub(super) struct Nest<'f, F> {
    pub(super) left: Left,
    pub(super) order: Order,
    look: &'f F,
}

impl<'f, F> Nest<'f, F> {
    pub(super) fn new((budget, size): (&Budget, u64), order: Order, look: &'f F) -> Self {
        Self { left: Left::new(budget, size), order, look }
    }
}

impl<T: Send, F: Fn(Source) -> T + Sync> Nest<'_, F> {
    /// What is made of a file that is unpacked.
    pub(super) fn look(&self, label: String, file: Mapped) -> T {
        let name = own_name(&label).to_owned();
        (self.look)(Source { label, name, file })
    }

    /// What is made of what a reader gives: a file, or files inside it.
    pub(super) fn stream(
        &self,
        label: &str,
        is_named: bool,
        depth: usize,
        reader: &mut dyn Read,
    ) -> Vec<Result<T>> {
        if depth > Budget::DEPTH {
            return vec![Err(anyhow!(
                "{label}: more than {} archives in one another",
                Budget::DEPTH
            ))];
        }
        let mut head = Vec::new();
        if let Err(error) = reader.take(HEAD as u64).read_to_end(&mut head) {
            return vec![Err(anyhow!(error).context(label.to_owned()))];
        }
        let form = Form::of(&head);
        let wanted = may_hold(&head) || is_named && depth == 0;
        let mut whole = io::Cursor::new(head).chain(reader);
        let inside = |reader: &mut dyn Read| self.stream(label, is_named, depth + 1, reader);
        match form {
            Form::Gzip => inside(&mut self.left.counted(flate2::read::MultiGzDecoder::new(whole))),
            Form::Bzip2 => inside(&mut self.left.counted(bzip2::read::MultiBzDecoder::new(whole))),
            Form::Zstd => match zstd::Decoder::new(&mut whole) {
                Ok(decoder) => inside(&mut self.left.counted(decoder)),
                Err(error) => vec![Err(anyhow!(error).context(label.to_owned()))],
            },
            Form::Tar => self.tar(label, is_named, depth + 1, &mut whole),
            Form::Plain if !wanted => Vec::new(),
            Form::Plain => match collect(&mut whole).with_context(|| label.to_owned()) {
                Ok(file) => vec![Ok(self.look(label.to_owned(), file))],
                Err(error) => vec![Err(error)],
            },
            // what has its directory at its end
            Form::Zip => match collect(&mut whole).with_context(|| label.to_owned()) {
                Ok(file) => self.zip(label, is_named, depth, &file),
                Err(error) => vec![Err(error)],
            },
        }
    }

    /// What is made of the members of a tar archive.
    fn tar(
        &self,
        label: &str,
        is_named: bool,
        depth: usize,
        reader: &mut dyn Read,
    ) -> Vec<Result<T>> {
        let mut archive = tar::Archive::new(reader);
        let mut all = Vec::new();
        let entries = match archive.entries() {
            Ok(entries) => entries,
            Err(error) => return vec![Err(anyhow!(error).context(label.to_owned()))],
        };
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                // what stands behind is not known
                Err(error) => {
                    all.push(Err(anyhow!(error).context(label.to_owned())));
                    return all;
                }
            };
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            all.extend(self.stream(&format!("{label}:{path}"), is_named, depth, &mut entry));
        }
        // checksums stand behind the last member
        if let Err(error) = io::copy(&mut archive.into_inner(), &mut io::sink()) {
            all.push(Err(anyhow!(error).context(label.to_owned())));
        }
        all
    }
}

/// All that a reader gives: in memory, or in a file without a name.
pub(super) fn collect(reader: &mut dyn Read) -> Result<Mapped> {
    let mut bytes = Vec::new();
    reader.take(IN_MEMORY).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < IN_MEMORY {
        return Ok(Mapped::of(bytes));
    }
    spooled(|file| {
        file.write_all(&bytes).context("a temporary file")?;
        drop(bytes);
        io::copy(reader, file)?;
        Ok(())
    })
}

/// Whether what a reader gives is worth unpacking, with what was read to tell.
pub(super) fn begins_wanted(reader: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    reader.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(is_wanted(&head).then_some(head))
}
