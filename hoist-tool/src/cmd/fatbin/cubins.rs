//! All cubins of a file, unpacked on all cores: wherever they are in it.

use std::cmp::Reverse;

use anyhow::{Context as _, Error, Result, anyhow};
use fatbin::{
    CompressionMethod, Container, EntryKind, FoundContainer, Part, RegionEntry, Search, Sm, Span,
};
use rayon::prelude::*;
use serde::Serialize;

use super::found::containers;
use super::payload::without_padding;
use crate::budget::{Budget, FLOOR, TIMES};
use crate::faults::in_words;
use crate::kernel_name::Text;
use crate::mapped::Mapped;
use crate::printable::Printable;
use crate::ptx::{HEAD, is_ptx, ptx_module};
use crate::scratch::Scratch;
use crate::share::Share;

/// Where an image is in its file, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImagePlace {
    /// Number of the region, as `hoist fatbin list` counts.
    pub region: usize,
    /// Number of the entry in its region.
    pub entry: usize,
    /// Number of the part, of a concatenated entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// The architecture with its suffix.
    pub arch: Text,
}

impl std::fmt::Display for ImagePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "region {} entry {}", self.region, self.entry)?;
        if let Some(part) = self.part {
            write!(f, " part {part}")?;
        }
        write!(f, " {}", self.arch)
    }
}

/// An image in a file.
#[derive(Clone, Debug)]
pub struct Image {
    /// Where it is.
    pub place: ImagePlace,
    /// The member of an archive.
    pub member: Option<Text>,
    /// Whether it is no part of a container: the file, or the member, itself.
    pub is_alone: bool,
    /// What it is.
    pub kind: EntryKind,
    /// What it is for.
    pub sm: Sm,
    /// Its bytes as they are stored; those of all parts of a concatenated entry, with the first.
    pub stored_size: u64,
    /// Whether it is encrypted, and cannot be unpacked.
    pub is_encrypted: bool,
    part: Option<Part>,
}

/// Images that are unpacked together.
struct Job<'a> {
    payload: Payload<'a>,
    /// Bytes that it unpacks to.
    size: u64,
    images: Vec<Image>,
}

enum Payload<'a> {
    Entry(RegionEntry<'a>),
    Span(Span<'a>),
    /// The file itself.
    File(&'a [u8]),
}

/// Calls `each` with every image that `wants` has, and its bytes; what that returns, in the order of the file, and the errors
/// between.
pub fn images<T: Send>(
    file: &Mapped,
    search: Search,
    wants: impl Fn(&Image) -> bool,
    each: impl Fn(&Image, &[u8]) -> T + Sync,
) -> Vec<Result<T>> {
    images_of((file, search), Share::ALL, wants, each)
}

/// The same of a share of the images. What cannot be read of the file is told with the last.
pub fn images_of<T: Send>(
    (file, search): (&Mapped, Search),
    share: Share,
    wants: impl Fn(&Image) -> bool,
    each: impl Fn(&Image, &[u8]) -> T + Sync,
) -> Vec<Result<T>> {
    let budget = Budget::new(None, FLOOR, TIMES, file.bytes().len() as u64);
    let mut errors = Vec::new();
    let mut jobs = Vec::new();
    // headers are looked at as they are found: afterwards their pages are gone
    for (region, found) in containers(file, search, |found| jobs_of(&found)).enumerate() {
        match found {
            Ok((found, wrong)) => {
                jobs.extend(found.into_iter().map(|job: Job<'_>| job.of_region(region)));
                errors.extend(wrong.into_iter().map(Error::from));
            }
            Err(error) => errors.push(error.into()),
        }
    }
    jobs.extend(source(file).map(|job| job.of_region(0)));
    for job in &mut jobs {
        job.images.retain(&wants);
    }
    jobs.retain(|job| !job.images.is_empty());
    share.retain(&mut jobs, Job::cost);
    if !share.is_last() {
        errors.clear();
    }
    // the largest first, and each goes to who is free: the cores end together
    let mut order: Vec<_> = jobs.iter().enumerate().collect();
    order.sort_by_key(|(_, job)| Reverse(job.size));
    let mut all: Vec<_> = order
        .into_iter()
        .par_bridge()
        .map_init(Scratch::default, |buffer, (index, job)| {
            (index, job.run((file, &budget), buffer, &each))
        })
        .collect();
    all.sort_unstable_by_key(|(index, _)| *index);
    let all = all.into_iter().flat_map(|(_, found)| found);
    all.chain(errors.into_iter().map(Err)).collect()
}

/// A file that is PTX.
fn source(file: &Mapped) -> Option<Job<'_>> {
    let bytes = file.bytes();
    if !is_ptx(bytes) {
        return None;
    }
    let text = String::from_utf8_lossy(bytes.get(..HEAD).unwrap_or(bytes));
    let sm = ptx_module(&text).sm().unwrap_or(Sm::new(0));
    let size = bytes.len() as u64;
    let image = Image {
        place: ImagePlace { region: 0, entry: 0, part: None, arch: format!("sm_{sm}").into() },
        member: None,
        is_alone: true,
        kind: EntryKind::Ptx,
        sm,
        stored_size: size,
        is_encrypted: false,
        part: None,
    };
    Some(Job { payload: Payload::File(bytes), size, images: vec![image] })
}

/// What a container has, as if it were the first of its file.
fn jobs_of<'a>(found: &FoundContainer<'a>) -> (Vec<Job<'a>>, Vec<fatbin::Error>) {
    let (mut jobs, mut errors) = (Vec::new(), Vec::new());
    let member = found.place.member.map(|name| Text::from(Printable::from(name).to_string()));
    let image = |(entry, number), is_alone, kind, sm: Sm, part, stored_size| Image {
        place: ImagePlace { region: 0, entry, part: number, arch: format!("sm_{sm}").into() },
        member: member.clone(),
        is_alone,
        kind,
        sm,
        stored_size,
        is_encrypted: false,
        part,
    };
    match found.container {
        Container::Region(entries) => {
            for (index, entry) in entries.entries().enumerate() {
                let parts = entry.and_then(|entry| Ok((entry, entry.parts()?)));
                let (entry, parts) = match parts {
                    Ok(found) => found,
                    Err(error) => {
                        errors.push(error);
                        continue;
                    }
                };
                let size = entry.stored_size();
                let is_encrypted = entry.obfuscation_key().is_some();
                let mut images: Vec<Image> = Vec::new();
                if parts.is_empty() {
                    images.push(image((index, None), false, entry.kind(), entry.sm(), None, size));
                }
                for (number, part) in parts.iter().enumerate() {
                    let size = if number == 0 { size } else { 0 };
                    let at = (index, Some(number));
                    images.push(image(at, false, part.kind, part.sm, Some(part), size));
                }
                images.iter_mut().for_each(|image| image.is_encrypted = is_encrypted);
                let size = entry.unpacked_size();
                jobs.push(Job { payload: Payload::Entry(entry), size, images });
            }
        }
        Container::Cubin(span) => match fatbin::CubinHeader::parse(span.bytes()) {
            Ok(cubin) => {
                let is_alone = found.place.section.is_none() && !found.place.searched;
                let size = span.size();
                let images = vec![image((0, None), is_alone, EntryKind::Elf, cubin.sm, None, size)];
                jobs.push(Job { payload: Payload::Span(span), size, images });
            }
            Err(error) => errors.push(error),
        },
        _ => {}
    }
    (jobs, errors)
}

impl Job<'_> {
    /// How long it takes, beside others.
    fn cost(&self) -> u64 {
        let weight = match &self.payload {
            Payload::Entry(entry) => match entry.compression() {
                Some(CompressionMethod::Zstd | CompressionMethod::Zlib) => 3,
                Some(_) => 2,
                None => 1,
            },
            Payload::Span(_) | Payload::File(_) => 1,
        };
        self.size.saturating_mul(weight)
    }

    /// The same in a region with a number.
    fn of_region(mut self, region: usize) -> Self {
        self.images.iter_mut().for_each(|image| image.place.region = region);
        self
    }

    /// Unpacks it, and calls `each` with the bytes of every image.
    fn run<T>(
        &self,
        (file, budget): (&Mapped, &Budget),
        buffer: &mut Scratch,
        each: &impl Fn(&Image, &[u8]) -> T,
    ) -> Vec<Result<T>> {
        let stored = match &self.payload {
            Payload::Span(span) => Some(*span),
            Payload::Entry(entry) => Some(entry.stored()),
            Payload::File(_) => None,
        };
        let end = |span: Span<'_>| span.at().saturating_add(span.size());
        let range = stored.map_or(0..self.size, |span| span.at()..end(span));
        file.reads(range.clone());
        let unpacked = match &self.payload {
            Payload::Span(span) => Ok(span.bytes()),
            Payload::File(bytes) => Ok(*bytes),
            Payload::Entry(entry) => metered(entry, buffer, budget),
        };
        let one = |image: &Image| {
            let bytes = match (image.part, &unpacked) {
                (_, Err(error)) => return Err(anyhow!("{}: {}", image.place, in_words(error))),
                (None, Ok(bytes)) => *bytes,
                (Some(part), Ok(bytes)) => part
                    .of(bytes)
                    .with_context(|| format!("{}: the part lies outside", image.place))?,
            };
            Ok(each(image, bytes))
        };
        let all = self.images.iter().map(one).collect();
        file.done_with(range);
        all
    }
}

/// The payload of an entry without compression and padding, in the buffer if need be.
///
/// # Errors
/// If it cannot be unpacked, not so many bytes are left, or there is no memory for it.
pub fn metered<'b>(
    entry: &RegionEntry<'b>,
    buffer: &'b mut Scratch,
    budget: &Budget,
) -> Result<&'b [u8]> {
    if entry.compression().is_none() {
        return Ok(without_padding(entry.kind(), entry.stored().bytes()));
    }
    let size = entry.unpack_size(usize::MAX)?;
    budget.take(format_args!("the entry at {:#x}", entry.at()), size as u64)?;
    unpacked(*entry, size, buffer)
}

/// The same of an entry that unpacks to so many bytes.
///
/// # Errors
/// If it cannot be unpacked, or there is no memory for it.
pub fn unpacked<'b>(
    entry: RegionEntry<'b>,
    size: usize,
    buffer: &'b mut Scratch,
) -> Result<&'b [u8]> {
    if entry.compression().is_none() {
        return Ok(without_padding(entry.kind(), entry.stored().bytes()));
    }
    let into = buffer.take(size)?;
    entry.unpack_into(into)?;
    Ok(into)
}
