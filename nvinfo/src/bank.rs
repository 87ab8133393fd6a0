//! Constant banks: read-only memory that code reaches by bank number and offset.

use elf_core::names::{
    SHF_CUDA_MERCURY, SHF_EXECINSTR, SHT_CUDA_CONSTANT_B0, SHT_CUDA_CONSTANT_B17, SHT_CUDA_INFO,
    SHT_REL, SHT_RELA,
};
use elf_core::{File, SectionHeader};

/// A constant bank, or the part of one that the file gives: `.nv.constantN` of the module, `.nv.constantN.K` of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBank {
    /// Number of the bank: 0 has the parameters, 2 literals, 3 the program's constants, 4 addresses of variables.
    pub bank: u32,
    /// Index of the section of the code that the bank is for; `None` if it is for the whole module.
    pub owner: Option<u32>,
    /// Index of the bank's own section.
    pub section: u32,
    /// Its header; [`File::section_data`] gives the contents.
    pub header: SectionHeader,
}

impl ConstantBank {
    /// The bank that this section is.
    pub(crate) fn of(file: &File<'_>, index: u32, section: SectionHeader) -> Option<Self> {
        // most sections are these: their names need not be looked at
        if section.flags.bits() & (SHF_CUDA_MERCURY | SHF_EXECINSTR) != 0
            || matches!(section.r#type, SHT_CUDA_INFO | SHT_REL | SHT_RELA)
        {
            return None;
        }
        let name = file.section_name(&section).ok()?;
        let rest = name.as_bytes().strip_prefix(b".nv.constant")?;
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (number, rest) = rest.split_at_checked(digits)?;
        let bank = match section.r#type {
            number @ SHT_CUDA_CONSTANT_B0..=SHT_CUDA_CONSTANT_B17 => {
                number.saturating_sub(SHT_CUDA_CONSTANT_B0)
            }
            _ => core::str::from_utf8(number).ok()?.parse().ok()?,
        };
        let owner = match rest {
            [] => None,
            [b'.', ..] => Some(section.info),
            _ => return None,
        };
        Some(Self { bank, owner, section: index, header: section })
    }
}
