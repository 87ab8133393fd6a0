//! `hoist fatbin recompress FILE --mode size -o OUT`: the same code, compressed in another way.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fatbin::{CompressionMethod, CompressionMode, EntryKind, Region, RegionEntry, Span};
use rayon::prelude::*;

use super::blob::Blob;
use super::change::{self, Change, Files, Unreferenced, change, entries};
use super::fatbinary;
use super::filter::Where;
use super::found::regions;
use super::pack::{Compression, method};
use super::payload::without_padding;
use super::prune::Packed;
use super::room;
use super::stored::Stored;
use super::unpacking::{self, Unpacking};
use crate::budget::{Budget, FLOOR, TIMES};
use crate::mapped::Mapped;
use crate::number::number;

/// Compresses the entries of a host file in another way; it stays loadable.
#[derive(Debug, clap::Args)]
pub struct Recompress {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    place: Where,
    /// How: `none`, `zlib`, `lz4`, `lz4-frame`, `zstd`, each as small as it gets.
    #[arg(long, value_name = "METHOD", value_parser = method, required_unless_present = "mode")]
    with: Option<Compression>,
    /// How, in the words of nvcc 13: `speed` (LZ4 at level 3), `balance` (Zstandard at level 5), `size` (at level 19). LTO-IR by NVIDIA's
    /// fatbinary, which is looked for in the environment's FATBINARY, PATH, CUDA_HOME/bin, CUDA_PATH/bin and the packages of Python.
    #[arg(long, value_name = "MODE", value_parser = mode, conflicts_with = "with")]
    mode: Option<CompressionMode>,
    /// The most bytes that all entries may unpack to, together: otherwise 256 MiB and 64 times the size of the file.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
}

/// How entries are to be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By a method, as small as it gets, or not at all.
    With(Option<CompressionMethod>),
    /// As NVIDIA's tools do in a mode.
    Mode(CompressionMode),
}

impl How {
    /// The method.
    #[must_use]
    pub const fn method(self) -> Option<CompressionMethod> {
        match self {
            Self::With(method) => method,
            Self::Mode(mode) => Some(mode.method()),
        }
    }

    /// Whether the encoder has tables that are as large as many images: Zstandard at its smallest level.
    const fn has_tables(self) -> bool {
        matches!(
            self,
            Self::With(Some(CompressionMethod::Zstd)) | Self::Mode(CompressionMode::Size)
        )
    }

    /// Compresses a payload.
    ///
    /// # Errors
    /// As [`CompressionMethod::pack`].
    pub fn pack(self, payload: &[u8]) -> Result<Packed> {
        Ok(match self {
            Self::With(None) => None,
            Self::With(Some(method)) => Some((method, method.pack(payload)?)),
            Self::Mode(mode) => Some((mode.method(), mode.pack(payload)?)),
        })
    }
}

/// A mode by its name.
///
/// # Errors
/// If there is none of this name.
pub fn mode(text: &str) -> Result<CompressionMode, String> {
    let found = CompressionMode::ALL.into_iter().find(|mode| mode.name() == text);
    found.ok_or_else(|| String::from("expected speed, balance or size"))
}

impl Recompress {
    /// Writes the file and prints what was done.
    ///
    /// # Errors
    /// If an entry cannot be unpacked, or the file cannot be changed so.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let file = self.files.open()?;
        let label = self.files.label();
        let budget = Budget::new(self.limit, FLOOR, TIMES, file.bytes().len() as u64);
        let all = regions(&file, self.place.search()).with_context(|| label.clone())?;
        let unpacking = Unpacking::default();
        let region =
            |(_, region): &(usize, Region<'_>)| self.region(region, &file, &budget, &unpacking);
        let results: Vec<_> = all.par_iter().map(region).collect();
        let mut changes = Vec::new();
        for result in results {
            changes.extend(result.with_context(|| label.clone())?);
        }
        let mut notes: Vec<_> = change::needs(self.how().method()).into_iter().collect();
        notes.extend(unpacking.note());
        notes.extend(unpacking.left());
        self.files.apply(&file, changes, notes, Unreferenced::Left, out)
    }

    fn how(&self) -> How {
        match (self.mode, self.with) {
            (Some(mode), _) => How::Mode(mode),
            (None, with) => How::With(with.and_then(|Compression(method)| method)),
        }
    }

    /// A region with its entries compressed anew, if any is.
    fn region(
        &self,
        found: &Region<'_>,
        file: &Mapped,
        budget: &Budget,
        unpacking: &Unpacking,
    ) -> Result<Option<Change>> {
        let old = entries(found)?;
        let stored: Vec<_> = old
            .par_iter()
            .map(|entry| stored(*entry, self.how(), budget, unpacking))
            .collect::<Result<_>>()?;
        if stored.iter().all(|stored| matches!(stored, Stored::Kept(_))) {
            file.done_with(found.at()..found.end());
            return Ok(None);
        }
        let items: Vec<_> = stored.iter().map(Stored::item).collect();
        let new = Blob::region(&items)?;
        file.done_with(found.at()..found.end());
        Ok(Some(change(found, new)))
    }
}

/// How an entry is stored if it is compressed in this way: as before, if that makes it no smaller.
///
/// # Errors
/// If it cannot be unpacked, or what was packed unpacks to anything else.
pub fn stored<'a>(
    entry: RegionEntry<'a>,
    how: How,
    budget: &Budget,
    unpacking: &Unpacking,
) -> Result<Stored<'a>> {
    let (old, new) = (entry.compression(), how.method());
    if old.is_none() && new.is_none() {
        return Ok(Stored::Kept(entry));
    }
    if entry.obfuscation_key().is_some() || entry.kind() == EntryKind::Nvvm {
        return Ok(nvvm(entry, how, unpacking));
    }
    budget.take(format_args!("the entry at {:#x}", entry.at()), entry.unpacked_size())?;
    let _room = room::for_image(entry.unpacked_size(), how.has_tables());
    let (unpacked, time) = unpacking::timed(|| entry.unpack(usize::MAX))?;
    let payload = if old.is_none() { without_padding(entry.kind(), &unpacked) } else { &unpacked };
    let Some((method, stored)) = how.pack(payload)? else {
        unpacking.add(unpacked.len(), time, Duration::ZERO);
        let stored = unpacked.into_owned().into();
        return Ok(Stored::New { entry, stored, compression: None, obfuscation_key: None });
    };
    // what does not become smaller stays, unless another method is wanted
    let keeps = old.is_none() || old == new;
    if keeps && stored.len().next_multiple_of(8) as u64 >= entry.stored_size() {
        return Ok(Stored::Kept(entry));
    }
    let mut again = vec![0; payload.len()];
    let ((), after) = unpacking::timed(|| method.unpack(Span::from(&*stored), &mut again))?;
    ensure!(again == payload, "the entry at {:#x} would unpack to other bytes", entry.at());
    unpacking.add(payload.len(), if old.is_some() { time } else { Duration::ZERO }, after);
    let compression = Some((method, payload.len() as u64));
    Ok(Stored::New { entry, stored: stored.into(), compression, obfuscation_key: None })
}

/// NVVM is obfuscated where it is compressed, which only NVIDIA's tools can do, and none can undo.
fn nvvm<'a>(entry: RegionEntry<'a>, how: How, unpacking: &Unpacking) -> Stored<'a> {
    let is_plain = entry.obfuscation_key().is_none() && entry.compression().is_none();
    let stored = match how {
        How::Mode(mode) if is_plain => fatbinary::stored(entry, mode),
        _ => Ok(None),
    };
    match stored {
        Ok(Some(stored)) => {
            if matches!(stored, Stored::New { .. }) {
                unpacking.add_packed(entry);
            }
            return stored;
        }
        Ok(None) => unpacking.add_left(entry, None),
        Err(error) => unpacking.add_left(entry, Some(format!("{error:#}"))),
    }
    Stored::Kept(entry)
}
