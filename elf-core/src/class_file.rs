//! A file of a class that is known when the program is compiled.

use crate::table::class::{Class, Row};
use crate::views::encoding::Encoding;

use crate::content::name::StringTable;
use crate::error::{Error, ErrorKind};
use crate::file::{data, strings, wrong_type};
use crate::names::{SHT_DYNSYM, SHT_SYMTAB};
use crate::table::entry::Entry;
use crate::table::place::Place;
use crate::table::slices::{outside, rows};
use crate::views::encoding::encoding_of;
use crate::views::header::FileHeader;
use crate::views::section::SectionHeader;
use crate::views::segment::ProgramHeader;

/// An ELF file of class `C`: its tables as slices of raw rows, without the code of other classes.
///
/// For firmware that counts bytes and for whoever counts nanoseconds; [`File`](crate::File) reads every class. A raw row
/// turns into the plain view by `into`.
///
/// ```
/// use elf_core::{ClassFile, Elf64, SectionHeader};
/// use zerocopy::LE;
///
/// # const BYTES: &[u8] = include_bytes!("../../fixtures/x86_64/elftest.o");
/// let file = ClassFile::<Elf64<LE>>::parse(BYTES)?;
/// let alive = file.sections().iter().filter(|row| SectionHeader::from(**row).size > 0);
/// assert!(alive.count() > 3);
/// # Ok::<_, elf_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ClassFile<'a, C: Class> {
    bytes: &'a [u8],
    header: &'a C::Ehdr,
    sections: &'a [C::Shdr],
    segments: &'a [C::Phdr],
    section_names: u32,
}

impl<C: Class> Clone for ClassFile<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: Class> Copy for ClassFile<'_, C> {}

impl<'a, C: Class> ClassFile<'a, C> {
    /// Reads the file header and finds section headers and program headers, extended numbering included.
    ///
    /// # Errors
    /// [`ErrorKind::NotElf`]; [`ErrorKind::UnknownClass`] or [`ErrorKind::UnknownByteOrder`] if the file is not of class `C`;
    /// [`ErrorKind::Outside`] if a table leaves the file; [`ErrorKind::EntrySize`] if its entries are not the gABI's.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        match encoding_of(bytes)? {
            found if found == C::ENCODING => Self::of_class(bytes),
            found => Err(other_class(found, C::ENCODING)),
        }
    }

    /// [`parse`](Self::parse), where `e_ident` is looked at already.
    #[inline]
    pub(crate) fn of_class(bytes: &'a [u8]) -> Result<Self, Error> {
        let header: &C::Ehdr = one(bytes, FileHeader::WHAT, 0)?;
        let view: FileHeader = (*header).into();
        let counts = view.counts(size_of::<C::Shdr>(), size_of::<C::Phdr>(), || {
            let row: &C::Shdr = one(bytes, SectionHeader::WHAT, view.section_headers)?;
            Ok((*row).into())
        })?;
        Ok(Self {
            bytes,
            header,
            sections: match counts.sections {
                0 => &[],
                count => rows(bytes, SectionHeader::WHAT, view.section_headers, count)?,
            },
            segments: match counts.segments {
                0 => &[],
                count => rows(bytes, ProgramHeader::WHAT, view.program_headers, count.into())?,
            },
            section_names: counts.section_names,
        })
    }

    /// All bytes of the file.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The file header.
    #[must_use]
    pub const fn header(&self) -> &'a C::Ehdr {
        self.header
    }

    /// The section headers, the first of which is the null section.
    #[must_use]
    pub const fn sections(&self) -> &'a [C::Shdr] {
        self.sections
    }

    /// The program headers.
    #[must_use]
    pub const fn segments(&self) -> &'a [C::Phdr] {
        self.segments
    }

    /// Index of the section that holds the section names, or 0.
    #[must_use]
    pub const fn section_names_index(&self) -> u32 {
        self.section_names
    }

    /// The section names.
    ///
    /// # Errors
    /// As [`string_table`](Self::string_table).
    pub fn section_names(&self) -> Result<StringTable<'a>, Error> {
        match self.section_names {
            0 => Ok(StringTable::default()),
            index => self.string_table(index, "e_shstrndx"),
        }
    }

    /// The header of section `index`, named by the field `what`.
    ///
    /// # Errors
    /// [`ErrorKind::NoSection`] if there are fewer sections.
    #[inline]
    pub fn section(&self, index: u32, what: &'static str) -> Result<SectionHeader, Error> {
        let row = usize::try_from(index).ok().and_then(|index| self.sections.get(index));
        row.map(|row| (*row).into()).ok_or_else(|| {
            let view: FileHeader = (*self.header).into();
            let count = self.sections.len() as u64;
            Error { at: view.section_headers, kind: ErrorKind::NoSection { what, index, count } }
        })
    }

    /// The bytes of a section as they stand in the file: none for `SHT_NOBITS`.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if they leave the file.
    #[inline]
    pub fn section_data(&self, section: &SectionHeader) -> Result<&'a [u8], Error> {
        data(self.bytes, section)
    }

    /// The string table that is section `index`, named by the field `what`.
    ///
    /// # Errors
    /// [`ErrorKind::NoSection`], [`ErrorKind::SectionType`] or [`ErrorKind::Outside`].
    #[inline]
    pub fn string_table(&self, index: u32, what: &'static str) -> Result<StringTable<'a>, Error> {
        strings(self.bytes, self.section(index, what)?)
    }

    /// The symbols of a section of type `SHT_SYMTAB` or `SHT_DYNSYM`. Its `link` is the string table of their names.
    ///
    /// # Errors
    /// [`ErrorKind::SectionType`] if it is of another type; else as [`rows`](Self::rows).
    #[inline]
    pub fn symbols(&self, section: &SectionHeader) -> Result<&'a [C::Sym], Error> {
        if section.r#type != SHT_SYMTAB && section.r#type != SHT_DYNSYM {
            return Err(wrong_type(section, "symbol table"));
        }
        self.rows(section, "symbols")
    }

    /// The relocations of a section of type `SHT_RELA`; the caller has looked at the type.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    #[inline]
    pub fn rela(&self, section: &SectionHeader) -> Result<&'a [C::Rela], Error> {
        self.rows(section, "relocations")
    }

    /// The relocations of a section of type `SHT_REL`; the caller has looked at the type.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    #[inline]
    pub fn rel(&self, section: &SectionHeader) -> Result<&'a [C::Rel], Error> {
        self.rows(section, "relocations")
    }

    /// The rows of a section that is a table of `what`.
    ///
    /// # Errors
    /// [`ErrorKind::EntrySize`] if `sh_entsize` is neither 0 nor the gABI's, [`ErrorKind::UnevenTable`] if a part of a row is
    /// left, [`ErrorKind::Outside`] if the section leaves the file.
    #[inline]
    pub fn rows<T: Row>(
        &self,
        section: &SectionHeader,
        what: &'static str,
    ) -> Result<&'a [T], Error> {
        match Place::of(section).count(what, size_of::<T>())? {
            0 => Ok(&[]),
            count => rows(self.bytes, what, section.offset, count),
        }
    }
}

/// The one row at file offset `at`.
#[inline]
fn one<'a, T: Row>(bytes: &'a [u8], what: &'static str, at: u64) -> Result<&'a T, Error> {
    rows::<T>(bytes, what, at, 1)?.first().ok_or_else(|| outside(bytes, what, at, 1))
}

/// The file is of class `found`.
#[cold]
const fn other_class(found: Encoding, expected: Encoding) -> Error {
    let (class, data) =
        (if found.is_64() { 2 } else { 1 }, if found.is_big_endian() { 2 } else { 1 });
    if found.is_64() == expected.is_64() {
        Error { at: 5, kind: ErrorKind::UnknownByteOrder(data) }
    } else {
        Error { at: 4, kind: ErrorKind::UnknownClass(class) }
    }
}
