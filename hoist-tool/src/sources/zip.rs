//! Zip files: wheels, packages of conda. Members are looked at on all cores.

use std::io::{Read, Take};

use anyhow::{Error, Result, anyhow, bail, ensure};
use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};
use rayon::prelude::*;

use super::budget::Budget;
use super::stream::{Nest, begins_wanted};
use super::{Order, Source};
use crate::mapped::Mapped;
use crate::printable::Printable;

/// Deflate gives no more than this for a byte (RFC 1951 3.2.5).
const MOST: u64 = 1032;

struct Member {
    name: String,
    at: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    size: u64,
}

impl<T: Send, F: Fn(Source) -> T + Sync> Nest<'_, F> {
    /// What is made of the members of a zip file.
    pub(super) fn zip(
        &self,
        label: &str,
        is_named: bool,
        depth: usize,
        file: &Mapped,
    ) -> Vec<Result<T>> {
        let archive = match ZipArchive::from_slice(file.bytes()) {
            Ok(archive) => archive,
            Err(error) => return vec![Err(anyhow!("{label}: {error}"))],
        };
        if depth > Budget::DEPTH {
            return vec![Err(anyhow!(
                "{label}: more than {} archives in one another",
                Budget::DEPTH
            ))];
        }
        let (members, error) = members(&archive);
        if let Err(error) = check(&archive, &members) {
            return vec![Err(anyhow!("{label}: {error}"))];
        }
        let one = |member: &Member| {
            let name = format!("{label}:{}", member.name);
            self.member(&archive, member, &name, (is_named, depth + 1), file)
                .unwrap_or_else(|error| vec![Err(error.context(name.clone()))])
        };
        let mut all: Vec<_> = match self.order {
            Order::AtOnce => members.par_iter().with_max_len(1).flat_map(one).collect(),
            Order::OneByOne => members.iter().flat_map(one).collect(),
        };
        all.extend(error.map(|error| Err(anyhow!("{label}: {error}"))));
        all
    }

    fn member(
        &self,
        archive: &ZipSliceArchive<&[u8]>,
        member: &Member,
        name: &str,
        (is_named, depth): (bool, usize),
        file: &Mapped,
    ) -> Result<Vec<Result<T>>> {
        let entry = archive.get_entry(member.at)?;
        let stored = entry.data();
        let (start, end) = entry.compressed_data_range();
        let all = match member.method {
            CompressionMethod::Store => {
                ensure!(member.size == stored.len() as u64, "a size that lies");
                self.unpacked(name, (is_named, depth), stored, member.size)?
            }
            CompressionMethod::Deflate => {
                ensure!(
                    member.size / MOST <= stored.len() as u64,
                    "{} bytes claimed, where {} can hold {MOST} times as many at most",
                    member.size,
                    stored.len(),
                );
                self.unpacked(name, (is_named, depth), DeflateDecoder::new(stored), member.size)?
            }
            CompressionMethod::Zstd => {
                self.unpacked(name, (is_named, depth), zstd::Decoder::new(stored)?, member.size)?
            }
            method => bail!("compressed by method {}", method.as_id().as_u16()),
        };
        file.done_with(start..end);
        Ok(all)
    }

    /// What is made of what a reader gives, which must be `size` bytes.
    fn unpacked(
        &self,
        name: &str,
        (is_named, depth): (bool, usize),
        reader: impl Read,
        size: u64,
    ) -> Result<Vec<Result<T>>> {
        let mut reader = self.left.counted(reader).take(size.saturating_add(1));
        let Some(head) = begins_wanted(&mut reader)? else { return Ok(Vec::new()) };
        let head = std::io::Cursor::new(head);
        let mut whole = Sized { reader: head.chain(&mut reader), size, seen: 0 };
        Ok(self.stream(name, is_named, depth, &mut whole))
    }
}

/// Refuses members that share bytes: few bytes would be unpacked many times.
fn check(archive: &ZipSliceArchive<&[u8]>, members: &[Member]) -> Result<()> {
    let mut ranges: Vec<(u64, u64, &Member)> = Vec::new();
    for member in members {
        let range = archive.get_entry(member.at).map(|entry| entry.compressed_data_range());
        // what cannot be read is an error of its own
        ranges.extend(range.ok().map(|(start, end)| (start, end, member)));
    }
    ranges.retain(|(start, end, _)| start < end);
    ranges.sort_by_key(|(start, ..)| *start);
    for [(_, end, one), (start, _, other)] in ranges.array_windows() {
        let [one, other] = [one, other].map(|member| Printable::from(&*member.name));
        ensure!(start >= end, "members {one} and {other} share the bytes at {start:#x}");
    }
    Ok(())
}

/// A reader whose end must come after `size` bytes.
struct Sized<'r, R> {
    reader: std::io::Chain<std::io::Cursor<Vec<u8>>, &'r mut Take<R>>,
    size: u64,
    seen: u64,
}

impl<R: Read> Read for Sized<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(into)?;
        self.seen = self.seen.saturating_add(count as u64);
        let ended = count == 0 && !into.is_empty();
        if self.seen > self.size || ended && self.seen != self.size {
            let size = self.size;
            return Err(std::io::Error::other(format!("unpacks to another size than {size}")));
        }
        Ok(count)
    }
}

fn members(archive: &ZipSliceArchive<&[u8]>) -> (Vec<Member>, Option<Error>) {
    let mut members = Vec::new();
    let mut entries = archive.entries();
    loop {
        match entries.next_entry() {
            Ok(None) => return (members, None),
            Err(error) => return (members, Some(error.into())),
            Ok(Some(entry)) if entry.is_dir() => {}
            Ok(Some(entry)) => members.push(Member {
                name: String::from_utf8_lossy(entry.file_path().as_ref()).into_owned(),
                at: entry.wayfinder(),
                method: entry.compression_method(),
                size: entry.uncompressed_size_hint(),
            }),
        }
    }
}
