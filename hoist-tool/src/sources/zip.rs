//! Zip files: wheels, packages of conda.

use std::io::{Chain, Cursor, Read, Take};

use anyhow::{Error, Result, ensure};
use rawzip::{CompressionMethod, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::printable::Printable;

/// Deflate gives no more than this for a byte (RFC 1951 3.2.5).
pub(super) const MOST: u64 = 1032;

pub(super) struct Member {
    pub(super) name: String,
    pub(super) at: ZipArchiveEntryWayfinder,
    pub(super) method: CompressionMethod,
    pub(super) size: u64,
}

/// Refuses members that share bytes: few bytes would be unpacked many times.
pub(super) fn check(archive: &ZipSliceArchive<&[u8]>, members: &[Member]) -> Result<()> {
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
pub(super) struct Sized<'r, R> {
    reader: Chain<Cursor<Vec<u8>>, &'r mut Take<R>>,
    size: u64,
    seen: u64,
}

impl<'r, R: Read> Sized<'r, R> {
    /// What `head` and then `rest` give.
    pub(super) fn new(head: Vec<u8>, rest: &'r mut Take<R>, size: u64) -> Self {
        Self { reader: Cursor::new(head).chain(rest), size, seen: 0 }
    }
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

pub(super) fn members(archive: &ZipSliceArchive<&[u8]>) -> (Vec<Member>, Option<Error>) {
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
