//! What an entry's header has to say about a cubin, read from the cubin itself.

use crate::error::Error;
use crate::kind::{EntryFlags, Sm, Suffix};
use elf_core::File;

/// `e_ident[EI_OSABI]` of ABI 8 (measured: CUDA 12.8 for sm_100 and up, 13.0 for all).
const NEW_OS_ABI: u8 = 0x41;
/// `.nv.compat` attribute `CUDA_ACCELERATOR_TARGET`, whose value is a byte: 1 for suffix `a` (measured).
const ACCELERATOR_TARGET: [u8; 2] = [0x02, 0x09];

/// A cubin: an ELF file for one SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubinHeader<'a> {
    /// The architecture it is for. The file does not record suffix `f`.
    pub sm: Sm,
    /// The ABI version of the ELF: 7 or 8.
    pub abi: u8,
    /// Whether pointers have 64 bits.
    pub address_64: bool,
    /// The content of `.nv.compat`, which the entry may repeat ([`EntryOptions::Compat`](crate::EntryOptions::Compat)).
    pub compat: Option<&'a [u8]>,
}

impl<'a> CubinHeader<'a> {
    /// Reads the file header and `.nv.compat`.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`](crate::ErrorKind::Elf) if it is no ELF file.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let file = File::parse(bytes)?;
        let header = file.header();
        let is_compat = |section: &elf_core::SectionHeader| {
            file.section_name(section).is_ok_and(|name| name == ".nv.compat")
        };
        let section = file.sections().iter().find(is_compat);
        let compat = section.map(|section| file.section_data(&section)).transpose()?;
        let (number, accelerated) = if header.os_abi == NEW_OS_ABI {
            (
                header.flags >> 8 & 0xffff,
                header.flags & 1 << 3 != 0 || compat.is_some_and(is_accelerated),
            )
        } else {
            let number = header.flags & 0xff;
            (number, number >= 90 && header.flags & 1 << 11 != 0)
        };
        let suffix = if accelerated { Suffix::Specific } else { Suffix::None };
        let sm = Sm { number, suffix };
        Ok(Self { sm, abi: header.abi_version, address_64: file.encoding().is_64(), compat })
    }

    /// The flags of an entry for it, made on Linux. Entries repeat `.nv.compat` from sm_100 on (measured, CUDA 12.8 to 13.5).
    #[must_use]
    pub const fn flags(&self) -> EntryFlags {
        let address = if self.address_64 { EntryFlags::ADDRESS_64 } else { EntryFlags::empty() };
        let compat = if self.compat.is_some() && self.sm.number >= 100 {
            EntryFlags::COMPAT
        } else {
            EntryFlags::empty()
        };
        EntryFlags::LINUX.union(address).union(compat).union(self.sm.suffix.flag())
    }
}

/// Whether `.nv.compat` says that the target is accelerated. Attributes are a format, a number, and by format a byte
/// (2), two (3), or a size and as many bytes (4).
fn is_accelerated(mut compat: &[u8]) -> bool {
    while let Some((&[format, number], rest)) = compat.split_first_chunk() {
        if [format, number] == ACCELERATOR_TARGET {
            return rest.first() == Some(&1);
        }
        let size = match (format, rest) {
            (4, [low, high, ..]) => {
                usize::from(u16::from_le_bytes([*low, *high])).saturating_add(2)
            }
            _ => 2,
        };
        compat = rest.get(size..).unwrap_or(&[]);
    }
    false
}
