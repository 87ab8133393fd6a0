//! The file header, as a plain view.

use crate::error::{Error, ErrorKind};
use crate::names::{PN_XNUM, SHN_XINDEX};
use crate::structs::{raw32, raw64};
use crate::views::section::SectionHeader;
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
    /// `e_phnum` as it stands; [`File::segments`](crate::File::segments) knows the number.
    pub program_header_count: u16,
    /// File offset of the section headers, or 0.
    pub section_headers: u64,
    /// `e_shentsize`.
    pub section_header_size: u16,
    /// `e_shnum` as it stands; [`File::sections`](crate::File::sections) knows the number.
    pub section_header_count: u16,
    /// `e_shstrndx` as it stands; [`File::section_names`](crate::File::section_names) knows the table.
    pub section_names: u16,
    /// `e_ehsize`: size of the file header.
    pub header_size: u16,
}

/// How many rows the tables have that the file header finds.
pub(crate) struct Counts {
    pub(crate) sections: u64,
    pub(crate) segments: u32,
    /// Index of the section that holds the section names, or 0.
    pub(crate) section_names: u32,
}

impl FileHeader {
    /// Checks the entry sizes against those of the class and counts; section 0 holds what the file header has no room for.
    // a part of `parse` where there is room for code: small objects are parsed in less time so
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) fn counts(
        &self,
        section_header: usize,
        program_header: usize,
        section_0: impl FnOnce() -> Result<SectionHeader, Error>,
    ) -> Result<Counts, Error> {
        let mut first = SectionHeader::default();
        let mut sections = 0;
        if self.section_headers != 0 {
            entry_size("e_shentsize", self.section_header_size, section_header)?;
            first = section_0()?;
            sections = match self.section_header_count {
                0 => first.size,
                count => count.into(),
            };
        }
        let segments = match self.program_header_count {
            PN_XNUM if self.section_headers != 0 => first.info,
            count => count.into(),
        };
        if segments != 0 {
            self.check_program_headers(program_header)?;
        }
        let section_names = match self.section_names {
            SHN_XINDEX if self.section_headers != 0 => first.link,
            index => index.into(),
        };
        Ok(Counts { sections, segments, section_names })
    }

    /// Checks the size of a program header against that of the class.
    pub(crate) fn check_program_headers(&self, size: usize) -> Result<(), Error> {
        entry_size("e_phentsize", self.program_header_size, size)
    }
}

/// Checks an entry size in the file header.
#[inline]
fn entry_size(what: &'static str, found: u16, expected: usize) -> Result<(), Error> {
    let (found, expected) = (u64::from(found), expected as u64);
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
