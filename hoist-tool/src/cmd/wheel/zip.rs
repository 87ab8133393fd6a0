//! Zip files with other contents of some members (APPNOTE 4.3): all that stays is copied, with its times, attributes and order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;

use anyhow::{Context as _, Result, bail, ensure};
use flate2::read::DeflateDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use rayon::prelude::*;
use zerocopy::byteorder::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::budget::Budget;
use crate::mapped::Mapped;
use crate::printable::Printable;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// General purpose flags: encrypted; sizes stand behind the data.
const ENCRYPTED: u16 = 1;
const SIZES_BEHIND: u16 = 8;
/// Pieces of this size are deflated at the same time. They look back into none before them, which costs less than a thousandth, and are
/// the same on any machine.
const PIECE: usize = 4 << 20;
/// The extra field with sizes of 64 bits.
const ZIP64: u16 = 1;

/// A local file header (4.3.7).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Local {
    signature: U32,
    needed: U16,
    flags: U16,
    method: U16,
    time: U16,
    date: U16,
    crc: U32,
    packed: U32,
    size: U32,
    name: U16,
    extra: U16,
}

/// A file header of the central directory (4.3.12).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Central {
    signature: U32,
    made_by: U16,
    needed: U16,
    flags: U16,
    method: U16,
    time: U16,
    date: U16,
    crc: U32,
    packed: U32,
    size: U32,
    name: U16,
    extra: U16,
    comment: U16,
    disk: U16,
    internal: U16,
    external: U32,
    offset: U32,
}

/// The end of the central directory (4.3.16).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct End {
    signature: U32,
    disk: U16,
    directory_disk: U16,
    count_here: U16,
    count: U16,
    size: U32,
    offset: U32,
    comment: U16,
}

/// A member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name, as text.
    pub name: String,
    central: Central,
    /// Its record in the central directory.
    record: Range<u64>,
    /// From its local header to the end of its data and of what says their size.
    whole: Range<u64>,
    data: Range<u64>,
}

/// A zip file.
#[derive(Debug)]
pub struct Zip<'a> {
    bytes: &'a [u8],
    /// Its members, in the order of the central directory.
    pub members: Vec<Member>,
    directory: u64,
    end: u64,
}

/// New contents of a member, packed, in a file without a name.
#[derive(Debug)]
pub struct New {
    packed: Mapped,
    crc: u32,
    size: u64,
}

fn at<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8], at: u64, what: &str) -> Result<T> {
    let bytes = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
    let found = bytes.and_then(|bytes| T::read_from_prefix(bytes).ok());
    Ok(found.with_context(|| format!("{what} at {at:#x} leaves the file"))?.0)
}

fn range(bytes: &[u8], range: Range<u64>) -> Result<&[u8]> {
    let found = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    let found = found.and_then(|(start, end)| bytes.get(start..end));
    found.with_context(|| format!("{:#x}..{:#x} leaves the file", range.start, range.end))
}

impl<'a> Zip<'a> {
    /// Reads the central directory.
    ///
    /// # Errors
    /// If the file is damaged, or larger than 32 bits can say.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let archive = rawzip::ZipArchive::from_slice(bytes)?;
        let (directory, end) = (archive.directory_offset(), archive.eocd_offset());
        let last: End = at(bytes, end, "the end of the directory")?;
        let is_small = last.signature == END
            && last.count != 0xffff
            && u64::from(last.offset.get()) == directory
            && directory.checked_add(last.size.get().into()) == Some(end);
        ensure!(is_small, "is a zip file of 64 bits, or has bytes before or between its parts");
        let mut members = Vec::new();
        let mut next = directory;
        while next < end {
            let member = Member::parse(bytes, next)?;
            next = member.record.end;
            members.push(member);
        }
        ensure!(
            next == end && members.len() == usize::from(last.count.get()),
            "has a directory that is damaged"
        );
        let mut ranges: Vec<_> = members.iter().map(|member| member.whole.clone()).collect();
        ranges.sort_by_key(|range| range.start);
        let apart = ranges.array_windows().all(|[one, other]| one.end <= other.start);
        let inside = ranges.last().is_none_or(|last| last.end <= directory);
        ensure!(apart && inside, "has members that share bytes");
        Ok(Self { bytes, members, directory, end })
    }

    /// What a member unpacks to, piece by piece.
    fn reader(&self, member: &Member) -> Result<Box<dyn Read + 'a>> {
        ensure!(member.central.flags.get() & ENCRYPTED == 0, "is encrypted");
        let data = range(self.bytes, member.data.clone())?;
        Ok(match member.central.method.get() {
            STORED => Box::new(data),
            DEFLATED => Box::new(DeflateDecoder::new(data)),
            other => bail!("is compressed by method {other}"),
        })
    }

    /// Whether a member begins with any of these; also not, if it cannot be read.
    #[must_use]
    pub fn begins_with(&self, member: &Member, heads: &[&[u8]]) -> bool {
        let size = heads.iter().map(|head| head.len()).max().unwrap_or(0);
        let mut found = Vec::new();
        let reader = self.reader(member).ok();
        let read = reader.map(|reader| reader.take(size as u64).read_to_end(&mut found));
        read.is_some_and(|read| read.is_ok()) && heads.iter().any(|head| found.starts_with(head))
    }

    /// The contents of a member, in a file without a name.
    ///
    /// # Errors
    /// If they cannot be unpacked, or have another checksum or size.
    pub fn unpack(&self, member: &Member, budget: &Budget) -> Result<Mapped> {
        let size = u64::from(member.central.size.get());
        budget.take(Printable::from(&*member.name), size)?;
        let mut file = tempfile::tempfile()?;
        let mut reader = self.reader(member)?.take(size.saturating_add(1));
        let crc = copy(&mut reader, &mut file)?;
        ensure!(crc.1 == size, "unpacks to another size than {size}");
        ensure!(crc.0 == member.central.crc.get(), "has another checksum");
        Mapped::map(&file)
    }

    /// Writes the file with new contents of some members, by their numbers.
    ///
    /// # Errors
    /// If it would be larger than 32 bits can say, or cannot be written.
    pub fn write(&self, file: &Mapped, new: &BTreeMap<usize, New>, out: &mut File) -> Result<()> {
        let too_large = "would be larger than 32 bits can say";
        let mut order: Vec<_> = self.members.iter().enumerate().collect();
        order.sort_by_key(|(_, member)| member.whole.start);
        let mut offsets = vec![0_u64; self.members.len()];
        let (mut read, mut written) = (0_u64, 0_u64);
        for (index, member) in order {
            written += keep(file, read..member.whole.start, out)?;
            offsets.get_mut(index).into_iter().for_each(|offset| *offset = written);
            written += match new.get(&index) {
                None => keep(file, member.whole.clone(), out)?,
                Some(new) => member.write(self.bytes, new, out)?,
            };
            read = member.whole.end;
        }
        written += keep(file, read..self.directory, out)?;
        let start = written;
        for (index, member) in self.members.iter().enumerate() {
            let mut central = member.central;
            let offset = offsets.get(index).copied().unwrap_or_default();
            central.offset = u32::try_from(offset).ok().context(too_large)?.into();
            if let Some(new) = new.get(&index) {
                central.flags = (central.flags.get() & !SIZES_BEHIND).into();
                (central.crc, central.packed, central.size) = new.sizes().context(too_large)?;
            }
            out.write_all(central.as_bytes())?;
            let rest = member.record.start + size_of::<Central>() as u64..member.record.end;
            keep(file, rest, out)?;
        }
        let mut end: End = at(self.bytes, self.end, "the end of the directory")?;
        end.offset =
            u32::try_from(start).ok().filter(|at| *at != u32::MAX).context(too_large)?.into();
        out.write_all(end.as_bytes())?;
        let rest = self.end + size_of::<End>() as u64..self.bytes.len() as u64;
        keep(file, rest, out)?;
        Ok(())
    }
}

impl Member {
    /// The member whose record is at an offset.
    fn parse(bytes: &[u8], offset: u64) -> Result<Self> {
        let central: Central = at(bytes, offset, "a record")?;
        ensure!(central.signature == CENTRAL, "has no record at {offset:#x}");
        let header = size_of::<Central>() as u64;
        let names = [central.name, central.extra, central.comment];
        let end = names.iter().fold(offset + header, |end, size| end + u64::from(size.get()));
        let name = offset + header..offset + header + u64::from(central.name.get());
        let name = String::from_utf8_lossy(range(bytes, name)?).into_owned();
        range(bytes, offset..end)?;
        let limits = [central.packed, central.size, central.offset];
        ensure!(limits.iter().all(|limit| *limit != u32::MAX), "{name}: is of 64 bits");
        let start = u64::from(central.offset.get());
        let local: Local = at(bytes, start, "a member's header")?;
        ensure!(local.signature == LOCAL, "{name}: has no header at {start:#x}");
        let from = start
            + size_of::<Local>() as u64
            + u64::from(local.name.get())
            + u64::from(local.extra.get());
        let data = from..from + u64::from(central.packed.get());
        range(bytes, data.clone())?;
        let mut last = data.end;
        if local.flags.get() & SIZES_BEHIND != 0 {
            let signature: U32 = at(bytes, last, "sizes behind a member")?;
            last += if signature == DESCRIPTOR { 16 } else { 12 };
        }
        Ok(Self { name, central, record: offset..end, whole: start..last, data })
    }

    /// Writes the member with new contents.
    fn write(&self, bytes: &[u8], new: &New, out: &mut File) -> Result<u64> {
        let mut local: Local = at(bytes, self.whole.start, "a member's header")?;
        let names = self.whole.start + size_of::<Local>() as u64;
        let name = range(bytes, names..names + u64::from(local.name.get()))?;
        let extra = range(bytes, names + u64::from(local.name.get())..self.data.start)?;
        let extra = without_sizes(extra);
        local.flags = (local.flags.get() & !SIZES_BEHIND).into();
        local.extra = u16::try_from(extra.len())?.into();
        (local.crc, local.packed, local.size) =
            new.sizes().with_context(|| format!("{}: is too large", self.name))?;
        let data = new.packed.bytes();
        for part in [local.as_bytes(), name, &extra] {
            out.write_all(part)?;
        }
        let size = keep(&new.packed, 0..data.len() as u64, out)?;
        Ok(size + (size_of::<Local>() + name.len() + extra.len()) as u64)
    }

    /// These contents, packed as the member was.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn pack(&self, content: &Mapped) -> Result<New> {
        let mut file = tempfile::tempfile()?;
        let (crc, size) = if self.central.method == STORED {
            copy(&mut Chunks { file: content, at: 0 }, &mut file)?
        } else {
            deflate(content, &mut file)?
        };
        Ok(New { packed: Mapped::map(&file)?, crc, size })
    }
}

impl New {
    /// Checksum, size of what is packed, and size: none if a size needs more than 32 bits.
    fn sizes(&self) -> Option<(U32, U32, U32)> {
        let small = |size: u64| u32::try_from(size).ok().filter(|size| *size != u32::MAX);
        let packed = small(self.packed.bytes().len() as u64)?;
        Some((self.crc.into(), packed.into(), small(self.size)?.into()))
    }
}

/// Extra fields without the one with sizes of 64 bits, which are others now.
fn without_sizes(mut extra: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    while let Some((id, size)) = extra.first_chunk::<4>().map(|[a, b, c, d]| {
        (u16::from_le_bytes([*a, *b]), usize::from(u16::from_le_bytes([*c, *d])))
    }) {
        let Some((field, rest)) = extra.split_at_checked(size + 4) else { break };
        if id != ZIP64 {
            kept.extend(field);
        }
        extra = rest;
    }
    kept.extend(extra);
    kept
}

/// Reads a file piece by piece, and lets go of what was read.
struct Chunks<'f> {
    file: &'f Mapped,
    at: usize,
}

impl Read for Chunks<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut rest = self.file.bytes().get(self.at..).unwrap_or_default();
        let count = rest.read(into)?;
        self.file.done_with(self.at as u64..(self.at + count) as u64);
        self.at += count;
        Ok(count)
    }
}

/// Deflates a file, on all cores; gives its checksum and size.
///
/// # Errors
/// If it cannot be written.
pub fn deflate(content: &Mapped, to: &mut File) -> Result<(u32, u64)> {
    deflate_pieces(content, PIECE, to)
}

/// The same in pieces of some size.
fn deflate_pieces(content: &Mapped, piece: usize, to: &mut File) -> Result<(u32, u64)> {
    let pieces: Vec<&[u8]> = match content.bytes() {
        [] => vec![&[]],
        bytes => bytes.chunks(piece).collect(),
    };
    let last = pieces.len().saturating_sub(1);
    let at_once = rayon::current_num_threads().saturating_mul(2).max(1);
    let (mut crc, mut at) = (Crc::new(), 0_u64);
    for (first, some) in (0..).step_by(at_once).zip(pieces.chunks(at_once)) {
        let pack = |(index, piece): (usize, &&[u8])| deflated(piece, first + index == last);
        let packed: Vec<_> = some.par_iter().enumerate().map(pack).collect::<Result<_>>()?;
        for (sum, bytes) in packed {
            crc.combine(&sum);
            to.write_all(&bytes)?;
        }
        let end = some.iter().fold(at, |at, piece| at.saturating_add(piece.len() as u64));
        content.done_with(at..end);
        at = end;
    }
    Ok((crc.sum(), at))
}

/// A piece of what is deflated, and its checksum; it ends at a byte, so that the next can follow.
fn deflated(piece: &[u8], is_last: bool) -> Result<(Crc, Vec<u8>)> {
    let mut crc = Crc::new();
    crc.update(piece);
    let mut encoder = Compress::new(Compression::default(), false);
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut packed = Vec::new();
    loop {
        packed.reserve(1 << 16);
        let read = usize::try_from(encoder.total_in())?;
        let rest = piece.get(read..).unwrap_or_default();
        let status = encoder.compress_vec(rest, &mut packed, flush)?;
        // what leaves room has nothing more to say
        let is_flushed =
            packed.len() < packed.capacity() && encoder.total_in() == piece.len() as u64;
        if status == Status::StreamEnd || (!is_last && is_flushed) {
            return Ok((crc, packed));
        }
    }
}

/// Copies, and tells checksum and size.
fn copy(from: &mut dyn Read, to: &mut dyn Write) -> Result<(u32, u64)> {
    let (mut crc, mut size) = (Crc::new(), 0_u64);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = from.read(&mut buffer)?;
        let Some(bytes @ [_, ..]) = buffer.get(..count) else { return Ok((crc.sum(), size)) };
        crc.update(bytes);
        size += count as u64;
        to.write_all(bytes)?;
    }
}

/// Copies a range of a file; gives its size.
fn keep(file: &Mapped, range: Range<u64>, out: &mut File) -> Result<u64> {
    const PIECE: usize = 8 << 20;
    let bytes = self::range(file.bytes(), range.clone())?;
    for (at, piece) in (range.start..).step_by(PIECE).zip(bytes.chunks(PIECE)) {
        out.write_all(piece)?;
        file.done_with(at..at + piece.len() as u64);
    }

    Ok(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek as _;

    #[test]
    fn what_is_deflated_in_pieces_is_one_stream() {
        const PIECE: usize = 1 << 14;
        for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 40 * PIECE + 5] {
            let mut state = 1_u32;
            let bytes: Vec<u8> = (0..size)
                .map(|at| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if at % 3 == 0 { (state >> 24) as u8 } else { 7 }
                })
                .collect();
            let mut file = tempfile::tempfile().unwrap();
            let (crc, length) =
                deflate_pieces(&Mapped::of(bytes.clone()), PIECE, &mut file).unwrap();
            let mut whole = Crc::new();
            whole.update(&bytes);
            assert_eq!((crc, length), (whole.sum(), bytes.len() as u64), "{size}");
            file.rewind().unwrap();
            let (mut decoder, mut unpacked) = (DeflateDecoder::new(&file), Vec::new());
            decoder.read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == bytes, "{size}");
            assert_eq!(decoder.total_in(), file.metadata().unwrap().len(), "{size}");
        }
    }
}
