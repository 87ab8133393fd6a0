//! Program headers and the dynamic section, as plain views.

use crate::structs::{raw32, raw64};
use zerocopy::byteorder::ByteOrder;

bitflags::bitflags! {
    /// `p_flags` (gABI ch. 7, "Segment Permissions"). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct SegmentFlags: u32 {
        /// `PF_X`: executable.
        const EXECUTE = 1 << 0;
        /// `PF_W`: writable.
        const WRITE = 1 << 1;
        /// `PF_R`: readable.
        const READ = 1 << 2;
        const _ = !0;
    }
}

/// A program header (gABI ch. 7): sizes, offsets and addresses in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramHeader {
    /// `p_type`: one of `PT_*`.
    pub r#type: u32,
    /// `p_flags`.
    pub flags: SegmentFlags,
    /// File offset of the first byte.
    pub offset: u64,
    /// Address of the first byte.
    pub address: u64,
    /// Physical address, where that means something.
    pub physical_address: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory; those beyond `file_size` are zero.
    pub memory_size: u64,
    /// Alignment: 0, 1 or a power of two.
    pub alignment: u64,
}

/// An entry of the dynamic section (gABI ch. 8, "Dynamic Section").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dynamic {
    /// `d_tag`: one of `DT_*`.
    pub tag: i64,
    /// `d_val` or `d_ptr`: a number or an address, by tag.
    pub value: u64,
}

macro_rules! from_raw {
    ($raw:ident) => {
        impl<O: ByteOrder> From<$raw::Phdr<O>> for ProgramHeader {
            fn from(raw: $raw::Phdr<O>) -> Self {
                Self {
                    r#type: raw.p_type.get(),
                    flags: SegmentFlags::from_bits_retain(raw.p_flags.get()),
                    offset: raw.p_offset.get().into(),
                    address: raw.p_vaddr.get().into(),
                    physical_address: raw.p_paddr.get().into(),
                    file_size: raw.p_filesz.get().into(),
                    memory_size: raw.p_memsz.get().into(),
                    alignment: raw.p_align.get().into(),
                }
            }
        }

        impl<O: ByteOrder> From<$raw::Dyn<O>> for Dynamic {
            fn from(raw: $raw::Dyn<O>) -> Self {
                Self { tag: raw.d_tag.get().into(), value: raw.d_val.get().into() }
            }
        }
    };
}
from_raw!(raw32);
from_raw!(raw64);
