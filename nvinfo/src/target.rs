//! What the file header says: architecture, toolkit, whether the file is linked.

use core::fmt;
use elf_core::names::{
    EF_CUDA_64BIT_ADDRESS, EF_CUDA_ACCELERATORS, EF_CUDA_SM, EF_CUDA_TEXMODE_INDEPENDENT,
    EF_CUDA_TEXMODE_UNIFIED, EF_CUDA_V2_ACCELERATORS, EF_CUDA_V2_SM, EF_CUDA_VIRTUAL_SM,
    ELFOSABI_CUDA, ELFOSABI_CUDA_V2, ET_EXEC, ET_REL,
};
use elf_core::{Encoding, FileHeader};

/// The form of the file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderForm {
    /// `EI_OSABI` 51, ABI version 7 (or one before): written by toolkits up to 12, for `sm_100` and up only before 12.8.
    V7,
    /// `EI_OSABI` 65, ABI version 8: written by 12.8 and 12.9 for `sm_100` and up, by 13 for all.
    V8,
    /// Another `EI_OSABI`: what `e_flags` mean is not known.
    Unknown,
}

/// The letter behind the architecture's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetSuffix {
    /// None: `sm_90`.
    Plain,
    /// `a`: for this architecture only, with all it has.
    Accelerated,
    /// `f`: for this architecture and later ones of its family.
    Family,
    /// The file does not say.
    NotRecorded,
}

impl TargetSuffix {
    /// The letter, or nothing.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain | Self::NotRecorded => "",
            Self::Accelerated => "a",
            Self::Family => "f",
        }
    }
}

/// How textures and samplers go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextureMode {
    /// One handle for both.
    Unified,
    /// A handle for each.
    Independent,
    /// The file does not say.
    NotRecorded,
}

/// Whether a file has been linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkStage {
    /// Not: `ET_REL`.
    Relocatable,
    /// It can be loaded: `ET_EXEC`.
    Linked,
    /// Another `e_type`.
    Other(u16),
}

/// Version of a toolkit: ten times the major number and the minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toolkit(pub u32);

impl Toolkit {
    /// The major version.
    #[must_use]
    pub const fn major(self) -> u32 {
        self.0 / 10
    }

    /// The minor version.
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.0 % 10
    }
}

impl fmt::Display for Toolkit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

/// What a cubin is for. Numbers that are not known to exist are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The form of the file header.
    pub form: HeaderForm,
    /// Number of the real architecture: 90 for `sm_90`.
    pub sm: Option<u32>,
    /// The letter behind it.
    pub suffix: TargetSuffix,
    /// Number of the virtual architecture that the code was compiled from.
    pub virtual_sm: Option<u32>,
    /// The toolkit that made the file.
    pub toolkit: Option<Toolkit>,
    /// Whether the file is linked.
    pub stage: LinkStage,
    /// Whether addresses have 64 bits.
    pub is_64: bool,
    /// How textures and samplers go together.
    pub texture_mode: TextureMode,
    /// Index of the note of type 1000 as the header of form V8 has it; 255 if it is 255 or more.
    pub note_section: Option<u8>,
    /// Bits of `e_flags` that say nothing of the above.
    pub other_flags: u32,
}

impl Target {
    /// What the file header alone says. [`Cubin::target`](crate::Cubin::target) knows more.
    #[must_use]
    pub const fn of_header(header: &FileHeader, encoding: Encoding) -> Self {
        let flags = header.flags;
        let stage = match header.r#type {
            ET_REL => LinkStage::Relocatable,
            ET_EXEC => LinkStage::Linked,
            other => LinkStage::Other(other),
        };
        let unknown = Self {
            form: HeaderForm::Unknown,
            sm: None,
            suffix: TargetSuffix::NotRecorded,
            virtual_sm: None,
            toolkit: None,
            stage,
            is_64: encoding.is_64(),
            texture_mode: TextureMode::NotRecorded,
            note_section: None,
            other_flags: flags,
        };
        match header.os_abi {
            ELFOSABI_CUDA => {
                let toolkit = header.version;
                let suffix = match (flags & EF_CUDA_ACCELERATORS != 0, toolkit >= 120) {
                    (false, _) => TargetSuffix::Plain,
                    (true, true) => TargetSuffix::Accelerated,
                    (true, false) => TargetSuffix::NotRecorded,
                };
                let texture_mode = match (
                    flags & EF_CUDA_TEXMODE_UNIFIED != 0,
                    flags & EF_CUDA_TEXMODE_INDEPENDENT != 0,
                ) {
                    (true, false) => TextureMode::Unified,
                    (false, true) => TextureMode::Independent,
                    _ => TextureMode::NotRecorded,
                };
                let accelerated = if toolkit >= 120 { EF_CUDA_ACCELERATORS } else { 0 };
                let known = EF_CUDA_SM
                    | EF_CUDA_VIRTUAL_SM
                    | EF_CUDA_TEXMODE_UNIFIED
                    | EF_CUDA_TEXMODE_INDEPENDENT
                    | EF_CUDA_64BIT_ADDRESS
                    | accelerated;
                Self {
                    form: HeaderForm::V7,
                    sm: Some(flags & EF_CUDA_SM),
                    suffix,
                    virtual_sm: Some((flags & EF_CUDA_VIRTUAL_SM) >> 16),
                    toolkit: Some(Toolkit(toolkit)),
                    texture_mode,
                    other_flags: flags & !known,
                    ..unknown
                }
            }
            ELFOSABI_CUDA_V2 => {
                let sm = (flags & EF_CUDA_V2_SM) >> 8;
                let suffix = match (flags & EF_CUDA_V2_ACCELERATORS != 0, sm < 90) {
                    (true, _) => TargetSuffix::Accelerated,
                    (false, true) => TargetSuffix::Plain, // there are no others below
                    (false, false) => TargetSuffix::NotRecorded,
                };
                Self {
                    form: HeaderForm::V8,
                    sm: Some(sm),
                    suffix,
                    note_section: Some((flags >> 24) as u8),
                    other_flags: flags & 0xff & !EF_CUDA_V2_ACCELERATORS,
                    ..unknown
                }
            }
            _ => unknown,
        }
    }

    /// Offset in bytes of the first parameter in constant bank 0, as all toolkits from 11 to 13.5 have it.
    ///
    /// A kernel's own [`ParameterBank`](crate::ParameterBank) says the same; one without parameters has none.
    #[must_use]
    pub const fn parameter_base(&self) -> Option<u32> {
        match self.sm {
            Some(35..=62) => Some(0x140),
            Some(70..=89) => Some(0x160),
            Some(90) => Some(0x210),
            Some(100..=121) => Some(0x380),
            _ => None,
        }
    }

    /// Whether a kernel's register count is also in the top byte of its section's `sh_info`: up to `sm_89`.
    #[must_use]
    pub const fn has_registers_in_header(&self) -> bool {
        matches!(self.sm, Some(..90))
    }

    /// Bytes that the size of a linked kernel's section of shared memory has for the system: 1 KiB from `sm_90` on.
    #[must_use]
    pub const fn reserved_shared(&self) -> u64 {
        match (self.sm, self.stage) {
            (Some(90..), LinkStage::Linked) => 0x400,
            _ => 0,
        }
    }
}

/// The architecture: `sm_90a`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sm {
            Some(sm) => write!(f, "sm_{sm}{}", self.suffix.as_str()),
            None => f.write_str("sm_?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(os_abi: u8, version: u32, flags: u32) -> Target {
        let header = FileHeader {
            os_abi,
            abi_version: if os_abi == 51 { 7 } else { 8 },
            r#type: 2,
            machine: 190,
            version,
            entry: 0,
            flags,
            program_headers: 0,
            program_header_size: 0,
            program_header_count: 0,
            section_headers: 0,
            section_header_size: 0,
            section_header_count: 0,
            section_names: 0,
            header_size: 64,
        };
        Target::of_header(&header, Encoding::Elf64Le)
    }

    #[test]
    fn headers_of_real_files() {
        let old = header(51, 0x76, 0x0034_0534);
        assert_eq!(
            (old.form, old.sm, old.virtual_sm, old.suffix),
            (HeaderForm::V7, Some(52), Some(52), TargetSuffix::Plain)
        );
        assert_eq!(
            (old.toolkit.unwrap().major(), old.toolkit.unwrap().minor(), old.other_flags),
            (11, 8, 0)
        );
        assert_eq!(old.texture_mode, TextureMode::Unified);
        assert_eq!(header(51, 0x76, 0x0050_0650).texture_mode, TextureMode::Independent);
        assert_eq!(header(51, 0x7c, 0x005a_0d5a).suffix, TargetSuffix::Accelerated);
        let unclear = header(51, 0x76, 0x005a_0d5a); // another bit to that toolkit
        assert_eq!((unclear.suffix, unclear.other_flags), (TargetSuffix::NotRecorded, 0x800));
        let new = header(65, 1, 0x0600_7902);
        assert_eq!(
            (new.form, new.sm, new.note_section, new.other_flags),
            (HeaderForm::V8, Some(121), Some(6), 2)
        );
        assert_eq!(header(65, 1, 0x0500_640a).suffix, TargetSuffix::Accelerated);
        assert_eq!(header(65, 1, 0x0600_5004).suffix, TargetSuffix::Plain);
    }

    #[test]
    fn unknown_numbers_are_passed_on() {
        assert_eq!(header(65, 1, 0x00ff_ff00).sm, Some(0xffff));
        let unknown = header(3, 1, 0x1234);
        assert_eq!(
            (unknown.form, unknown.sm, unknown.other_flags),
            (HeaderForm::Unknown, None, 0x1234)
        );
    }
}
