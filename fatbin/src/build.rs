//! Regions built from images.

use crate::cubin::CubinHeader;
use crate::entry::{EntryOptions, RegionEntry};
use crate::error::{Error, ErrorKind};
use crate::kind::{CompressionMethod, EntryFlags, EntryKind, Sm, Suffix};
use crate::parts::Part;
use crate::ptx::PtxHeader;
use crate::raw;
use crate::sink::Sink;

/// An entry to be written, laid out as the tools of CUDA 13 do: identifier, options, payload.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// What the payload is.
    pub kind: EntryKind,
    /// The architecture it is for.
    pub sm: Sm,
    /// Major and minor version of the code, as in [`RegionEntry::code_version`].
    pub code_version: (u16, u16),
    /// Flags other than those of compression and suffix, which the other fields say.
    pub flags: EntryFlags,
    /// What the entry is called, or nothing.
    pub identifier: &'a [u8],
    /// What the entry says besides; nothing if it has parts.
    pub options: EntryOptions<'a>,
    /// The images in a concatenated entry, in the order of their offsets; none for other kinds.
    pub parts: &'a [Part],
    /// The payload as it is to be stored, without padding.
    pub stored: &'a [u8],
    /// How `stored` is compressed, and the size it unpacks to.
    pub compression: Option<(CompressionMethod, u64)>,
}

impl<'a> NewEntry<'a> {
    /// An entry for a cubin, not compressed.
    ///
    /// # Errors
    /// As [`CubinHeader::parse`].
    pub fn cubin(cubin: &'a [u8]) -> Result<Self, Error> {
        let parsed = CubinHeader::parse(cubin)?;
        let CubinHeader { sm, abi, .. } = parsed;
        let compat = parsed.compat.filter(|_| parsed.flags().contains(EntryFlags::COMPAT));
        Ok(Self {
            kind: EntryKind::Elf,
            sm,
            code_version: (1, abi.into()),
            flags: parsed.flags(),
            identifier: &[],
            parts: &[],
            options: compat.map_or(EntryOptions::None, EntryOptions::Compat),
            stored: cubin,
            compression: None,
        })
    }

    /// An entry for PTX, not compressed. A closing NUL should be part of the text: the tools store one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the text does not begin with `.version` and `.target`.
    pub fn ptx(text: &'a [u8]) -> Result<Self, Error> {
        let invalid = ErrorKind::Invalid {
            what: "PTX without .version and .target, size",
            value: text.len() as u64,
        };
        let header = PtxHeader::parse(text).ok_or(Error { at: 0, kind: invalid })?;
        let address = if header.address_64 { EntryFlags::ADDRESS_64 } else { EntryFlags::empty() };
        Ok(Self {
            kind: EntryKind::Ptx,
            sm: header.sm,
            code_version: header.version,
            flags: EntryFlags::LINUX | address,
            identifier: &[],
            parts: &[],
            options: EntryOptions::Compiler(&[]),
            stored: text,
            compression: None,
        })
    }

    /// A concatenated entry (CUDA 13.5), not compressed: `payload` is the images one after another, `parts` says where.
    #[must_use]
    pub const fn concatenated(parts: &'a [Part], payload: &'a [u8]) -> Self {
        Self {
            kind: EntryKind::Concatenated,
            sm: Sm::new(0),
            code_version: (0, 1),
            flags: EntryFlags::ADDRESS_64.union(EntryFlags::LINUX),
            identifier: &[],
            options: EntryOptions::None,
            parts,
            stored: payload,
            compression: None,
        }
    }

    /// The same entry with its payload compressed: `stored` unpacks to the payload that the entry has now.
    #[must_use]
    pub const fn compressed(self, method: CompressionMethod, stored: &'a [u8]) -> Self {
        let size = match self.compression {
            Some((_, size)) => size,
            None => self.stored.len() as u64,
        };
        Self { stored, compression: Some((method, size)), ..self }
    }

    /// The same entry with this architecture: for suffix `f`, which a cubin does not record.
    #[must_use]
    pub const fn with_sm(self, sm: Sm) -> Self {
        Self { sm, ..self }
    }

    /// The same entry for the place of `old`: with its name, its operating systems and languages, for PTX its options, and, if both are
    /// for one architecture, suffix `f`, which a cubin does not record.
    #[must_use]
    pub fn in_place_of(self, old: &RegionEntry<'a>) -> Self {
        let hosts = EntryFlags::LINUX | EntryFlags::MAC | EntryFlags::WINDOWS;
        let kept = old.flags().intersection(hosts | EntryFlags::CUDA | EntryFlags::OPENCL);
        let options = match (self.kind, old.options()) {
            (EntryKind::Ptx, options @ EntryOptions::Compiler(_)) => options,
            _ => self.options,
        };
        let is_family = old.sm().suffix == Suffix::Family && old.sm().number == self.sm.number;
        Self {
            sm: if is_family { old.sm() } else { self.sm },
            identifier: old.identifier().as_bytes(),
            flags: self.flags.difference(hosts) | kept,
            options,
            ..self
        }
    }

    /// The identifier and the NUL after it, which its size does not count.
    const fn identifier_bytes(&self) -> [&'a [u8]; 2] {
        if self.identifier.is_empty() { [&[], &[]] } else { [self.identifier, &[0]] }
    }

    /// The bytes of the options, with a NUL that their size does not count: after those of the compiler, before `.nv.compat`.
    const fn options_bytes(&self) -> Option<(&'a [u8], [&'a [u8]; 2])> {
        match self.options {
            _ if !self.parts.is_empty() => None,
            EntryOptions::None => None,
            EntryOptions::Compiler(bytes) => Some((bytes, [bytes, &[0]])),
            EntryOptions::Compat(bytes) => Some((bytes, [&[0], bytes])),
        }
    }

    fn options_at(&self) -> usize {
        size_of::<raw::Entry>().saturating_add(size_of_block(self.identifier_bytes()))
    }

    /// Bytes of the table of parts; 0 without parts.
    const fn table_size(&self) -> usize {
        if self.parts.is_empty() {
            return 0;
        }
        size_of::<raw::Parts>()
            .saturating_add(self.parts.len().saturating_mul(size_of::<raw::Part>()))
    }

    fn header_size(&self) -> usize {
        let size = |(_, block)| size_of::<raw::Options>().saturating_add(size_of_block(block));
        let options = self.options_bytes().map_or(0, size);
        self.options_at().saturating_add(self.table_size()).saturating_add(options)
    }

    fn payload(&self) -> Payload<'_> {
        Payload { stored: self.stored, method: self.compression.map(|(method, _)| method) }
    }

    fn size(&self) -> usize {
        self.header_size().saturating_add(self.payload().size())
    }

    fn write(&self, sink: &mut Sink<'_>) -> Result<(), Error> {
        let at = sink.at();
        let limit = |what, value: usize| {
            let kind = ErrorKind::Invalid { what, value: value as u64 };
            u32::try_from(value).map_err(|_| Error { at, kind })
        };
        let suffix = EntryFlags::SPECIFIC | EntryFlags::FAMILY;
        let method = self.compression.map_or(EntryFlags::empty(), |(method, _)| method.flag());
        let flags =
            self.flags.difference(suffix | EntryFlags::COMPRESSED) | method | self.sm.suffix.flag();
        sink.row(&raw::Entry {
            kind: self.kind.number().into(),
            version: 0x0101.into(),
            header_size: limit("entry header size", self.header_size())?.into(),
            payload_size: (self.payload().size() as u64).into(),
            compressed_size: compressed_size(at, self.compression, self.stored)?.into(),
            options: match self.options {
                EntryOptions::None if self.parts.is_empty() => 0.into(),
                _ => limit("options offset", self.options_at())?.into(),
            },
            code_minor: self.code_version.1.into(),
            code_major: self.code_version.0.into(),
            sm: self.sm.number.into(),
            identifier: if self.identifier.is_empty() { 0.into() } else { 0x40.into() },
            identifier_size: limit("identifier size", self.identifier.len())?.into(),
            flags: flags.bits().into(),
            obfuscation_key: 0.into(),
            unpacked_size: self.compression.map_or(0, |(_, size)| size).into(),
        })?;
        sink.padded(&self.identifier_bytes())?;
        if !self.parts.is_empty() {
            let size = limit("size of the table of parts", self.table_size())?;
            let count = limit("number of parts", self.parts.len())?;
            sink.row(&raw::Parts { count: count.into(), size: size.into() })?;
            self.parts.iter().try_for_each(|part| sink.row(&part.to_raw(at)?))?;
        }
        if let Some((options, block)) = self.options_bytes() {
            let offset = self.options_at().saturating_add(size_of::<raw::Options>());
            let (offset, size) =
                (limit("options offset", offset)?, limit("options size", options.len())?);
            sink.row(&raw::Options { offset: offset.into(), size: size.into() })?;
            sink.padded(&block)?;
        }
        sink.padded(&self.payload().runs())
    }
}

/// A payload as it is stored, without padding.
struct Payload<'a> {
    stored: &'a [u8],
    method: Option<CompressionMethod>,
}

impl<'a> Payload<'a> {
    /// The bytes, and what has to follow them besides padding: NVIDIA's readers want a byte behind a zlib stream, and fail at the
    /// one of eight streams that needs no padding, even if fatbinary wrote it (13.5).
    const fn runs(&self) -> [&'a [u8]; 2] {
        [self.stored, if matches!(self.method, Some(CompressionMethod::Zlib)) { &[0] } else { &[] }]
    }

    /// The size with padding.
    fn size(&self) -> usize {
        let [stored, behind] = self.runs();
        padded(stored.len().saturating_add(behind.len()))
    }
}

/// The padded size of bytes and their NUL.
const fn size_of_block([first, second]: [&[u8]; 2]) -> usize {
    padded(first.len().saturating_add(second.len()))
}

/// Rounds up to a multiple of 8.
const fn padded(size: usize) -> usize {
    size.saturating_add(7) & !7
}

/// An entry of a region to be written.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A new one.
    New(NewEntry<'a>),
    /// One that exists, byte for byte.
    Kept(RegionEntry<'a>),
    /// One that exists, with the same payload in another compression. Its header stays as it is, in whatever order older tools
    /// laid it out, but for the sizes, the flag of compression and what is said of obfuscation.
    Repacked {
        /// The entry.
        entry: RegionEntry<'a>,
        /// The payload as it is to be stored, without padding.
        stored: &'a [u8],
        /// How `stored` is compressed, and the size it unpacks to.
        compression: Option<(CompressionMethod, u64)>,
        /// The key with which `stored` is obfuscated, if NVIDIA's tools made it so: [`RegionEntry::obfuscation_key`].
        obfuscation_key: Option<u64>,
    },
}

impl Item<'_> {
    fn size(&self) -> usize {
        match self {
            Self::New(entry) => entry.size(),
            Self::Kept(entry) => entry.bytes().len(),
            Self::Repacked { entry, stored, compression, .. } => {
                let method = compression.map(|(method, _)| method);
                let header = entry.header_span().bytes().len();
                header.saturating_add(Payload { stored, method }.size())
            }
        }
    }

    fn write(&self, sink: &mut Sink<'_>) -> Result<(), Error> {
        match self {
            Self::New(entry) => entry.write(sink),
            Self::Kept(entry) => sink.bytes(entry.bytes()),
            Self::Repacked { entry, stored, compression, obfuscation_key } => {
                if let (Some(key), None) = (entry.obfuscation_key(), obfuscation_key) {
                    return Err(Error { at: entry.at(), kind: ErrorKind::Obfuscated { key } });
                }
                let payload = Payload { stored, method: compression.map(|(method, _)| method) };
                let method = payload.method.map_or(EntryFlags::empty(), CompressionMethod::flag);
                let obfuscated =
                    obfuscation_key.map_or(EntryFlags::empty(), |_| EntryFlags::OBFUSCATED);
                let mut header = *entry.header();
                header.payload_size = (payload.size() as u64).into();
                header.compressed_size = compressed_size(sink.at(), *compression, stored)?.into();
                let storage = EntryFlags::COMPRESSED | EntryFlags::OBFUSCATED;
                header.flags =
                    (entry.flags().difference(storage) | method | obfuscated).bits().into();
                header.obfuscation_key = obfuscation_key.unwrap_or(0).into();
                header.unpacked_size = compression.map_or(0, |(_, size)| size).into();
                sink.row(&header)?;
                sink.bytes(entry.header_span().bytes().get(size_of_val(&header)..).unwrap_or(&[]))?;
                sink.padded(&payload.runs())
            }
        }
    }
}

impl<'a> From<NewEntry<'a>> for Item<'a> {
    fn from(entry: NewEntry<'a>) -> Self {
        Self::New(entry)
    }
}

impl<'a> From<RegionEntry<'a>> for Item<'a> {
    fn from(entry: RegionEntry<'a>) -> Self {
        Self::Kept(entry)
    }
}

/// What the header says of the compressed size.
fn compressed_size(
    at: u64,
    compression: Option<(CompressionMethod, u64)>,
    stored: &[u8],
) -> Result<u32, Error> {
    let Some(_) = compression else { return Ok(0) };
    let kind = ErrorKind::Invalid { what: "compressed size", value: stored.len() as u64 };
    u32::try_from(stored.len()).map_err(|_| Error { at, kind })
}

/// The bytes that a region of these entries takes.
#[must_use]
pub fn region_size(items: &[Item<'_>]) -> usize {
    let sizes = items.iter().map(Item::size);
    sizes.fold(size_of::<raw::Region>(), usize::saturating_add)
}

/// Writes a region of these entries, in their order, into a buffer of exactly [`region_size`] bytes.
///
/// ```
/// use fatbin::{CompressionMethod, NewEntry, Region, region_size, write_region};
///
/// let ptx = b".version 8.0\n.target sm_75\n.address_size 64\n\0";
/// let items = [NewEntry::ptx(ptx)?.into()];
/// let mut buffer = [0; 256];
/// let bytes = &mut buffer[..region_size(&items)];
/// write_region(&items, bytes)?;
/// let entry = Region::parse(&*bytes)?.entries().next().unwrap()?;
/// assert_eq!((entry.sm().number, entry.code_version()), (75, (8, 0)));
/// # Ok::<_, fatbin::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Buffer`] if the buffer has another size; [`ErrorKind::Invalid`] if a size does not fit the 32 bits of its
/// field; [`ErrorKind::Obfuscated`] if the payload of an obfuscated entry is to be repacked as one that is not.
pub fn write_region(items: &[Item<'_>], into: &mut [u8]) -> Result<(), Error> {
    let size = region_size(items);
    let mut sink = Sink::new(into, size)?;
    sink.row(&raw::Region {
        magic: raw::REGION_MAGIC.into(),
        version: 1.into(),
        header_size: 16.into(),
        size: (size.saturating_sub(size_of::<raw::Region>()) as u64).into(),
    })?;
    items.iter().try_for_each(|item| item.write(&mut sink))
}

/// A region of these entries.
///
/// # Errors
/// As [`write_region`].
#[cfg(feature = "alloc")]
pub fn region(items: &[Item<'_>]) -> Result<alloc::vec::Vec<u8>, Error> {
    let mut bytes = alloc::vec![0; region_size(items)];
    write_region(items, &mut bytes)?;
    Ok(bytes)
}
