//! An ELF file that is changed: its tables as they stand, to be written back.

use std::ops::Range;

use elf_core::names::{
    DT_ANDROID_RELA, DT_ANDROID_RELASZ, DT_ANDROID_RELR, DT_ANDROID_RELRSZ, DT_JMPREL, DT_PLTREL,
    DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ, DT_RELSZ, DT_SYMTAB, PT_LOAD,
    SHT_ANDROID_RELA, SHT_ANDROID_RELR, SHT_DYNSYM, SHT_NOBITS, SHT_PROGBITS, SHT_REL, SHT_RELA,
    SHT_RELR,
};
use elf_core::raw64::{Ehdr, Phdr, Rela, Shdr, Sym};
use elf_core::{File, ProgramHeader, Row, SectionFlags, SectionHeader, SegmentFlags};
use zerocopy::byteorder::LE;
use zerocopy::{FromBytes as _, FromZeros as _};

use crate::error::{Error, ErrorKind, Result};

/// An ELF file of 64 bits, little-endian.
#[derive(Debug)]
pub(crate) struct Elf<'a> {
    pub(crate) file: File<'a>,
    pub(crate) header: Ehdr<LE>,
    pub(crate) segments: Vec<Phdr<LE>>,
    pub(crate) sections: Vec<Shdr<LE>>,
    /// Sections; of a file without any, the tables of relocations and symbols that its dynamic segment names.
    pub(crate) tables: Vec<Shdr<LE>>,
}

/// Bytes that are loaded: a section, or in a file without any a segment.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    pub(crate) executable: bool,
}

impl<'a> Elf<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let file = File::parse(bytes)?;
        let encoding = file.encoding();
        if !encoding.is_64() || encoding.is_big_endian() {
            return Err(Error::new(0, ErrorKind::Encoding));
        }
        let header = *row::<Ehdr<LE>>(bytes, 0)?;
        if header.e_phnum == 0xffff || (header.e_shnum == 0 && header.e_shoff != 0) {
            return Err(Error::new(0, ErrorKind::TooManyHeaders));
        }
        let segments = rows(bytes, header.e_phoff.get(), header.e_phnum.get().into())?.to_vec();
        let sections = rows(bytes, header.e_shoff.get(), header.e_shnum.get().into())?.to_vec();
        let tables = if sections.is_empty() { dynamic_tables(&file)? } else { sections.clone() };
        Ok(Self { file, header, segments, sections, tables })
    }

    /// All code and data that are loaded from the file.
    pub(crate) fn parts(&self) -> Result<Vec<Part<'a>>> {
        let segment = |row: ProgramHeader| {
            Ok(Part {
                name: String::from("a segment"),
                address: row.address,
                offset: row.offset,
                bytes: self.file.segment_data(&row)?,
                executable: row.flags.contains(SegmentFlags::EXECUTE),
            })
        };
        let section = |row: SectionHeader| {
            Ok(Part {
                name: self.file.section_name(&row).unwrap_or_default().to_string(),
                address: row.address,
                offset: row.offset,
                bytes: self.file.section_data(&row)?,
                executable: row.flags.contains(SectionFlags::EXECINSTR),
            })
        };
        if self.sections.is_empty() {
            let rows = self.file.segments().iter().filter(|row| row.r#type == PT_LOAD);
            return rows.map(segment).collect();
        }
        let is_loaded = |row: &SectionHeader| {
            row.flags.contains(SectionFlags::ALLOC) && row.r#type == SHT_PROGBITS
        };
        self.file.sections().iter().filter(is_loaded).map(section).collect()
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.file.bytes()
    }

    /// The bytes of a range of the file, if it is there.
    pub(crate) fn bytes_of(&self, range: Range<u64>) -> Option<&'a [u8]> {
        let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        range.and_then(|(start, end)| self.bytes().get(start..end))
    }

    /// Whether a range of the file is there, and all zeros.
    pub(crate) fn is_zero(&self, range: Range<u64>) -> bool {
        self.bytes_of(range).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0))
    }

    /// Size of the file.
    pub(crate) const fn size(&self) -> u64 {
        self.file.bytes().len() as u64
    }

    /// The name of a section.
    pub(crate) fn name(&self, section: &Shdr<LE>) -> String {
        let name = self.file.section_names().get(section.sh_name.get());
        name.map(|name| name.to_string()).unwrap_or_default()
    }

    /// Offset of the section headers' end.
    pub(crate) const fn sections_end(&self) -> u64 {
        let size = self.sections.len().saturating_mul(size_of::<Shdr<LE>>());
        self.header.e_shoff.get().saturating_add(size as u64)
    }

    /// The symbols of a section.
    pub(crate) fn symbols(&self, section: &Shdr<LE>) -> Result<&'a [Sym<LE>]> {
        let size = size_of::<Sym<LE>>() as u64;
        rows(
            self.bytes(),
            section.sh_offset.get(),
            section.sh_size.get().checked_div(size).unwrap_or(0),
        )
    }

    /// The relocations of a section; none if it is no `SHT_RELA`.
    pub(crate) fn relocations(&self, section: &Shdr<LE>) -> Result<&'a [Rela<LE>]> {
        if section.sh_type != SHT_RELA {
            return Ok(&[]);
        }
        let size = size_of::<Rela<LE>>() as u64;
        rows(
            self.bytes(),
            section.sh_offset.get(),
            section.sh_size.get().checked_div(size).unwrap_or(0),
        )
    }

    /// The index of the section that holds the byte at a file offset.
    pub(crate) fn section_at(&self, offset: u64) -> Option<usize> {
        self.sections.iter().position(|section| {
            let behind = offset.checked_sub(section.sh_offset.get());
            section.sh_type != SHT_NOBITS
                && section.sh_type != 0
                && behind.is_some_and(|behind| behind < section.sh_size.get())
        })
    }

    /// The address of the byte at a file offset.
    pub(crate) fn address(&self, offset: u64) -> Result<u64> {
        let found = self.segments.iter().find_map(|segment| {
            let behind = offset.checked_sub(segment.p_offset.get())?;
            let loaded = segment.p_type == PT_LOAD;
            (loaded && behind < segment.p_filesz.get())
                .then(|| segment.p_vaddr.get().checked_add(behind))?
        });
        found.ok_or(Error::outside(offset, "what is not loaded"))
    }

    /// The word at an address, and its file offset; none if it is not in the file.
    pub(crate) fn word(&self, address: u64) -> Option<(u64, u64)> {
        let at = self.segments.iter().find_map(|segment| {
            let behind = address.checked_sub(segment.p_vaddr.get())?;
            let loaded = segment.p_type == PT_LOAD && behind < segment.p_filesz.get();
            loaded.then(|| segment.p_offset.get().checked_add(behind))?
        })?;
        Some((at, self.word_at(at)?))
    }

    /// The word at a file offset.
    pub(crate) fn word_at(&self, at: u64) -> Option<u64> {
        let bytes = self.bytes().get(usize::try_from(at).ok()?..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

/// The tables that the dynamic segment names, as if they were sections.
fn dynamic_tables(file: &File<'_>) -> Result<Vec<Shdr<LE>>> {
    const SYMBOLS: u32 = 0;
    let Some(dynamic) = file.dynamic_by_segment()? else { return Ok(Vec::new()) };
    let row = |sh_type: u32, tag, size: Option<u64>| -> Result<Option<Shdr<LE>>> {
        let Some((address, size)) = dynamic.value(tag).zip(size) else { return Ok(None) };
        let offset = file.offset_of(address);
        let offset = offset.ok_or(Error::outside(address, "a dynamic table"))?;
        Ok(Some(Shdr {
            sh_type: sh_type.into(),
            sh_addr: address.into(),
            sh_offset: offset.into(),
            sh_size: size.into(),
            sh_link: SYMBOLS.into(),
            ..Shdr::new_zeroed()
        }))
    };
    let symbols = dynamic.symbol_table()?.map_or(0, |symbols| symbols.len());
    let symbols = (symbols as u64).saturating_mul(size_of::<Sym<LE>>() as u64);
    let plt = if dynamic.value(DT_PLTREL) == Some(DT_REL) { SHT_REL } else { SHT_RELA };
    let all = [
        row(SHT_DYNSYM, DT_SYMTAB, Some(symbols))?.or(Some(Shdr::new_zeroed())),
        row(SHT_RELA, DT_RELA, dynamic.value(DT_RELASZ))?,
        row(SHT_REL, DT_REL, dynamic.value(DT_RELSZ))?,
        row(SHT_RELR, DT_RELR, dynamic.value(DT_RELRSZ))?,
        row(SHT_ANDROID_RELA, DT_ANDROID_RELA, dynamic.value(DT_ANDROID_RELASZ))?,
        row(SHT_ANDROID_RELR, DT_ANDROID_RELR, dynamic.value(DT_ANDROID_RELRSZ))?,
        row(plt, DT_JMPREL, dynamic.value(DT_PLTRELSZ))?,
    ];
    Ok(all.into_iter().flatten().collect())
}

/// The raw struct at an offset.
pub(crate) fn row<T: Row>(bytes: &[u8], at: u64) -> Result<&T> {
    let rows = rows(bytes, at, 1)?;
    rows.first().ok_or(Error::outside(at, "a header"))
}

/// `count` raw structs at an offset.
pub(crate) fn rows<T: Row>(bytes: &[u8], at: u64, count: u64) -> Result<&[T]> {
    let found =
        usize::try_from(at).ok().and_then(|at| bytes.get(at..)).zip(usize::try_from(count).ok());
    let rows = found.and_then(|(rest, count)| <[T]>::ref_from_prefix_with_elems(rest, count).ok());
    rows.map(|(rows, _)| rows).ok_or(Error::outside(at, "a table"))
}
