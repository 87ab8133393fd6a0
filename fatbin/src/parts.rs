//! A concatenated entry: several images compressed as one (CUDA 13.5).

use crate::entry::{RegionEntry, suffix};
use crate::error::{Error, ErrorKind};
use crate::kind::{EntryFlags, EntryKind, Sm};
use crate::raw;

/// The images in a concatenated entry. Their table lies in the header: nothing is unpacked to read it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts<'a>(&'a [raw::Part]);

impl<'a> RegionEntry<'a> {
    /// The images in a concatenated entry; none for other kinds.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] or [`ErrorKind::Invalid`] if the table of parts is not in the header.
    pub fn parts(&self) -> Result<Parts<'a>, Error> {
        if self.kind() == EntryKind::Concatenated {
            Parts::parse(self)
        } else {
            Ok(Parts::default())
        }
    }
}

impl<'a> Parts<'a> {
    fn parse(entry: &RegionEntry<'a>) -> Result<Self, Error> {
        let header = entry.header_span();
        let at = u64::from(entry.header().options.get());
        let table: &raw::Parts = header.row("table of parts", at)?;
        let count = u64::from(table.count.get());
        let rows = at.saturating_add(size_of::<raw::Parts>() as u64);
        let parts: &[raw::Part] = header.rows("table of parts", rows, count)?;
        let unpacked = entry.unpacked_size();
        let outside = |part: &raw::Part| {
            u64::from(part.offset.get()).saturating_add(part.size.get()) > unpacked
        };
        match parts.iter().zip(0..=u64::MAX).find(|(part, _)| outside(part)) {
            None => Ok(Self(parts)),
            Some((part, index)) => {
                let row = rows.saturating_add(index.saturating_mul(size_of::<raw::Part>() as u64));
                let left = unpacked.saturating_sub(part.offset.get().into());
                Err(header
                    .error(row, ErrorKind::Outside { what: "part", size: part.size.get(), left }))
            }
        }
    }

    /// Number of parts.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parts in order.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = Part> + DoubleEndedIterator + Clone + use<'a> {
        self.0.iter().map(Part::new)
    }
}

/// One image in a concatenated entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What the image is.
    pub kind: EntryKind,
    /// The architecture it is for.
    pub sm: Sm,
    /// Its flags, without those of compression.
    pub flags: EntryFlags,
    /// Major and minor version of the code.
    pub code_version: (u16, u16),
    /// Offset of the image in the unpacked payload.
    pub offset: u64,
    /// Bytes of the image.
    pub size: u64,
}

impl Part {
    fn new(raw: &raw::Part) -> Self {
        let flags = EntryFlags::from_bits_retain(raw.flags.get());
        Self {
            kind: EntryKind::from_number(raw.kind.get()),
            sm: Sm { number: raw.sm.get(), suffix: suffix(flags) },
            flags,
            code_version: (raw.code_major.get(), raw.code_minor.get()),
            offset: raw.offset.get().into(),
            size: raw.size.get(),
        }
    }

    /// The row of a table for it.
    pub(crate) fn to_raw(self, at: u64) -> Result<raw::Part, Error> {
        let kind = ErrorKind::Invalid { what: "offset of a part", value: self.offset };
        let offset = u32::try_from(self.offset).map_err(|_| Error { at, kind })?;
        let suffix = EntryFlags::SPECIFIC | EntryFlags::FAMILY;
        let flags = self.flags.difference(suffix | EntryFlags::COMPRESSED) | self.sm.suffix.flag();
        Ok(raw::Part {
            kind: self.kind.number().into(),
            version: 0x0101.into(),
            offset: offset.into(),
            size: self.size.into(),
            compressed_size: 0.into(),
            options: 0.into(),
            code_minor: self.code_version.1.into(),
            code_major: self.code_version.0.into(),
            sm: self.sm.number.into(),
            identifier: 0.into(),
            identifier_size: 0.into(),
            flags: flags.bits().into(),
            obfuscation_key: 0.into(),
            unpacked_size: 0.into(),
        })
    }

    /// The image in the unpacked payload of its entry.
    #[must_use]
    pub fn of<'a>(&self, unpacked: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset).ok()?;
        unpacked.get(start..)?.get(..usize::try_from(self.size).ok()?)
    }
}
