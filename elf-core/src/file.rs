//! A file: header and tables checked once, the rest on demand.

use crate::content::name::{Name, StringTable};
use crate::content::symbols::SymbolTable;
use crate::error::{Error, ErrorKind};
use crate::names::{
    SHN_LORESERVE, SHT_DYNSYM, SHT_GROUP, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX,
};
use crate::table::class::for_class;
use crate::table::entry;
use crate::table::entry::{Entry, row_size};
use crate::table::place::Place;
use crate::table::rows::Table;
use crate::table::slices;
use crate::table::word::Word;
use crate::views::encoding::Encoding;
use crate::views::encoding::encoding_of;
use crate::views::header::FileHeader;
use crate::views::section::{CompressionHeader, SectionFlags, SectionHeader};
use crate::views::segment::ProgramHeader;
use core::ops::Range;

/// An ELF file in memory, of either class and byte order.
#[derive(Clone, Copy)]
pub struct File<'a> {
    bytes: &'a [u8],
    /// How many bytes the file has: those at hand, or more.
    size: u64,
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
        for_class!(encoding => Self::of_encoding(bytes, encoding))
    }

    /// [`parse`](Self::parse), where the class is known.
    #[inline]
    fn of_encoding(bytes: &'a [u8], encoding: Encoding) -> Result<Self, Error> {
        let header = entry::row::<FileHeader>(bytes, encoding, 0, 0)?;
        let at = header.section_headers;
        let counts = header.counts(
            row_size::<SectionHeader>(encoding),
            row_size::<ProgramHeader>(encoding),
            || entry::row::<SectionHeader>(bytes, encoding, at, 0),
        )?;
        let sections = match counts.sections {
            0 => Table::empty(),
            count => Table::parse(bytes, encoding, at, count)?,
        };
        let segments = match counts.segments {
            0 => Table::empty(),
            count => Table::parse(bytes, encoding, header.program_headers, count.into())?,
        };
        let section_names_index = counts.section_names;
        let section_names = StringTable::default();
        let mut file = Self {
            bytes,
            size: bytes.len() as u64,
            encoding,
            header,
            sections,
            segments,
            section_names,
            section_names_index,
        };
        if section_names_index != 0 {
            file.section_names = file.string_table(section_names_index, "e_shstrndx")?;
        }
        Ok(file)
    }

    /// Reads the file header and finds program headers only: what loaders of linked files go by. There are no sections then, whatever
    /// is said of them.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), but for sections. Extended numbering is not resolved.
    pub fn parse_segments(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::parse_beginning(bytes, bytes.len() as u64)
    }

    /// The same of a file of `size` bytes of which only the first are at hand: loaders that read segments straight to where they go need
    /// no more. What lies behind them is [`ErrorKind::Outside`] to all who ask for its bytes.
    ///
    /// ```
    /// use elf_core::File;
    /// use elf_core::names::PT_LOAD;
    ///
    /// let device = include_bytes!("../../fixtures/x86_64/libshared.so");
    /// let file = File::parse_beginning(&device[..1024], device.len() as u64)?;
    /// for segment in file.segments().iter().filter(|segment| segment.r#type == PT_LOAD) {
    ///     let range = file.segment_range(&segment)?;
    ///     println!("read {} bytes at {:#x}", range.end - range.start, range.start);
    /// }
    /// # Ok::<(), elf_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`parse_segments`](Self::parse_segments).
    pub fn parse_beginning(bytes: &'a [u8], size: u64) -> Result<Self, Error> {
        let encoding = encoding_of(bytes)?;
        let header = entry::row::<FileHeader>(bytes, encoding, 0, 0)?;
        let segments = match header.program_header_count {
            0 => Table::empty(),
            count => {
                header.check_program_headers(row_size::<ProgramHeader>(encoding))?;
                Table::parse(bytes, encoding, header.program_headers, count.into())?
            }
        };
        Ok(Self {
            bytes,
            size: size.max(bytes.len() as u64),
            encoding,
            header,
            sections: Table::empty(),
            segments,
            section_names: StringTable::default(),
            section_names_index: 0,
        })
    }

    /// All bytes of the file that are at hand.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many bytes the file has.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
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
        data(self.bytes, section)
    }

    /// The bytes of a segment as they stand in the file.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if they leave the file.
    pub fn segment_data(&self, segment: &ProgramHeader) -> Result<&'a [u8], Error> {
        match segment.file_size {
            0 => Ok(&[]),
            size => slices::bytes(self.bytes, "segment data", segment.offset, size),
        }
    }

    /// Where the bytes of a segment are in the file, at hand or not.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if they leave the file.
    pub fn segment_range(&self, segment: &ProgramHeader) -> Result<Range<u64>, Error> {
        let (start, size) = (segment.offset, segment.file_size);
        let end = start.checked_add(size).filter(|end| size == 0 || *end <= self.size);
        end.map(|end| start..end).ok_or_else(|| {
            let kind = ErrorKind::Outside { what: "segment data", count: 1, file: self.size };
            Error { at: start, kind }
        })
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
        let size = row_size::<CompressionHeader>(self.encoding);
        let header = entry::row::<CompressionHeader>(data, self.encoding, 0, section.offset)?;
        Ok(data.get(size..).map(|rest| (header, rest)))
    }

    /// The rows of a section that is a table of `E`.
    ///
    /// # Errors
    /// [`ErrorKind::EntrySize`] if `sh_entsize` is neither 0 nor the gABI's, [`ErrorKind::UnevenTable`] if a part of a row is
    /// left, [`ErrorKind::Outside`] if the section leaves the file.
    #[inline]
    pub fn rows<E: Entry>(&self, section: &SectionHeader) -> Result<Table<'a, E>, Error> {
        let (encoding, place) = (self.encoding, Place::of(section));
        for_class!(encoding => Table::of_section(self.bytes, encoding, place))
    }

    /// The symbol table (`SHT_SYMTAB`), if there is one.
    ///
    /// # Errors
    /// As [`symbol_table_at`](Self::symbol_table_at).
    pub fn symbol_table(&self) -> Result<Option<SymbolTable<'a>>, Error> {
        // there is one, and compilers put it at the end
        let mut index = self.sections.len();
        let found = self.sections.iter().rev().find(|section| {
            index = index.saturating_sub(1);
            section.r#type == SHT_SYMTAB
        });
        let encoding = self.encoding;
        let table = |(section, index)| for_class!(encoding => self.symbols_of_encoding(encoding, index, &section));
        found.zip(u32::try_from(index).ok()).map(table).transpose()
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
            return Err(wrong_type(&section, "symbol table"));
        }
        let encoding = self.encoding;
        for_class!(encoding => self.symbols_of_encoding(encoding, index, &section))
    }

    /// The symbol table that is section `index`, where the class is known.
    #[inline]
    fn symbols_of_encoding(
        &self,
        encoding: Encoding,
        index: u32,
        section: &SectionHeader,
    ) -> Result<SymbolTable<'a>, Error> {
        let symbols = Table::of_section(self.bytes, encoding, Place::of(section))?;
        let names = self.string_table(section.link, "sh_link")?;
        let extended = self.extended_indices(index)?;
        Ok(SymbolTable {
            section: index,
            at: section.offset,
            symbols,
            names,
            extended,
            first_global: section.info,
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
        strings(self.bytes, self.linked_section(index, what)?)
    }

    // where code is scarcer than time, one function for all that have an index
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn linked_section(&self, index: u32, what: &'static str) -> Result<SectionHeader, Error> {
        let section = usize::try_from(index).ok().and_then(|index| self.sections.get(index));
        section.ok_or_else(|| self.no_section(index, what))
    }

    #[cold]
    const fn no_section(&self, index: u32, what: &'static str) -> Error {
        let kind = ErrorKind::NoSection { what, index, count: self.sections.len() as u64 };
        Error { at: self.header.section_headers, kind }
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
        self.sections.iter().find(is).map(|section| self.rows(&section)).transpose()
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

/// A section is not `what` it is to be used as.
#[cold]
pub(crate) const fn wrong_type(section: &SectionHeader, what: &'static str) -> Error {
    Error { at: section.offset, kind: ErrorKind::SectionType { what, found: section.r#type } }
}

/// The strings in a section that is to be a string table.
#[inline]
pub(crate) fn strings(bytes: &[u8], section: SectionHeader) -> Result<StringTable<'_>, Error> {
    if section.r#type != SHT_STRTAB {
        return Err(wrong_type(&section, "string table"));
    }
    Ok(StringTable::new(data(bytes, &section)?, section.offset))
}

/// The bytes of a section as they stand in the file.
#[inline]
pub(crate) fn data<'a>(bytes: &'a [u8], section: &SectionHeader) -> Result<&'a [u8], Error> {
    match section.file_size() {
        0 => Ok(&[]),
        size => slices::bytes(bytes, "section data", section.offset, size),
    }
}
