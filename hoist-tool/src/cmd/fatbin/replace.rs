//! `hoist fatbin replace FILE --region N --entry M --with NEW -o OUT`: other code in place of an entry.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use fatbin::{EntryKind, Item, NewEntry, RegionEntry, Search};

use super::blob::Blob;
use super::change::{self, Files, Unreferenced, change, entries};
use super::found::regions;
use super::pack::{self, Compression, method, with_nul};
use crate::alone;

/// Puts other code in place of an entry of a host file, which stays loadable.
#[derive(Debug, clap::Args)]
pub struct Replace {
    #[command(flatten)]
    files: Files,
    /// The region, by its number in `list`.
    #[arg(long, value_name = "NUMBER")]
    region: usize,
    /// The entry, by its number in the region.
    #[arg(long, value_name = "NUMBER")]
    entry: usize,
    /// The cubin or PTX to put there.
    #[arg(long, value_name = "FILE")]
    with: PathBuf,
    /// How to compress it; without, as the entry before: `none`, `zlib`, `lz4`, `lz4-frame`, `zstd`.
    #[arg(long, value_name = "METHOD", value_parser = method)]
    compress: Option<Compression>,
    /// Takes code for another architecture, or of another kind.
    #[arg(long)]
    any: bool,
}

impl Replace {
    /// Writes the file and prints what was done.
    ///
    /// # Errors
    /// If there is no such entry, the new code is for something else, or the file cannot be changed so.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let file = self.files.open()?;
        let with = alone::open(&self.with)?;
        let label = self.files.label();
        let all = regions(&file, Search::Always).with_context(|| label.clone())?;
        let found = all.iter().find(|(index, _)| *index == self.region).map(|(_, region)| region);
        let found = found.with_context(|| format!("{label}: no region {}", self.region))?;
        let old = entries(found).with_context(|| label.clone())?;
        let target = old.get(self.entry).with_context(|| {
            format!("{label}: no entry {} in region {}", self.entry, self.region)
        })?;
        let bytes = with_nul(with.bytes());
        let new = self.successor(target, &bytes).with_context(|| change::label(&self.with))?;
        let compression = self.compress.unwrap_or(Compression(target.compression()));
        let stored = compression
            .0
            .map(|method| method.pack(new.stored).map(|stored| (method, stored)))
            .transpose()?;
        let new = match &stored {
            None => new,
            Some((method, stored)) => NewEntry::compressed(new, *method, stored),
        };
        let items = old.iter().enumerate().map(|(index, entry)| {
            if index == self.entry { Item::New(new) } else { Item::Kept(*entry) }
        });
        let items: Vec<_> = items.collect();
        let changes = vec![change(found, Blob::region(&items)?)];
        let notes = change::needs(compression.0).into_iter().collect();
        self.files.apply(&file, changes, notes, Unreferenced::Refused, out)
    }

    /// The new entry, with the name of the old one and what else the file does not say.
    fn successor<'a>(&self, old: &RegionEntry<'a>, bytes: &'a [u8]) -> Result<NewEntry<'a>> {
        ensure!(
            old.kind() != EntryKind::Concatenated,
            "the entry is several images in one: prune it, or pack it anew"
        );
        let new = pack::entry(bytes, None)?.in_place_of(old);
        ensure!(
            self.any || (new.kind == old.kind() && new.sm == old.sm()),
            "is {} for {}, in place of {} for {}: --any allows it",
            new.kind,
            new.sm,
            old.kind(),
            old.sm()
        );
        Ok(new)
    }
}
