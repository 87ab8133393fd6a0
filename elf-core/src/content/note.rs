//! Notes: records of various owners (gABI ch. 7, "Note Sections").

use crate::content::name::Name;
use crate::content::property::Properties;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::{NT_GNU_PROPERTY_TYPE_0, PT_GNU_PROPERTY, PT_NOTE, SHT_NOTE};
use crate::structs::raw;
use crate::table::class::Class;
use crate::table::entry;
use crate::table::entry::Entry;
use crate::views::encoding::Encoding;
use crate::views::section::SectionHeader;
use crate::views::segment::ProgramHeader;
use zerocopy::byteorder::ByteOrder;

/// A note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// File offset of its head.
    pub at: u64,
    /// Who says what the type means, without the NULs that end it.
    pub owner: Name<'a>,
    /// All bytes of the owner's name.
    pub name: &'a [u8],
    /// `n_type`: what the descriptor is, by owner: [`note_type`](crate::names::note_type).
    pub r#type: u32,
    /// The descriptor.
    pub data: &'a [u8],
    /// File offset of the descriptor.
    pub data_at: u64,
    encoding: Encoding,
}

impl<'a> Note<'a> {
    /// The program properties, if that is what the note holds: `NT_GNU_PROPERTY_TYPE_0` of owner `GNU`.
    #[must_use]
    pub fn properties(&self) -> Option<Properties<'a>> {
        let are = self.owner == "GNU" && self.r#type == NT_GNU_PROPERTY_TYPE_0;
        are.then(|| Properties::new(self.data, self.encoding, self.data_at))
    }
}

/// The notes of a section or segment in order. One that cannot be read is the last.
#[derive(Clone, Debug)]
pub struct Notes<'a> {
    rest: &'a [u8],
    at: u64,
    alignment: usize,
    encoding: Encoding,
}

impl<'a> Notes<'a> {
    /// The notes in `bytes`, which lie at file offset `at`: heads and descriptors are aligned to 8 bytes if `alignment` is
    /// that, to 4 if it is less.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if `alignment` is another one.
    pub fn new(
        bytes: &'a [u8],
        encoding: Encoding,
        alignment: u64,
        at: u64,
    ) -> Result<Self, Error> {
        let alignment = match alignment {
            0..=4 => 4,
            8 => 8,
            value => {
                return Err(Error {
                    at,
                    kind: ErrorKind::Invalid { what: "alignment of notes", value },
                });
            }
        };
        Ok(Self { rest: bytes, at, alignment, encoding })
    }

    /// Takes a note; what is left is nothing after an error.
    fn step(&mut self) -> Result<Note<'a>, Error> {
        let (bytes, at) = (core::mem::take(&mut self.rest), self.at);
        let head = entry::row::<Head>(bytes, self.encoding, 0, at)?;
        let outside = ErrorKind::Outside { what: "note", count: 1, file: bytes.len() as u64 };
        let part = |start: usize, size: u32| {
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            let part = if size == 0 { &[] } else { bytes.get(start..end)? };
            Some((part, end.checked_next_multiple_of(self.alignment)?))
        };
        let parts = part(HEAD, head.owner)
            .and_then(|(owner, start)| Some((owner, start, part(start, head.data)?)));
        let (name, start, (data, next)) = parts.ok_or(Error { at, kind: outside })?;
        self.rest = bytes.get(next..).unwrap_or(&[]);
        self.at = at.saturating_add(next as u64);
        let end = name.iter().rposition(|&byte| byte != 0).map_or(0, |last| last.saturating_add(1));
        let owner = Name(name.get(..end).unwrap_or(name));
        let data_at = at.saturating_add(start as u64);
        Ok(Note { at, owner, name, r#type: head.r#type, data, data_at, encoding: self.encoding })
    }
}

impl<'a> Iterator for Notes<'a> {
    type Item = Result<Note<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() { None } else { Some(self.step()) }
    }
}

impl core::iter::FusedIterator for Notes<'_> {}

impl<'a> File<'a> {
    /// The notes in a section of type `SHT_NOTE`; `None` for other types.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the section leaves the file, [`ErrorKind::Invalid`] if its alignment is not that of notes.
    pub fn section_notes(&self, section: &SectionHeader) -> Result<Option<Notes<'a>>, Error> {
        if section.r#type != SHT_NOTE {
            return Ok(None);
        }
        Notes::new(self.section_data(section)?, self.encoding(), section.alignment, section.offset)
            .map(Some)
    }

    /// The notes in a segment of type `PT_NOTE` or `PT_GNU_PROPERTY`; `None` for other types.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the segment leaves the file, [`ErrorKind::Invalid`] if its alignment is not that of notes.
    pub fn segment_notes(&self, segment: &ProgramHeader) -> Result<Option<Notes<'a>>, Error> {
        if segment.r#type != PT_NOTE && segment.r#type != PT_GNU_PROPERTY {
            return Ok(None);
        }
        Notes::new(self.segment_data(segment)?, self.encoding(), segment.alignment, segment.offset)
            .map(Some)
    }
}

/// The head of a note: sizes in bytes.
struct Head {
    owner: u32,
    data: u32,
    r#type: u32,
}

const HEAD: usize = size_of::<raw::Nhdr>();

impl Entry for Head {
    type View = Self;
    type Raw<C: Class> = raw::Nhdr<C::Order>;
    const WHAT: &'static str = "note";
}

impl<O: ByteOrder> From<raw::Nhdr<O>> for Head {
    fn from(raw: raw::Nhdr<O>) -> Self {
        Self { owner: raw.n_namesz.get(), data: raw.n_descsz.get(), r#type: raw.n_type.get() }
    }
}

#[cfg(all(test, feature = "elf32", feature = "big-endian"))]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// Owners `GNU` and, with a NUL too many, `Go`, descriptors of 5 and 0 bytes, aligned to `align`.
    fn bytes(align: usize, big: bool) -> Vec<u8> {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut bytes = Vec::new();
        for (owner, r#type, data) in [(&b"GNU\0"[..], 3, &b"12345"[..]), (b"Go\0\0", 7, b"")] {
            for value in [owner.len() as u32, data.len() as u32, r#type] {
                bytes.extend(word(value));
            }
            bytes.extend(owner);
            bytes.resize(bytes.len().next_multiple_of(align), 0);
            bytes.extend(data);
            bytes.resize(bytes.len().next_multiple_of(align), 0);
        }
        bytes
    }

    #[test]
    fn both_alignments_and_orders() {
        for (align, second) in [(4, 24), (8, 24)] {
            for (big, encoding) in [(false, Encoding::Elf32Le), (true, Encoding::Elf64Be)] {
                let bytes = bytes(align, big);
                let notes = Notes::new(&bytes, encoding, align as u64, 0x40).unwrap();
                let notes: Vec<_> = notes.map(Result::unwrap).collect();
                let found: Vec<_> = notes
                    .iter()
                    .map(|note| (note.at, note.owner.to_str().unwrap(), note.r#type, note.data))
                    .collect();
                assert_eq!(found, [(0x40, "GNU", 3, &b"12345"[..]), (0x40 + second, "Go", 7, b"")]);
                assert_eq!(notes[0].data_at, 0x50);
                assert!(notes[0].properties().is_none());
            }
        }
    }

    #[test]
    fn every_truncation_is_an_error_or_ends_between_notes() {
        let bytes = bytes(4, false);
        for end in 1..bytes.len() {
            let notes = Notes::new(&bytes[..end], Encoding::Elf64Le, 4, 0x40).unwrap();
            let good = notes.clone().take_while(Result::is_ok).count();
            match end {
                21..=24 => assert_eq!((good, notes.count()), (1, 1), "padding may be missing"),
                _ => assert_eq!(
                    (good, notes.count()),
                    (usize::from(end > 24), usize::from(end > 24) + 1)
                ),
            }
        }
    }

    #[test]
    fn errors() {
        let bytes = bytes(4, false);
        let error = |bytes| {
            Notes::new(bytes, Encoding::Elf64Le, 1, 0x40)
                .unwrap()
                .next()
                .unwrap()
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(&bytes[..11]), "note at offset 0x40 is outside its 0xb bytes");
        assert_eq!(error(&bytes[..20]), "note at offset 0x40 is outside its 0x14 bytes");
        let error = Notes::new(&bytes, Encoding::Elf64Le, 16, 0x40).unwrap_err();
        assert_eq!(error.to_string(), "alignment of notes is 0x10 at offset 0x40");
    }
}
