//! Device code inside a fatbin, or inside what has fatbins: host objects, libraries, executables.

use std::borrow::Cow;

use anyhow::{Context as _, Result};
use fatbin::{Container, EntryKind, Part, RegionEntry, Search, Sm, walk};

use crate::budget::Budget;
use crate::cmd::fatbin::cubins::ImagePlace;

/// An image that is not unpacked yet.
#[derive(Clone, Debug)]
pub(super) struct Image<'a> {
    pub(super) place: ImagePlace,
    pub(super) kind: EntryKind,
    pub(super) sm: Sm,
    payload: Payload<'a>,
}

#[derive(Clone, Debug)]
enum Payload<'a> {
    Bytes(&'a [u8]),
    Entry(RegionEntry<'a>, Option<Part>),
}

/// The images in containers of a file, in order.
///
/// # Errors
/// If a container is damaged.
pub(super) fn images(bytes: &[u8]) -> Result<Vec<Image<'_>>> {
    let mut all = Vec::new();
    for (region, found) in walk(bytes, Search::Always).enumerate() {
        let mut add = |(entry, part), kind, sm: Sm, payload| {
            let place = ImagePlace { region, entry, part, arch: format!("sm_{sm}").into() };
            all.push(Image { place, kind, sm, payload });
        };
        match found?.container {
            Container::Region(entries) => {
                for (index, entry) in entries.entries().enumerate() {
                    let entry = entry?;
                    let parts = entry.parts()?;
                    if parts.is_empty() {
                        let payload = Payload::Entry(entry, None);
                        add((index, None), entry.kind(), entry.sm(), payload);
                    }
                    for (number, part) in parts.iter().enumerate() {
                        let payload = Payload::Entry(entry, Some(part));
                        add((index, Some(number)), part.kind, part.sm, payload);
                    }
                }
            }
            Container::Cubin(span) => {
                let sm = fatbin::CubinHeader::parse(span.bytes())?.sm;
                add((0, None), EntryKind::Elf, sm, Payload::Bytes(span.bytes()));
            }
            _ => {}
        }
    }
    Ok(all)
}

impl<'a> Image<'a> {
    /// Its bytes, unpacked.
    ///
    /// # Errors
    /// If it cannot be unpacked, or not so many bytes are left.
    pub(super) fn bytes(&self, budget: &Budget) -> Result<Cow<'a, [u8]>> {
        let (entry, part) = match &self.payload {
            Payload::Bytes(bytes) => return Ok(Cow::Borrowed(bytes)),
            Payload::Entry(entry, part) => (entry, *part),
        };
        let cut = |unpacked: &[u8], part: Part| {
            let bytes = part.of(unpacked).map(<[u8]>::to_vec);
            bytes.with_context(|| format!("{}: the part lies outside", self.place))
        };
        if entry.compression().is_none() {
            let stored = entry.stored().bytes();
            return match part {
                None => Ok(Cow::Borrowed(stored)),
                Some(part) => cut(stored, part).map(Cow::Owned),
            };
        }
        let size = entry.unpack_size(usize::MAX)?;
        budget.take(&self.place, size as u64)?;
        let mut unpacked = vec![0; size];
        entry.unpack_into(&mut unpacked)?;
        match part {
            None => Ok(Cow::Owned(unpacked)),
            Some(part) => cut(&unpacked, part).map(Cow::Owned),
        }
    }
}
