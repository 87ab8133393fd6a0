//! The file header, as a plain view.

use crate::class::{Class, Encoding};
use crate::error::{Error, ErrorKind};
use crate::table::Entry;
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

impl Entry for FileHeader {
    type View = Self;
    type Raw<C: Class> = C::Ehdr;
    const WHAT: &'static str = "file header";
}

/// Class and byte order by `e_ident` (gABI ch. 2, "ELF Identification").
pub(crate) fn encoding_of(bytes: &[u8]) -> Result<Encoding, Error> {
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
