//! Pointers in a file: the relocations that apply to them say where they lead, or the bytes themselves.

use crate::error::{Error, ErrorKind};
use crate::span::Span;
use elf_core::names::{ET_REL, SHN_LORESERVE, SHT_NOBITS, SHT_PROGBITS, SHT_REL, SHT_RELA};
use elf_core::{File, Name, Record, SectionFlags, SectionHeader};

/// Where a pointer in a file leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// Nowhere.
    Null,
    /// An address of the linked program, before it is loaded elsewhere.
    Address(u64),
    /// `offset` bytes into a section of an object file.
    Section {
        /// Index of the section.
        index: u32,
        /// Bytes from its start.
        offset: u64,
    },
    /// A symbol that another file defines, and an addend.
    Symbol {
        /// Index of the symbol.
        index: u32,
        /// Bytes from the symbol.
        addend: i64,
    },
}

impl Pointer {
    /// The file offset of what it leads to, counted from the start of `file`; none if that is not in the file.
    #[must_use]
    pub fn file_offset(self, file: &File<'_>) -> Option<u64> {
        match self {
            Self::Null | Self::Symbol { .. } => None,
            Self::Section { index, offset } => {
                let section = file.section(index).ok()?;
                (offset < section.file_size()).then(|| section.offset.checked_add(offset))?
            }
            Self::Address(address) => {
                let within = |start: u64, size: u64| {
                    address.checked_sub(start).filter(|&offset| offset < size)
                };
                let in_section = file.sections().iter().find_map(|section| {
                    let loaded =
                        section.flags.contains(SectionFlags::ALLOC) && section.r#type != SHT_NOBITS;
                    let offset = within(section.address, section.file_size()).filter(|_| loaded)?;
                    section.offset.checked_add(offset)
                });
                in_section.or_else(|| {
                    file.segments().iter().find_map(|segment| {
                        segment.offset.checked_add(within(segment.address, segment.file_size)?)
                    })
                })
            }
        }
    }
}

/// The address of what is at `offset` of a linked file; none if it is not loaded.
pub(crate) fn address_of(file: &File<'_>, offset: u64) -> Option<u64> {
    file.sections().iter().find_map(|section| {
        let loaded = section.flags.contains(SectionFlags::ALLOC) && section.r#type != SHT_NOBITS;
        let behind = offset
            .checked_sub(section.offset)
            .filter(|behind| loaded && *behind < section.file_size())?;
        section.address.checked_add(behind)
    })
}

/// Every place of a linked file that points to `address`: by a relocation, or by its bytes in data. Each is the index and the
/// header of its section, and a file offset.
pub(crate) fn pointing_to<'a>(
    file: &'a File<'a>,
    address: u64,
) -> impl Iterator<Item = (u32, SectionHeader, u64)> + 'a {
    let data = |section: &SectionHeader| {
        section.r#type == SHT_PROGBITS
            && section.flags.contains(SectionFlags::ALLOC)
            && !section.flags.contains(SectionFlags::EXECINSTR)
    };
    let records =
        file.sections().iter().filter_map(|section| file.relocations(&section).ok().flatten());
    let relative =
        move |record: &Record| record.symbol == 0 && record.addend == Some(address.cast_signed());
    let relocated = records.flat_map(|relocations| relocations.iter()).filter(relative).filter_map(
        move |record| {
            (0..=u32::MAX).zip(file.sections().iter()).find_map(|(index, section)| {
                let behind = record.offset.checked_sub(section.address);
                let behind = behind.filter(|behind| data(&section) && *behind < section.size)?;
                Some((index, section, section.offset.checked_add(behind)?))
            })
        },
    );
    let sections =
        (0..=u32::MAX).zip(file.sections().iter()).filter(move |(_, section)| data(section));
    let plain = sections.flat_map(move |(index, section)| {
        let bytes = file.section_data(&section).unwrap_or_default();
        let words = bytes.as_chunks::<8>().0;
        let words = (0..words.len())
            .zip(words)
            .filter(move |(_, word)| u64::from_le_bytes(**word) == address);
        words.map(move |(row, _)| {
            (index, section, section.offset.saturating_add((row as u64).saturating_mul(8)))
        })
    });
    relocated.chain(plain)
}

/// The most relocation tables that may apply to a section: there is one in an object file, and in a linked file those of the
/// dynamic linker, of which one is for other things.
const TABLES: usize = 4;

/// The rows of a relocation table among which are all that apply to the section. Tables are large, mostly sorted, and looked
/// into several times for a row of pointers.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    /// Index of the table's section; 0 for none.
    table: u32,
    start: usize,
    end: usize,
}

/// The pointers in one section.
#[derive(Clone, Debug)]
pub(crate) struct Pointers<'a> {
    file: &'a File<'a>,
    section: SectionHeader,
    tables: [Rows; TABLES],
}

impl<'a> Pointers<'a> {
    /// Finds the relocations that apply to section `index`.
    pub(crate) fn open(
        file: &'a File<'a>,
        index: u32,
        section: SectionHeader,
    ) -> Result<Self, Error> {
        let mut pointers = Self { file, section, tables: Default::default() };
        let start = pointers.place(0);
        let applies = |record: &Record| record.offset.wrapping_sub(start) < section.size;
        let mut free = pointers.tables.iter_mut();
        for (table, header) in (0..=u32::MAX).zip(file.sections().iter()) {
            let is_table = matches!(header.r#type, SHT_RELA | SHT_REL);
            if !is_table || (file.header().r#type == ET_REL && header.info != index) {
                continue;
            }
            let Some(relocations) = file.relocations(&header)? else { continue };
            let mut rows = (0..relocations.len())
                .zip(relocations.iter())
                .filter(|(_, record)| applies(record));
            let Some((start, _)) = rows.next() else { continue };
            let end = rows.last().map_or(start, |(last, _)| last).saturating_add(1);
            let kind = ErrorKind::Invalid {
                what: "number of relocation tables",
                value: TABLES as u64 + 1,
            };
            *free.next().ok_or(Error { at: section.offset, kind })? = Rows { table, start, end };
        }
        Ok(pointers)
    }

    /// The bytes of the section.
    pub(crate) fn span(&self) -> Result<Span<'a>, Error> {
        Ok(Span::new(self.file.section_data(&self.section)?, self.section.offset))
    }

    /// What relocations call the byte at `offset` of the section.
    fn place(&self, offset: u64) -> u64 {
        if self.is_object() { offset } else { self.section.address.saturating_add(offset) }
    }

    fn is_object(&self) -> bool {
        self.file.header().r#type == ET_REL
    }

    /// The pointer at file offset `at`, in whose bytes `value` stands.
    pub(crate) fn get(&self, at: u64, value: u64) -> Result<Pointer, Error> {
        let place = self.place(at.saturating_sub(self.section.offset));
        let Some((record, symbols)) = self.relocation(place)? else {
            return Ok(if value == 0 { Pointer::Null } else { Pointer::Address(value) });
        };
        let addend = record.addend.unwrap_or_else(|| value.cast_signed());
        if record.symbol == 0 {
            return Ok(Pointer::Address(addend.cast_unsigned()));
        }
        let symbol = self.file.symbol_table_at(symbols)?.get(record.symbol)?;
        Ok(if symbol.is_undefined() {
            Pointer::Symbol { index: record.symbol, addend }
        } else if self.is_object() && symbol.shndx < SHN_LORESERVE {
            Pointer::Section {
                index: symbol.shndx.into(),
                offset: symbol.value.wrapping_add_signed(addend),
            }
        } else {
            Pointer::Address(symbol.value.wrapping_add_signed(addend))
        })
    }

    /// The text that a pointer leads to, up to its NUL.
    pub(crate) fn text(&self, pointer: Pointer) -> Option<Name<'a>> {
        let file = Span::new(self.file.bytes(), 0);
        file.tail(pointer.file_offset(self.file)?)?.until_nul().map(Name)
    }

    /// The relocation of `place`, and the index of its symbol table.
    fn relocation(&self, place: u64) -> Result<Option<(Record, u32)>, Error> {
        for rows in self.tables.iter().filter(|rows| rows.table != 0) {
            let section = self.file.section(rows.table)?;
            let Some(relocations) = self.file.relocations(&section)? else { continue };
            let mut records = (rows.start..rows.end).filter_map(|row| relocations.get(row));
            if let Some(record) = records.find(|record| record.offset == place) {
                return Ok(Some((record, section.link)));
            }
        }
        Ok(None)
    }
}
