//! Zip files: wheels, packages of conda.

use core::ops::Range;
use std::io::{self, Chain, Cursor, Read, Take};

use anyhow::{Error, Result, ensure};
use rawzip::{CompressionMethod, ReaderAt, ZipArchive, ZipArchiveEntryWayfinder, ZipLocator};

use crate::lent::{Slices, Stream};
use crate::mapped::Mapped;
use crate::printable::Printable;

/// Pages are let go when this many bytes lie behind.
pub(super) const BEHIND: u64 = 8 << 20;
/// Bytes of records that are read together: more than one can have.
const RECORDS: usize = 1 << 18;

/// The bytes of an archive: in memory, or read where they are wanted.
pub(super) trait Content: ReaderAt + Sync {
    fn size(&self) -> u64;

    /// Says that a range will be read from its start to its end.
    fn will_read(&self, range: Range<u64>);

    /// Says that a range is done with.
    fn done_with(&self, range: Range<u64>);

    /// A large part as a file of its own, if it need not be in memory for that.
    fn part(&self, range: Range<u64>) -> Option<Stream>;
}

impl ReaderAt for Mapped {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let from = usize::try_from(at).ok().and_then(|at| self.bytes().get(at..));
        from.unwrap_or_default().read(into)
    }
}

impl Content for Mapped {
    fn size(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn will_read(&self, range: Range<u64>) {
        self.will_read(range);
    }

    fn done_with(&self, range: Range<u64>) {
        self.done_with(range);
    }

    fn part(&self, _range: Range<u64>) -> Option<Stream> {
        None
    }
}

impl Content for Stream {
    fn size(&self) -> u64 {
        crate::lent::Lender::size(self)
    }

    fn will_read(&self, _range: Range<u64>) {}

    fn done_with(&self, _range: Range<u64>) {}

    fn part(&self, range: Range<u64>) -> Option<Stream> {
        let is_large = Slices::is_large(range.end.saturating_sub(range.start));
        is_large.then(|| self.part(range))
    }
}

/// The archive that these bytes are.
pub(super) fn archive<C: Content>(content: &C) -> Result<ZipArchive<&C>, rawzip::Error> {
    let mut buffer = vec![0; RECORDS];
    let found = ZipLocator::new().locate_in_reader(content, &mut buffer, content.size());
    found.map_err(|(_, error)| error)
}

/// Deflate gives no more than this for a byte (RFC 1951 3.2.5).
pub(super) const MOST: u64 = 1032;

pub(super) struct Member {
    pub(super) name: String,
    pub(super) at: ZipArchiveEntryWayfinder,
    pub(super) method: CompressionMethod,
    pub(super) size: u64,
}

/// Refuses members that share bytes: few bytes would be unpacked many times.
pub(super) fn check<C: Content>(archive: &ZipArchive<&C>, members: &[Member]) -> Result<()> {
    let mut ranges: Vec<(u64, u64, &Member)> = Vec::new();
    let mut gone = 0;
    for member in members {
        let range = archive.get_entry(member.at).map(|entry| entry.compressed_data_range());
        // what cannot be read is an error of its own
        ranges.extend(range.ok().map(|(start, end)| (start, end, member)));
        // members may be smaller than what comes into memory with their headers
        let at = ranges.last().map_or(0, |(start, ..)| *start);
        if at.saturating_sub(gone) >= BEHIND {
            archive.get_ref().done_with(gone..at);
            gone = at;
        }
    }
    archive.get_ref().done_with(gone..archive.get_ref().size());
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

pub(super) fn members<C: Content>(archive: &ZipArchive<&C>) -> (Vec<Member>, Option<Error>) {
    let mut members = Vec::new();
    let mut buffer = vec![0; RECORDS];
    let mut entries = archive.entries(&mut buffer);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A file that knows what was done with.
    struct Kept(Vec<u8>, Mutex<Vec<Range<u64>>>);

    impl ReaderAt for Kept {
        fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
            self.0.get(at as usize..).unwrap_or_default().read(into)
        }
    }

    impl Content for Kept {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn will_read(&self, _range: Range<u64>) {}

        fn done_with(&self, range: Range<u64>) {
            self.1.lock().unwrap().push(range);
        }

        fn part(&self, _range: Range<u64>) -> Option<Stream> {
            None
        }
    }

    /// A record of a zip file: signature, numbers of so many bytes each.
    fn record(signature: &[u8; 4], fields: &[(u32, usize)]) -> Vec<u8> {
        let mut bytes = signature.to_vec();
        fields.iter().for_each(|(value, size)| bytes.extend(&value.to_le_bytes()[..*size]));
        bytes
    }

    #[test]
    fn pages_of_headers_are_let_go() {
        const SIZE: u32 = 3 << 20;
        let sizes = [(0, 4), (SIZE, 4), (SIZE, 4), (1, 2), (0, 2)];
        let (mut bytes, mut table) = (Vec::new(), Vec::new());
        for number in 0..7u32 {
            let at = bytes.len() as u32;
            let common = [&[(20, 2), (0, 2), (0, 2), (0, 4)][..], &sizes].concat();
            bytes.extend(record(b"PK\x03\x04", &common));
            bytes.push(b'a' + number as u8);
            bytes.resize(bytes.len() + SIZE as usize, 0);
            let rest = [(0, 2), (0, 2), (0, 2), (0, 4), (at, 4)];
            table.extend(record(b"PK\x01\x02", &[&[(20, 2)][..], &common, &rest].concat()));
            table.push(b'a' + number as u8);
        }
        let (start, size) = (bytes.len() as u32, table.len() as u32);
        bytes.append(&mut table);
        let end = [(0, 2), (0, 2), (7, 2), (7, 2), (size, 4), (start, 4), (0, 2)];
        bytes.extend(record(b"PK\x05\x06", &end));
        let whole = bytes.len() as u64;
        let kept = Kept(bytes, Mutex::default());
        let archive = archive(&kept).unwrap();
        let (all, error) = members(&archive);
        assert!(error.is_none() && all.len() == 7);
        check(&archive, &all).unwrap();
        let gone = kept.1.lock().unwrap().clone();
        assert!(gone.windows(2).all(|pair| pair[0].end == pair[1].start), "{gone:?}");
        let most = gone.iter().map(|range| range.end - range.start).max().unwrap();
        assert!(gone.len() >= 3 && most < 2 * BEHIND, "{gone:?}");
        assert_eq!((gone[0].start, gone.last().unwrap().end), (0, whole));
    }
}
