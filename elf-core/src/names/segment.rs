//! Segments: types and flags.

use super::processor::of;
use super::table::Flags;

names! {
    /// `p_type` of every machine: what a segment is for (gABI ch. 5, "Program Header"; GNU, OpenBSD, PaX, Solaris).
    pub PT: u32 {
        PT_NULL              = 0,
        PT_LOAD              = 1,
        PT_DYNAMIC           = 2,
        PT_INTERP            = 3,
        PT_NOTE              = 4,
        PT_SHLIB             = 5,
        PT_PHDR              = 6,
        PT_TLS               = 7,
        PT_SUNW_UNWIND       = 0x6464_e550,
        PT_GNU_EH_FRAME      = 0x6474_e550,
        PT_GNU_STACK         = 0x6474_e551,
        PT_GNU_RELRO         = 0x6474_e552,
        PT_GNU_PROPERTY      = 0x6474_e553,
        PT_GNU_SFRAME        = 0x6474_e554,
        PT_PAX_FLAGS         = 0x6504_1580,
        PT_OPENBSD_MUTABLE   = 0x65a3_dbe5,
        PT_OPENBSD_RANDOMIZE = 0x65a3_dbe6,
        PT_OPENBSD_WXNEEDED  = 0x65a3_dbe7,
        PT_OPENBSD_NOBTCFI   = 0x65a3_dbe8,
        PT_OPENBSD_SYSCALLS  = 0x65a3_dbe9,
        PT_OPENBSD_BOOTDATA  = 0x65a4_1be6,
        PT_SUNWBSS           = 0x6fff_fffa,
        PT_SUNWSTACK         = 0x6fff_fffb,
        PT_SUNWDTRACE        = 0x6fff_fffc,
        PT_SUNWCAP           = 0x6fff_fffd,
    }
}

flags! {
    /// `p_flags` of every machine: what memory permits (gABI ch. 5, "Program Header").
    pub PF: u32 {
        PF_R = 0x4,
        PF_W = 0x2,
        PF_X = 0x1,
    }
}

/// First `p_type` of the operating systems' range (gABI ch. 5, "Program Header").
pub const PT_LOOS: u32 = 0x6000_0000;
/// Last `p_type` of the operating systems' range.
pub const PT_HIOS: u32 = 0x6fff_ffff;
/// First `p_type` of the processors' range.
pub const PT_LOPROC: u32 = 0x7000_0000;
/// Last `p_type` of the processors' range.
pub const PT_HIPROC: u32 = 0x7fff_ffff;
/// First of 4,096 segment types for memory of a kind, one kind each (GNU).
pub const PT_GNU_MBIND_LO: u32 = 0x6474_e555;
/// Last segment type for memory of a kind.
pub const PT_GNU_MBIND_HI: u32 = 0x6474_f554;
/// The operating systems' bits of `p_flags` (gABI ch. 5, "Program Header").
pub const PF_MASKOS: u32 = 0x0ff0_0000;
/// The processors' bits of `p_flags`.
pub const PF_MASKPROC: u32 = 0xf000_0000;

/// The name of `p_type`; `PT_GNU_MBIND` for all of that range.
#[must_use]
pub const fn segment_type(machine: u16, p_type: u32) -> Option<&'static str> {
    match p_type {
        PT_GNU_MBIND_LO..=PT_GNU_MBIND_HI => Some("PT_GNU_MBIND"),
        _ => of(machine).segment_types.or(PT, p_type as u64),
    }
}

/// The names of the bits of `p_flags`.
#[must_use]
pub const fn segment_flags(machine: u16) -> Flags {
    PF.and(of(machine).segment_flags, Flags::EMPTY)
}
