//! Zip files with other contents of some members (APPNOTE 4.3): all that stays is copied, with its times, attributes and order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;

use anyhow::{Context as _, Result, bail, ensure};
use flate2::read::DeflateDecoder;
use flate2::{Compression, Crc};
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::little_endian::U32;

use crate::budget::Budget;
use crate::mapped::Mapped;
use crate::printable::Printable;

pub use deflate::deflate;
use structs::{
    CENTRAL, Central, DEFLATED, DESCRIPTOR, ENCRYPTED, LOCAL, Local, SIZES_BEHIND, STORED, UTF8,
    at, range,
};
use zip64::{Directory, Values};

mod deflate;
mod structs;
mod zip64;

/// A member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name, as text.
    pub name: String,
    central: Central,
    values: Values,
    /// Its record in the central directory.
    record: Range<u64>,
    /// The extra fields of that.
    fields: Range<u64>,
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
    directory: Directory,
}

/// New contents of a member, packed, in a file without a name.
#[derive(Debug)]
pub struct New {
    packed: Mapped,
    crc: u32,
    size: u64,
}

impl<'a> Zip<'a> {
    /// Reads the central directory.
    ///
    /// # Errors
    /// If the file is damaged, or has bytes between its parts.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let end = rawzip::ZipArchive::from_slice(bytes).context("is no whole zip file")?;
        let end = end.eocd_offset();
        let directory = Directory::of(bytes, end)?;
        let mut members = Vec::new();
        let mut next = directory.start;
        while next < directory.end() {
            let member = Member::parse(bytes, next)?;
            next = member.record.end;
            members.push(member);
        }
        ensure!(
            next == directory.end() && members.len() as u64 == directory.count,
            "has a directory that is damaged"
        );
        let mut ranges: Vec<_> = members.iter().map(|member| member.whole.clone()).collect();
        ranges.sort_by_key(|range| range.start);
        let apart = ranges.array_windows().all(|[one, other]| one.end <= other.start);
        let inside = ranges.last().is_none_or(|last| last.end <= directory.start);
        ensure!(apart && inside, "has members that share bytes");
        Ok(Self { bytes, members, directory })
    }

    /// What a member unpacks to, piece by piece.
    fn reader(&self, member: &Member) -> Result<Box<dyn Read + 'a>> {
        ensure!(member.central.flags.get() & ENCRYPTED == 0, "is encrypted");
        let data = range(self.bytes, member.data.clone())?;
        Ok(match member.central.method.get() {
            STORED => Box::new(data),
            DEFLATED => Box::new(DeflateDecoder::new(data)),
            other => bail!("is compressed by method {other}{}", structs::method(other)),
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

    /// What is said of members that cannot be read, and so are not looked at.
    #[must_use]
    pub fn unread(&self) -> Vec<String> {
        let mut all: BTreeMap<String, (&str, usize)> = BTreeMap::new();
        for member in self.members.iter().filter(|member| member.values.size > 0) {
            if let Err(error) = self.reader(member) {
                all.entry(error.to_string()).or_insert((&member.name, 0)).1 += 1;
            }
        }
        let said = all.into_iter().map(|(why, (name, count))| {
            let mut said = Printable::from(name).to_string();
            if count > 1 {
                let _ = write!(said, " and {} more", count - 1);
            }
            format!("{said}: {why}, which is not read: it stays as it is, whatever is in it")
        });
        said.collect()
    }

    /// The contents of a member, in a file without a name.
    ///
    /// # Errors
    /// If they cannot be unpacked, or have another checksum or size.
    pub fn unpack(&self, member: &Member, budget: &Budget) -> Result<Mapped> {
        let size = member.values.size;
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
    /// If it cannot be written.
    pub fn write(&self, file: &Mapped, new: &BTreeMap<usize, New>, out: &mut File) -> Result<()> {
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
        written += keep(file, read..self.directory.start, out)?;
        let mut size = 0_u64;
        for (index, member) in self.members.iter().enumerate() {
            let offset = offsets.get(index).copied().unwrap_or_default();
            size += member.write_record(self.bytes, offset, new.get(&index), out)?;
        }
        let rest = self.directory.write_end(self.bytes, (written, size), out)?;
        keep(file, rest..self.bytes.len() as u64, out)?;
        Ok(())
    }
}

impl Member {
    /// The member whose record is at an offset.
    fn parse(bytes: &[u8], offset: u64) -> Result<Self> {
        let central: Central = at(bytes, offset, "a record")?;
        ensure!(central.signature == CENTRAL, "has no record at {offset:#x}");
        let header = size_of::<Central>() as u64;
        let parts = [central.name, central.extra, central.comment];
        let end = parts.iter().fold(offset + header, |end, size| end + u64::from(size.get()));
        let names = offset + header..offset + header + u64::from(central.name.get());
        let is_utf8 = central.flags.get() & UTF8 != 0;
        let name = structs::name(range(bytes, names.clone())?, is_utf8);
        range(bytes, offset..end)?;
        let fields = names.end..names.end + u64::from(central.extra.get());
        let values =
            Values::of(&central, range(bytes, fields.clone())?).with_context(|| name.clone())?;
        ensure!(zip64::is_here(central.disk), "{name}: is on another disk");
        let local: Local = at(bytes, values.offset, "a member's header")?;
        ensure!(local.signature == LOCAL, "{name}: has no header at {:#x}", values.offset);
        let named = values.offset + size_of::<Local>() as u64 + u64::from(local.name.get());
        let from = named + u64::from(local.extra.get());
        let to = from.checked_add(values.packed);
        let data = from..to.with_context(|| format!("{name}: is too large"))?;
        range(bytes, data.clone())?;
        let mut last = data.end;
        if local.flags.get() & SIZES_BEHIND != 0 {
            let signature: U32 = at(bytes, last, "sizes behind a member")?;
            let sizes = if values.is_wide_behind(range(bytes, named..from)?) { 20 } else { 12 };
            last += sizes + if signature == DESCRIPTOR { 4 } else { 0 };
        }
        let whole = values.offset..last;
        Ok(Self { name, central, values, record: offset..end, fields, whole, data })
    }

    /// Writes the member's record in the directory, which begins at `offset` now; gives its size.
    fn write_record(
        &self,
        bytes: &[u8],
        offset: u64,
        new: Option<&New>,
        out: &mut File,
    ) -> Result<u64> {
        let mut central = self.central;
        let mut values = Values { offset, ..self.values };
        if let Some(new) = new {
            central.flags = (central.flags.get() & !SIZES_BEHIND).into();
            central.crc = new.crc.into();
            (values.size, values.packed) = (new.size, new.packed_size());
        }
        let extra = range(bytes, self.fields.clone())?;
        let extra = values
            .put(&mut central, extra, new.is_some())
            .with_context(|| format!("{}: its extra fields", Printable::from(&*self.name)))?;
        let header = size_of::<Central>() as u64;
        let name = range(bytes, self.record.start + header..self.fields.start)?;
        let comment = range(bytes, self.fields.end..self.record.end)?;
        let parts = [central.as_bytes(), name, &extra, comment];
        parts.iter().try_for_each(|part| out.write_all(part))?;
        Ok(parts.iter().map(|part| part.len() as u64).sum())
    }

    /// How many bytes its contents take, packed.
    #[must_use]
    pub const fn packed_size(&self) -> u64 {
        self.data.end.saturating_sub(self.data.start)
    }

    /// Writes the member with new contents.
    fn write(&self, bytes: &[u8], new: &New, out: &mut File) -> Result<u64> {
        let mut local: Local = at(bytes, self.whole.start, "a member's header")?;
        let names = self.whole.start + size_of::<Local>() as u64;
        let name = range(bytes, names..names + u64::from(local.name.get()))?;
        let extra = range(bytes, names + u64::from(local.name.get())..self.data.start)?;
        local.flags = (local.flags.get() & !SIZES_BEHIND).into();
        local.crc = new.crc.into();
        let values = Values { size: new.size, packed: new.packed_size(), offset: 0 };
        let extra = values.put_local(&mut local, extra)?;
        let data = new.packed.bytes();
        for part in [local.as_bytes(), name, &extra] {
            out.write_all(part)?;
        }
        let size = keep(&new.packed, 0..data.len() as u64, out)?;
        Ok(size + (size_of::<Local>() + name.len() + extra.len()) as u64)
    }

    /// These contents, packed as the member was; if that is by Deflate, at a level.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn pack(&self, content: &Mapped, level: Compression) -> Result<New> {
        let mut file = tempfile::tempfile()?;
        let (crc, size) = if self.central.method == STORED {
            copy(&mut Chunks { file: content, at: 0 }, &mut file)?
        } else {
            deflate(content, level, &mut file)?
        };
        Ok(New { packed: Mapped::map(&file)?, crc, size })
    }
}

impl New {
    /// How many bytes they take, packed.
    #[must_use]
    pub fn packed_size(&self) -> u64 {
        self.packed.bytes().len() as u64
    }
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
