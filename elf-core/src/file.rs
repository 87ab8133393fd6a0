//! A file: header and tables checked once, the rest on demand.

use crate::class::{Class, Encoding, with_class};
use crate::error::{Error, ErrorKind};
use crate::name::{Name, StringTable};
use crate::names::{
    PN_XNUM, SHN_LORESERVE, SHN_XINDEX, SHT_DYNSYM, SHT_GROUP, SHT_REL, SHT_RELA, SHT_STRTAB,
    SHT_SYMTAB, SHT_SYMTAB_SHNDX,
};
use crate::record::Relocations;
use crate::section::{CompressionHeader, SectionFlags, SectionHeader};
use crate::segment::ProgramHeader;
use crate::symbol::{Symbol, SymbolTable, Word};
use crate::table::{self, Entry, Table};
use crate::{raw32, raw64};
use zerocopy::byteorder::ByteOrder;

/// The file header (gABI ch. 2) but for what only finds the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// `e_ident[EI_OSABI]`: `ELFOSABI_*`.
    pub os_abi: u8,
    /// `e_ident[EI_ABIVERSION]`.
    pub abi_version: u8,
    /// `e_type`: `ET_*`.
    pub r#type: u16,
    /// `e_machine`: `EM_*`.
    pub machine: u16,
    /// `e_version`: 1, but for older CUDA tools, which write their own.
    pub version: u32,
    /// Address of the entry point, or 0.
    pub entry: u64,
    /// Processor-specific flags.
    pub flags: u32,
    /// File offset of the program headers, or 0.
    pub program_headers: u64,
    /// `e_phentsize`.
    pub program_header_size: u16,
    /// `e_phnum` as it stands; [`File::segments`] knows the number.
    pub program_header_count: u16,
    /// File offset of the section headers, or 0.
    pub section_headers: u64,
    /// `e_shentsize`.
    pub section_header_size: u16,
    /// `e_shnum` as it stands; [`File::sections`] knows the number.
    pub section_header_count: u16,
    /// `e_shstrndx` as it stands; [`File::section_names`] knows the table.
    pub section_names: u16,
    /// `e_ehsize`: size of the file header.
    pub header_size: u16,
}

impl Entry for FileHeader {
    type View = Self;
    type Raw<C: Class> = C::Ehdr;
    const WHAT: &'static str = "file header";
}

/// An ELF file in memory, of either class and byte order.
#[derive(Clone, Copy)]
pub struct File<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
    header: FileHeader,
    sections: Table<'a, SectionHeader>,
    segments: Table<'a, ProgramHeader>,
    section_names: StringTable<'a>,
    section_names_index: u32,
}

impl<'a> File<'a> {
    /// Reads the file header and finds section headers, program headers and section names.
    ///
    /// Extended numbering is resolved: more than 65,279 sections, more than 65,534 segments (gABI ch. 2).
    ///
    /// # Errors
    /// [`ErrorKind::NotElf`], [`ErrorKind::UnknownClass`], [`ErrorKind::UnknownByteOrder`] by `e_ident`;
    /// [`ErrorKind::Outside`] if a table leaves the file; [`ErrorKind::EntrySize`] if its entries are not the gABI's;
    /// [`ErrorKind::NoSection`] or [`ErrorKind::SectionType`] if the section names are not in a string table.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let encoding = encoding_of(bytes)?;
        let header = one::<FileHeader>(bytes, encoding, 0)?;
        let first = first_section(bytes, encoding, &header)?;
        let sections = match (first, u64::from(header.section_header_count)) {
            (None, _) => Table::empty(),
            (Some(first), 0) => Table::parse(bytes, encoding, header.section_headers, first.size)?,
            (Some(_), count) => Table::parse(bytes, encoding, header.section_headers, count)?,
        };
        let mut file = Self {
            bytes,
            encoding,
            header,
            sections,
            segments: segments(bytes, encoding, &header, first)?,
            section_names: StringTable::default(),
            section_names_index: match (header.section_names, first) {
                (SHN_XINDEX, Some(first)) => first.link,
                (index, _) => index.into(),
            },
        };
        if file.section_names_index != 0 {
            file.section_names = file.string_table(file.section_names_index, "e_shstrndx")?;
        }
        Ok(file)
    }

    /// All bytes of the file.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Class and byte order.
    #[must_use]
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The file header.
    #[must_use]
    pub const fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The section headers, the first of which is the null section.
    #[must_use]
    pub const fn sections(&self) -> Table<'a, SectionHeader> {
        self.sections
    }

    /// The program headers.
    #[must_use]
    pub const fn segments(&self) -> Table<'a, ProgramHeader> {
        self.segments
    }

    /// The section names.
    #[must_use]
    pub const fn section_names(&self) -> StringTable<'a> {
        self.section_names
    }

    /// Index of the section that holds the section names, or 0.
    #[must_use]
    pub const fn section_names_index(&self) -> u32 {
        self.section_names_index
    }

    /// The header of section `index`.
    ///
    /// # Errors
    /// [`ErrorKind::NoSection`] if there are fewer sections.
    #[inline]
    pub fn section(&self, index: u32) -> Result<SectionHeader, Error> {
        self.linked_section(index, "an index")
    }

    /// The name of a section.
    ///
    /// # Errors
    /// [`ErrorKind::NoString`] if the name table does not hold it.
    #[inline]
    pub fn section_name(&self, section: &SectionHeader) -> Result<Name<'a>, Error> {
        self.section_names.get(section.name)
    }

    /// The bytes of a section as they stand in the file: none for `SHT_NOBITS`.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if they leave the file.
    #[inline]
    pub fn section_data(&self, section: &SectionHeader) -> Result<&'a [u8], Error> {
        match section.file_size() {
            0 => Ok(&[]),
            size => table::bytes(self.bytes, "section data", section.offset, size),
        }
    }

    /// The bytes of a segment as they stand in the file.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if they leave the file.
    pub fn segment_data(&self, segment: &ProgramHeader) -> Result<&'a [u8], Error> {
        match segment.file_size {
            0 => Ok(&[]),
            size => table::bytes(self.bytes, "segment data", segment.offset, size),
        }
    }

    /// The compression header of a section with `SHF_COMPRESSED` and the compressed bytes behind it.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the section leaves the file or is too short for the header.
    pub fn compressed(
        &self,
        section: &SectionHeader,
    ) -> Result<Option<(CompressionHeader, &'a [u8])>, Error> {
        if !section.flags.contains(SectionFlags::COMPRESSED) {
            return Ok(None);
        }
        let data = self.section_data(section)?;
        let header = one::<CompressionHeader>(data, self.encoding, 0).map_err(|_| Error {
            at: section.offset,
            kind: ErrorKind::Outside {
                what: CompressionHeader::WHAT,
                count: 1,
                file: data.len() as u64,
            },
        })?;
        let size =
            with_class!(self.encoding, C => size_of::<<CompressionHeader as Entry>::Raw<C>>());
        Ok(data.get(size..).map(|rest| (header, rest)))
    }

    /// The rows of a section that is a table of `E`.
    ///
    /// # Errors
    /// [`ErrorKind::EntrySize`] if `sh_entsize` is neither 0 nor the gABI's, [`ErrorKind::UnevenTable`] if a part of a row is
    /// left, [`ErrorKind::Outside`] if the section leaves the file.
    pub fn rows<E: Entry>(&self, section: &SectionHeader) -> Result<Table<'a, E>, Error> {
        let expected = with_class!(self.encoding, C => size_of::<E::Raw<C>>()) as u64;
        if section.entry_size != expected && section.entry_size != 0 {
            let kind =
                ErrorKind::EntrySize { what: "sh_entsize", found: section.entry_size, expected };
            return Err(Error { at: section.offset, kind });
        }
        match section.file_size() {
            0 => Ok(Table::empty()),
            size => Table::parse_bytes(self.bytes, self.encoding, section.offset, size),
        }
    }

    /// The symbol table (`SHT_SYMTAB`), if there is one.
    ///
    /// # Errors
    /// As [`symbol_table_at`](Self::symbol_table_at).
    pub fn symbol_table(&self) -> Result<Option<SymbolTable<'a>>, Error> {
        // there is one, and compilers put it at the end
        let behind = self.sections.iter().rev().position(|section| section.r#type == SHT_SYMTAB);
        let index =
            behind.and_then(|behind| self.sections.len().checked_sub(behind)?.checked_sub(1));
        let index = index.and_then(|index| u32::try_from(index).ok());
        index.map(|index| self.symbol_table_at(index)).transpose()
    }

    /// The table of symbols for dynamic linking (`SHT_DYNSYM`), if there is one.
    ///
    /// # Errors
    /// As [`symbol_table_at`](Self::symbol_table_at).
    pub fn dynamic_symbol_table(&self) -> Result<Option<SymbolTable<'a>>, Error> {
        self.first_of(SHT_DYNSYM).map(|index| self.symbol_table_at(index)).transpose()
    }

    /// The symbol table that is section `index`.
    ///
    /// # Errors
    /// [`ErrorKind::NoSection`] or [`ErrorKind::SectionType`] if that is none, or its `sh_link` is no string table; else as
    /// [`rows`](Self::rows).
    pub fn symbol_table_at(&self, index: u32) -> Result<SymbolTable<'a>, Error> {
        let section = self.linked_section(index, "sh_link")?;
        if section.r#type != SHT_SYMTAB && section.r#type != SHT_DYNSYM {
            let kind = ErrorKind::SectionType { what: "symbol table", found: section.r#type };
            return Err(Error { at: section.offset, kind });
        }
        let symbols: Table<'a, Symbol> = self.rows(&section)?;
        Ok(SymbolTable {
            section: index,
            at: section.offset,
            symbols,
            names: self.string_table(section.link, "sh_link")?,
            extended: self.extended_indices(index)?,
            first_global: section.info,
        })
    }

    /// The relocations of a section of type `SHT_RELA` or `SHT_REL`; `None` for other types.
    ///
    /// `sh_info` is the section they apply to (in `ET_REL`), `sh_link` the symbol table they mean.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn relocations(&self, section: &SectionHeader) -> Result<Option<Relocations<'a>>, Error> {
        Ok(match section.r#type {
            SHT_RELA => Some(Relocations::Rela(self.rows(section)?)),
            SHT_REL => Some(Relocations::Rel(self.rows(section)?)),
            _ => None,
        })
    }

    /// The words of a section group: flags first, then the members' indices; `None` for other types (gABI ch. 3).
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn group(
        &self,
        section: &SectionHeader,
    ) -> Result<Option<impl Iterator<Item = u32> + Clone + use<'a>>, Error> {
        match section.r#type {
            SHT_GROUP => Ok(Some(self.rows::<Word>(section)?.iter())),
            _ => Ok(None),
        }
    }

    /// The string table that is section `index`, named by the field `what`.
    ///
    /// # Errors
    /// [`ErrorKind::NoSection`], [`ErrorKind::SectionType`] or [`ErrorKind::Outside`].
    pub fn string_table(&self, index: u32, what: &'static str) -> Result<StringTable<'a>, Error> {
        let section = self.linked_section(index, what)?;
        if section.r#type != SHT_STRTAB {
            let kind = ErrorKind::SectionType { what: "string table", found: section.r#type };
            return Err(Error { at: section.offset, kind });
        }
        Ok(StringTable::new(self.section_data(&section)?, section.offset))
    }

    fn linked_section(&self, index: u32, what: &'static str) -> Result<SectionHeader, Error> {
        usize::try_from(index).ok().and_then(|index| self.sections.get(index)).ok_or(Error {
            at: self.header.section_headers,
            kind: ErrorKind::NoSection { what, index, count: self.sections.len() as u64 },
        })
    }

    /// Index of the first section of this type.
    fn first_of(&self, r#type: u32) -> Option<u32> {
        self.sections
            .position(|section| section.r#type == r#type)
            .and_then(|index| u32::try_from(index).ok())
    }

    /// The `SHT_SYMTAB_SHNDX` section of symbol table `index`. Only files with so many sections have one.
    fn extended_indices(&self, index: u32) -> Result<Option<Table<'a, Word>>, Error> {
        if self.sections.len() < SHN_LORESERVE.into() {
            return Ok(None);
        }
        let is =
            |section: &SectionHeader| section.r#type == SHT_SYMTAB_SHNDX && section.link == index;
        let found = self.sections.position(is).and_then(|at| self.sections.get(at));
        found.map(|section| self.rows(&section)).transpose()
    }
}

impl core::fmt::Debug for File<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("File")
            .field("encoding", &self.encoding)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// Class and byte order by `e_ident` (gABI ch. 2, "ELF Identification").
fn encoding_of(bytes: &[u8]) -> Result<Encoding, Error> {
    let fail = |at, kind| Err(Error { at, kind });
    match bytes {
        [0x7f, b'E', b'L', b'F', 1, 1, ..] => Ok(Encoding::Elf32Le),
        [0x7f, b'E', b'L', b'F', 1, 2, ..] => Ok(Encoding::Elf32Be),
        [0x7f, b'E', b'L', b'F', 2, 1, ..] => Ok(Encoding::Elf64Le),
        [0x7f, b'E', b'L', b'F', 2, 2, ..] => Ok(Encoding::Elf64Be),
        [0x7f, b'E', b'L', b'F', 1 | 2, data, ..] => fail(5, ErrorKind::UnknownByteOrder(*data)),
        [0x7f, b'E', b'L', b'F', class, ..] => fail(4, ErrorKind::UnknownClass(*class)),
        _ => fail(0, ErrorKind::NotElf),
    }
}

/// The one row at file offset `at`.
fn one<E: Entry>(bytes: &[u8], encoding: Encoding, at: u64) -> Result<E::View, Error> {
    let outside = ErrorKind::Outside { what: E::WHAT, count: 1, file: bytes.len() as u64 };
    Table::<E>::parse(bytes, encoding, at, 1)?.get(0).ok_or(Error { at, kind: outside })
}

/// Section 0, which holds what the file header has no room for, if there are section headers.
fn first_section(
    bytes: &[u8],
    encoding: Encoding,
    header: &FileHeader,
) -> Result<Option<SectionHeader>, Error> {
    if header.section_headers == 0 {
        return Ok(None);
    }
    let expected = with_class!(encoding, C => size_of::<<C as Class>::Shdr>()) as u64;
    entry_size("e_shentsize", header.section_header_size, expected)?;
    one::<SectionHeader>(bytes, encoding, header.section_headers).map(Some)
}

/// The program headers (gABI ch. 7).
fn segments<'a>(
    bytes: &'a [u8],
    encoding: Encoding,
    header: &FileHeader,
    first: Option<SectionHeader>,
) -> Result<Table<'a, ProgramHeader>, Error> {
    let count = match (header.program_header_count, first) {
        (PN_XNUM, Some(first)) => first.info,
        (count, _) => count.into(),
    };
    if count == 0 {
        return Ok(Table::empty());
    }
    let expected = with_class!(encoding, C => size_of::<<C as Class>::Phdr>()) as u64;
    entry_size("e_phentsize", header.program_header_size, expected)?;
    Table::parse(bytes, encoding, header.program_headers, count.into())
}

/// Checks an entry size in the file header.
fn entry_size(what: &'static str, found: u16, expected: u64) -> Result<(), Error> {
    let found = found.into();
    if found == expected {
        Ok(())
    } else {
        Err(Error { at: 0, kind: ErrorKind::EntrySize { what, found, expected } })
    }
}

macro_rules! from_raw {
    ($raw:ident) => {
        impl<O: ByteOrder> From<$raw::Ehdr<O>> for FileHeader {
            fn from(raw: $raw::Ehdr<O>) -> Self {
                let [_, _, _, _, _, _, _, os_abi, abi_version, ..] = raw.e_ident;
                Self {
                    os_abi,
                    abi_version,
                    r#type: raw.e_type.get(),
                    machine: raw.e_machine.get(),
                    version: raw.e_version.get(),
                    entry: raw.e_entry.get().into(),
                    flags: raw.e_flags.get(),
                    program_headers: raw.e_phoff.get().into(),
                    program_header_size: raw.e_phentsize.get(),
                    program_header_count: raw.e_phnum.get(),
                    section_headers: raw.e_shoff.get().into(),
                    section_header_size: raw.e_shentsize.get(),
                    section_header_count: raw.e_shnum.get(),
                    section_names: raw.e_shstrndx.get(),
                    header_size: raw.e_ehsize.get(),
                }
            }
        }
    };
}
from_raw!(raw32);
from_raw!(raw64);
