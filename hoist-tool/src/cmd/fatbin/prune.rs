//! `hoist fatbin prune FILE --keep sm_90,ptx -o OUT`: host files without the code that is not needed.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use fatbin::{
    CompressionMethod, CudaVersion, EntryKind, Item, NewEntry, Part, Region, RegionEntry, Sm, Span,
    TargetDevice, select,
};

use super::blob::Blob;
use super::change::{Files, Unreferenced, change, entries};
use super::filter::Where;
use super::found::regions;
use super::keep::{Keep, keep};
use super::room;
use crate::budget::{Budget, FLOOR, TIMES};
use crate::number::number;
use crate::output::{Backup, Dates};

/// Removes entries from a host file, which stays loadable.
#[derive(Debug, clap::Args)]
pub struct Prune {
    /// The most bytes that the entries which are cut may unpack to, together: otherwise 256 MiB and 64 times the size of the file.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    place: Where,
    /// What to keep: `sm_90`, `sm_90a` (machine code), `compute_90` (PTX), `ptx`, `elf`, `nvvm` (all of a kind).
    #[arg(long, required = true, value_delimiter = ',', value_name = "WHAT", value_parser = keep)]
    keep: Vec<Keep>,
    /// Goes on where an architecture that is kept would have no code for something that it runs now.
    #[arg(long)]
    allow_gaps: bool,
    /// Also where nothing is left of the file's device code.
    #[arg(long)]
    allow_empty: bool,
}

/// What becomes of an entry.
pub enum Fate<'a> {
    /// It stays.
    Kept(RegionEntry<'a>),
    /// A concatenated entry with fewer images: how it is compressed, and what it is stored as.
    Fewer {
        /// The entry as it was.
        entry: RegionEntry<'a>,
        /// The images that stay.
        parts: Vec<Part>,
        /// These, one after another.
        payload: Blob,
        /// How they are compressed, and the bytes.
        stored: Option<(CompressionMethod, Blob)>,
    },
    /// It goes.
    Gone,
}

impl Prune {
    /// What keeps `keep` of a file, and nothing else, whatever gaps that leaves.
    #[must_use]
    pub fn new(file: PathBuf, output: PathBuf, keep: Vec<Keep>) -> Self {
        Self {
            files: Files {
                file,
                output,
                shrink: false,
                dates: Dates::default(),
                backup: Backup::default(),
                json: false,
            },
            place: Where::default(),
            limit: None,
            keep,
            allow_gaps: true,
            allow_empty: false,
        }
    }

    /// Writes the file and prints what was done.
    ///
    /// # Errors
    /// If nothing would be left, or the file cannot be changed so.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let file = self.files.open()?;
        let label = self.files.label();
        let budget = Budget::new(self.limit, FLOOR, TIMES, file.bytes().len() as u64);
        let (mut changes, mut left, mut all, mut empty) = (Vec::new(), 0, 0, 0);
        for (_, found) in regions(&file, self.place.search()).with_context(|| label.clone())? {
            let old = entries(&found).with_context(|| label.clone())?;
            let fates: Vec<_> = old
                .iter()
                .map(|entry| fate(*entry, &self.keep, &budget, as_before))
                .collect::<Result<_>>()
                .with_context(|| label.clone())?;
            let items: Vec<_> = fates.iter().filter_map(Fate::item).collect();
            let whole = fates.iter().all(|fate| matches!(fate, Fate::Kept(_)));
            all += old.len();
            left += items.len();
            if !whole {
                empty += usize::from(items.is_empty());
                let new = Blob::region(&items)?;
                if !self.allow_gaps {
                    check_gaps(&self.keep, &found, &new).with_context(|| label.clone())?;
                }
                changes.push(change(&found, new));
            }
            file.done_with(found.at()..found.end());
        }
        ensure!(
            left > 0 || self.allow_empty && all > 0,
            "{label}: nothing of it would be left: --allow-empty"
        );
        let mut notes = vec![format!("{left} of {all} entries are left")];
        if empty > 0 {
            notes.push(format!(
                "{empty} regions are left without entries: what they held does not run any more"
            ));
        }
        self.files.apply(&file, changes, notes, Unreferenced::Refused, out)
    }
}

/// Whether all that is kept still finds code in a region where it found some before: devices of each architecture, whether its machine
/// code is kept or its PTX.
///
/// # Errors
/// If one does not.
pub fn check_gaps(keep: &[Keep], old: &Region<'_>, new: &Blob) -> Result<()> {
    let new = Region::parse(&**new)?;
    let wanted = keep.iter().filter_map(|keep| match keep {
        Keep::Code(sm) | Keep::Ptx(sm) => Some(*sm),
        Keep::Kind(_) => None,
    });
    let wanted: BTreeSet<Sm> = wanted.collect();
    for sm in &wanted {
        let device = TargetDevice { sm: sm.number, driver: CudaVersion::new(u16::MAX, 0) };
        let (before, after) = (select(old.entries(), device)?, select(new.entries(), device)?);
        if let (Some(before), None) = (before, after) {
            bail!(
                "the region at {:#x} would have no code for sm_{sm}, which runs {} for {} of it now: keep that too, or --allow-gaps",
                old.at(),
                before.entry.kind(),
                before.part.map_or(before.entry.sm(), |part| part.sm)
            );
        }
    }
    if wanted.is_empty() && old.entries().next().is_some() && new.entries().next().is_none() {
        bail!(
            "the region at {:#x} would have no code at all: keep some of it, or --allow-gaps",
            old.at()
        );
    }
    Ok(())
}

/// A payload as it is stored: how it is compressed, and the bytes.
pub type Packed = Option<(CompressionMethod, Vec<u8>)>;

/// A payload compressed as its entry was before.
///
/// # Errors
/// As [`CompressionMethod::pack`].
pub fn as_before(old: Option<CompressionMethod>, payload: &[u8]) -> Result<Packed> {
    let pack = |method: CompressionMethod| method.pack(payload).map(|stored| (method, stored));
    Ok(old.map(pack).transpose()?)
}

/// What code there is, by the words that keep it, and which words of a list keep some of it.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// A word for each kind of image that is there.
    pub all: BTreeSet<Keep>,
    /// Those of the list that keep some.
    pub kept: BTreeSet<Keep>,
}

impl Present {
    /// Adds what is in an entry.
    ///
    /// # Errors
    /// If its parts cannot be read.
    pub fn add(&mut self, entry: RegionEntry<'_>, keep: &[Keep]) -> Result<()> {
        let mut add = |kind: EntryKind, sm: Sm| {
            self.all.insert(Keep::of(kind, sm));
            self.kept.extend(keep.iter().filter(|keep| keep.keeps(kind, sm)));
        };
        let parts = entry.parts()?;
        if parts.is_empty() {
            add(entry.kind(), entry.sm());
        }
        parts.iter().for_each(|part| add(part.kind, part.sm));
        Ok(())
    }

    /// Adds what is in another file.
    pub fn extend(&mut self, other: &Self) {
        self.all.extend(&other.all);
        self.kept.extend(&other.kept);
    }
}

/// What becomes of an entry of which `keep` is kept. Cut ones are packed by `pack`, and taken from the budget.
///
/// # Errors
/// If one that is cut cannot be unpacked or packed.
pub fn fate<'a>(
    entry: RegionEntry<'a>,
    keep: &[Keep],
    budget: &Budget,
    pack: impl Fn(Option<CompressionMethod>, &[u8]) -> Result<Packed>,
) -> Result<Fate<'a>> {
    let keeps = |kind: EntryKind, sm: Sm| keep.iter().any(|keep| keep.keeps(kind, sm));
    let parts = entry.parts()?;
    if parts.is_empty() {
        let kept = keeps(entry.kind(), entry.sm());
        return Ok(if kept { Fate::Kept(entry) } else { Fate::Gone });
    }
    let mut kept: Vec<_> = parts.iter().filter(|part| keeps(part.kind, part.sm)).collect();
    if kept.len() == parts.len() {
        return Ok(Fate::Kept(entry));
    }
    if kept.is_empty() {
        return Ok(Fate::Gone);
    }
    budget.take(format_args!("the entry at {:#x}", entry.at()), entry.unpacked_size())?;
    let _room = room::for_image(entry.unpacked_size(), true);
    let unpacked = entry.unpack(usize::MAX)?;
    let mut payload = Vec::new();
    for part in &mut kept {
        let image = part.of(&unpacked).context("a part leaves its entry")?;
        part.offset = payload.len() as u64;
        payload.extend(image);
    }
    // no more than there is room for: what it was cut from, or what it becomes
    drop(unpacked);
    let stored = pack(entry.compression(), &payload)?;
    if let Some((method, stored)) = &stored {
        let mut again = vec![0; payload.len()];
        method.unpack(Span::from(&**stored), &mut again)?;
        ensure!(again == payload, "the entry at {:#x} would unpack to other bytes", entry.at());
    }
    let stored = stored.map(|(method, stored)| (method, Blob::from(stored)));
    Ok(Fate::Fewer { entry, parts: kept, payload: payload.into(), stored })
}

impl Fate<'_> {
    /// What is written of it.
    #[must_use]
    pub fn item(&self) -> Option<Item<'_>> {
        match self {
            Self::Kept(entry) => Some(Item::Kept(*entry)),
            Self::Gone => None,
            Self::Fewer { entry, parts, payload, stored } => {
                let new = NewEntry::concatenated(parts, payload);
                let new = NewEntry {
                    identifier: entry.identifier().as_bytes(),
                    flags: entry.flags(),
                    ..new
                };
                Some(Item::New(match stored {
                    Some((method, stored)) => new.compressed(*method, stored),
                    None => new,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let sm = |text: &str| text.parse::<Sm>().unwrap();
        let code = keep("sm_90").unwrap();
        assert!(code.keeps(EntryKind::Elf, sm("90")) && !code.keeps(EntryKind::Elf, sm("90a")));
        assert!(!code.keeps(EntryKind::Ptx, sm("90")));
        assert!(keep("compute_90").unwrap().keeps(EntryKind::Ptx, sm("90")));
        assert_eq!(keep("ptx"), Ok(Keep::Kind(EntryKind::Ptx)));
        for word in ["sm_90a", "compute_90", "ptx", "elf"] {
            assert_eq!(keep(word).map(|keep| keep.to_string()), Ok(word.to_owned()));
        }
        assert_eq!(Keep::of(EntryKind::Ptx, sm("90")).to_string(), "compute_90");
        assert!(keep("sm_").is_err() && keep("all").is_err());
    }
}
