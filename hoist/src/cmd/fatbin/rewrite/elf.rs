//! An ELF file that is changed: its tables as they stand, to be written back.

use anyhow::{Context as _, Result, ensure};
use elf_core::names::{SHT_NOBITS, SHT_RELA};
use elf_core::raw64::{Ehdr, Phdr, Rela, Shdr, Sym};
use elf_core::{File, Row};
use zerocopy::FromBytes as _;
use zerocopy::byteorder::LE;

/// An ELF file of 64 bits, little-endian.
#[derive(Debug)]
pub(super) struct Elf<'a> {
    pub(super) file: File<'a>,
    pub(super) header: Ehdr<LE>,
    pub(super) segments: Vec<Phdr<LE>>,
    pub(super) sections: Vec<Shdr<LE>>,
}

impl<'a> Elf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let file = File::parse(bytes)?;
        let encoding = file.encoding();
        ensure!(encoding.is_64() && !encoding.is_big_endian(), "is not of 64 bits, little-endian");
        let header = *row::<Ehdr<LE>>(bytes, 0)?;
        ensure!(
            header.e_phnum != 0xffff && (header.e_shnum != 0 || header.e_shoff == 0),
            "has more sections or segments than can be changed here"
        );
        let segments = rows(bytes, header.e_phoff.get(), header.e_phnum.get().into())?.to_vec();
        let sections = rows(bytes, header.e_shoff.get(), header.e_shnum.get().into())?.to_vec();
        Ok(Self { file, header, segments, sections })
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.file.bytes()
    }

    /// Size of the file.
    pub(super) const fn size(&self) -> u64 {
        self.file.bytes().len() as u64
    }

    /// The name of a section.
    pub(super) fn name(&self, section: &Shdr<LE>) -> String {
        let name = self.file.section_names().get(section.sh_name.get());
        name.map(|name| name.to_string()).unwrap_or_default()
    }

    /// Offset of the section headers' end.
    pub(super) const fn sections_end(&self) -> u64 {
        let size = self.sections.len().saturating_mul(size_of::<Shdr<LE>>());
        self.header.e_shoff.get().saturating_add(size as u64)
    }

    /// The symbols of a section.
    pub(super) fn symbols(&self, section: &Shdr<LE>) -> Result<&'a [Sym<LE>]> {
        let size = size_of::<Sym<LE>>() as u64;
        rows(
            self.bytes(),
            section.sh_offset.get(),
            section.sh_size.get().checked_div(size).unwrap_or(0),
        )
    }

    /// The relocations of a section; none if it is no `SHT_RELA`.
    pub(super) fn relocations(&self, section: &Shdr<LE>) -> Result<&'a [Rela<LE>]> {
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
    pub(super) fn section_at(&self, offset: u64) -> Option<usize> {
        self.sections.iter().position(|section| {
            let behind = offset.checked_sub(section.sh_offset.get());
            section.sh_type != SHT_NOBITS
                && section.sh_type != 0
                && behind.is_some_and(|behind| behind < section.sh_size.get())
        })
    }

    /// The address of the byte at a file offset.
    pub(super) fn address(&self, offset: u64) -> Result<u64> {
        let found = self.segments.iter().find_map(|segment| {
            let behind = offset.checked_sub(segment.p_offset.get())?;
            let loaded = segment.p_type == elf_core::names::PT_LOAD;
            (loaded && behind < segment.p_filesz.get())
                .then(|| segment.p_vaddr.get().checked_add(behind))?
        });
        found.with_context(|| format!("offset {offset:#x} is not loaded"))
    }
}

/// The raw struct at an offset.
pub(super) fn row<T: Row>(bytes: &[u8], at: u64) -> Result<&T> {
    let rows = rows(bytes, at, 1)?;
    rows.first().with_context(|| format!("nothing at offset {at:#x}"))
}

/// `count` raw structs at an offset.
pub(super) fn rows<T: Row>(bytes: &[u8], at: u64, count: u64) -> Result<&[T]> {
    let found =
        usize::try_from(at).ok().and_then(|at| bytes.get(at..)).zip(usize::try_from(count).ok());
    let rows = found.and_then(|(rest, count)| <[T]>::ref_from_prefix_with_elems(rest, count).ok());
    rows.map(|(rows, _)| rows)
        .with_context(|| format!("{count} rows at offset {at:#x} leave the file"))
}
