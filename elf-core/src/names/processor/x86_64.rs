//! x86-64 (x86-64 psABI). Its program properties are those of i386.

use super::i386;
use super::supplement::Processor;

names! {
    /// `sh_type` of x86-64 (psABI 4.2.2, "Section Types").
    pub SHT_X86_64: u32 {
        SHT_X86_64_UNWIND = 0x7000_0001,
    }

    /// Reserved section indices of x86-64: common symbols of the medium code model (psABI 4.3, "Symbol Table").
    pub SHN_X86_64: u16 {
        SHN_X86_64_LCOMMON = 0xff02,
    }
}

flags! {
    /// `sh_flags` of x86-64 (psABI 4.2.1, "Section Flags").
    pub SHF_X86_64: u64 {
        SHF_X86_64_LARGE = 0x1000_0000,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    section_types: SHT_X86_64,
    section_flags: SHF_X86_64,
    section_indices: SHN_X86_64,
    ..i386::PROCESSOR
};
