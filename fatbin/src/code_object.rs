//! What a file for AMD's GPUs says of its target.

use crate::error::Error;
use core::fmt;
use elf_core::File;
use elf_core::names::header_flags;

/// A code object: an ELF file for AMD's GPUs (AMDGPU usage guide, "ELF Code Object"). Its text is the target id (the same, "Target
/// ID"), as bundles have it: `gfx90a:sramecc-:xnack+`, `gfx9-4-generic`; `mach 0x7f` for a processor without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeObjectHeader {
    machine: u16,
    os_abi: u8,
    abi_version: u8,
    /// `e_flags`: processor and features.
    pub flags: u32,
}

/// How the names of processors begin.
const PROCESSORS: [&str; 2] = ["EF_AMDGPU_MACH_AMDGCN_", "EF_AMDGPU_MACH_R600_"];

/// What the names of features say of them: those that may be on or off, as it comes, are not part of a target id. Code objects of version 3
/// say only what is on.
#[rustfmt::skip]
const FEATURES: [(&str, &str); 6] = [
    ("EF_AMDGPU_FEATURE_SRAMECC_V3",     ":sramecc+"),
    ("EF_AMDGPU_FEATURE_SRAMECC_ON_V4",  ":sramecc+"),
    ("EF_AMDGPU_FEATURE_SRAMECC_OFF_V4", ":sramecc-"),
    ("EF_AMDGPU_FEATURE_XNACK_V3",       ":xnack+"),
    ("EF_AMDGPU_FEATURE_XNACK_ON_V4",    ":xnack+"),
    ("EF_AMDGPU_FEATURE_XNACK_OFF_V4",   ":xnack-"),
];

impl CodeObjectHeader {
    /// Reads the file header.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`](crate::ErrorKind::Elf) if it is no ELF file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let header = *File::parse(bytes)?.header();
        let (machine, os_abi, abi_version) = (header.machine, header.os_abi, header.abi_version);
        Ok(Self { machine, os_abi, abi_version, flags: header.flags })
    }

    fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        header_flags(self.machine, self.os_abi, self.abi_version).names(self.flags.into())
    }
}

impl fmt::Display for CodeObjectHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor =
            |name: &'static str| PROCESSORS.iter().find_map(|start| name.strip_prefix(start));
        match self.names().find_map(processor) {
            Some(name) => name.chars().try_for_each(|letter| {
                fmt::Write::write_char(
                    f,
                    if letter == '_' { '-' } else { letter.to_ascii_lowercase() },
                )
            })?,
            None => write!(f, "mach {:#04x}", self.flags & 0xff)?,
        }
        let features = FEATURES.iter().filter(|(name, _)| self.names().any(|one| one == *name));
        features.map(|(_, text)| text).try_for_each(|text| f.write_str(text))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::CodeObjectHeader;
    use std::string::ToString;

    #[test]
    fn a_target_id() {
        for (abi_version, flags, expected) in [
            (2, 0x13f, "gfx90a"),
            (2, 0xb3f, "gfx90a:sramecc-:xnack+"),
            (2, 0xe3f, "gfx90a:sramecc+:xnack-"),
            (1, 0x13f, "gfx90a:xnack+"),
            (1, 0x33f, "gfx90a:sramecc+:xnack+"),
            (4, 0x05f, "gfx9-4-generic"),
            (3, 0x049, "gfx1250"),
            (3, 0x07f, "mach 0x7f"),
        ] {
            let header = CodeObjectHeader { machine: 224, os_abi: 64, abi_version, flags };
            assert_eq!(header.to_string(), expected, "{abi_version} {flags:#x}");
        }
    }
}
