//! Section headers, as a plain view that is the same for every class.

use crate::names::{SHT_NOBITS, SHT_NULL};
use crate::structs::{raw32, raw64};
use zerocopy::byteorder::ByteOrder;

bitflags::bitflags! {
    /// `sh_flags` (gABI ch. 3, "Section Attribute Flags"). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct SectionFlags: u64 {
        /// `SHF_WRITE`: writable in memory.
        const WRITE = 1 << 0;
        /// `SHF_ALLOC`: occupies memory.
        const ALLOC = 1 << 1;
        /// `SHF_EXECINSTR`: holds instructions.
        const EXECINSTR = 1 << 2;
        /// `SHF_MERGE`: equal entries may be merged.
        const MERGE = 1 << 4;
        /// `SHF_STRINGS`: entries are NUL-terminated strings.
        const STRINGS = 1 << 5;
        /// `SHF_INFO_LINK`: `sh_info` names a section.
        const INFO_LINK = 1 << 6;
        /// `SHF_LINK_ORDER`: stands in the order of the sections that `sh_link` names.
        const LINK_ORDER = 1 << 7;
        /// `SHF_OS_NONCONFORMING`: needs processing that the system defines.
        const OS_NONCONFORMING = 1 << 8;
        /// `SHF_GROUP`: member of a section group.
        const GROUP = 1 << 9;
        /// `SHF_TLS`: thread-local storage.
        const TLS = 1 << 10;
        /// `SHF_COMPRESSED`: the data begin with a compression header.
        const COMPRESSED = 1 << 11;
        /// `SHF_GNU_RETAIN`: not to be collected by a linker.
        const GNU_RETAIN = 1 << 21;
        /// `SHF_X86_64_LARGE`: may lie beyond 2 GiB of other sections.
        const X86_64_LARGE = 1 << 28;
        /// `SHF_EXCLUDE`: left out by a linker.
        const EXCLUDE = 1 << 31;
        const _ = !0;
    }
}

/// A section header (gABI ch. 3): sizes, offsets and addresses in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SectionHeader {
    /// Offset of the name in the section name table.
    pub name: u32,
    /// `sh_type`: one of `SHT_*`.
    pub r#type: u32,
    /// `sh_flags`.
    pub flags: SectionFlags,
    /// Address of the first byte, or 0.
    pub address: u64,
    /// File offset of the first byte.
    pub offset: u64,
    /// Size; in memory only for `SHT_NOBITS`.
    pub size: u64,
    /// `sh_link`: a section that this one depends on, by type.
    pub link: u32,
    /// `sh_info`: more of the same, by type.
    pub info: u32,
    /// Alignment: 0, 1 or a power of two.
    pub alignment: u64,
    /// Size of an entry, or 0.
    pub entry_size: u64,
}

impl SectionHeader {
    /// Bytes that the section occupies in the file: none if it is `SHT_NOBITS`, or `SHT_NULL`, whose size may be the number of
    /// sections (gABI ch. 3, "Section Header Table Index").
    #[must_use]
    pub const fn file_size(&self) -> u64 {
        if matches!(self.r#type, SHT_NOBITS | SHT_NULL) { 0 } else { self.size }
    }
}

/// The header of a compressed section (gABI ch. 3, "Section Compression").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompressionHeader {
    /// Algorithm: `ELFCOMPRESS_*`.
    pub r#type: u32,
    /// Size of the data uncompressed, in bytes.
    pub size: u64,
    /// Alignment of the data uncompressed, in bytes.
    pub alignment: u64,
}

macro_rules! from_raw {
    ($raw:ident) => {
        impl<O: ByteOrder> From<$raw::Shdr<O>> for SectionHeader {
            #[inline]
            fn from(raw: $raw::Shdr<O>) -> Self {
                Self {
                    name: raw.sh_name.get(),
                    r#type: raw.sh_type.get(),
                    flags: SectionFlags::from_bits_retain(raw.sh_flags.get().into()),
                    address: raw.sh_addr.get().into(),
                    offset: raw.sh_offset.get().into(),
                    size: raw.sh_size.get().into(),
                    link: raw.sh_link.get(),
                    info: raw.sh_info.get(),
                    alignment: raw.sh_addralign.get().into(),
                    entry_size: raw.sh_entsize.get().into(),
                }
            }
        }

        impl<O: ByteOrder> From<$raw::Chdr<O>> for CompressionHeader {
            fn from(raw: $raw::Chdr<O>) -> Self {
                Self {
                    r#type: raw.ch_type.get(),
                    size: raw.ch_size.get().into(),
                    alignment: raw.ch_addralign.get().into(),
                }
            }
        }
    };
}
from_raw!(raw32);
from_raw!(raw64);
