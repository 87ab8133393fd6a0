//! The formulas of AAELF32, "Relocation codes table", and what each is for.

use elf_core::Role;
use reloc_arm::arm::*;

use crate::class::Class::{self, *};

/// What is subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minus {
    Nothing,
    /// P
    Place,
    /// Pa
    Word,
    /// B(S)
    Base,
    /// GOT_ORG
    Origin,
}
use Minus::{Base, Nothing, Origin, Place, Word};

/// Number; S or what the symbol is asked for instead; T; what is subtracted; the place.
pub(crate) type Row = (u32, Role, bool, Minus, Class);

const S: Role = Role::Address;
pub(crate) const L: Role = Role::Plt;
const G: Role = Role::Got(elf_core::Slot::Address);
pub(crate) const ORIGIN: Role = Role::GotBase;

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    (R_ARM_ABS32,              S, true,  Nothing, Data32),
    (R_ARM_REL32,              S, true,  Place,   Data32),
    (R_ARM_LDR_PC_G0,          S, false, Place,   Ldr(0)),
    (R_ARM_ABS16,              S, false, Nothing, Data16),
    (R_ARM_ABS12,              S, false, Nothing, Ldr(0)),
    (R_ARM_THM_ABS5,           S, false, Nothing, Ldr5),
    (R_ARM_ABS8,               S, false, Nothing, Data8),
    (R_ARM_SBREL32,            S, true,  Base,    Data32),
    (R_ARM_THM_PC8,            S, false, Word,    Literal8),
    (R_ARM_GOTOFF32,           S, true,  Origin,  Data32),
    (R_ARM_BASE_PREL,          ORIGIN, false, Place, Data32),
    (R_ARM_GOT_BREL,           G, false, Origin,  Data32),
    (R_ARM_CALL,               L, false, Place,   Branch24),
    (R_ARM_JUMP24,             L, false, Place,   Branch24),
    (R_ARM_THM_CALL,           L, false, Place,   ThumbBranch24),
    (R_ARM_THM_JUMP24,         L, false, Place,   ThumbBranch24),
    (R_ARM_BASE_ABS,           ORIGIN, false, Nothing, Data32),
    (R_ARM_TARGET1,            S, true,  Nothing, Data32),
    (R_ARM_PREL31,             L, true,  Place,   Data31),
    (R_ARM_MOVW_ABS_NC,        S, true,  Nothing, Movw(false)),
    (R_ARM_MOVT_ABS,           S, false, Nothing, Movt),
    (R_ARM_MOVW_PREL_NC,       S, true,  Place,   Movw(false)),
    (R_ARM_MOVT_PREL,          S, false, Place,   Movt),
    (R_ARM_THM_MOVW_ABS_NC,    S, true,  Nothing, ThumbMovw(false)),
    (R_ARM_THM_MOVT_ABS,       S, false, Nothing, ThumbMovt),
    (R_ARM_THM_MOVW_PREL_NC,   S, true,  Place,   ThumbMovw(false)),
    (R_ARM_THM_MOVT_PREL,      S, false, Place,   ThumbMovt),
    (R_ARM_THM_JUMP19,         L, false, Place,   ThumbBranch19),
    (R_ARM_THM_JUMP6,          S, false, Place,   Branch6),
    (R_ARM_THM_ALU_PREL_11_0,  S, true,  Word,    ThumbAdr),
    (R_ARM_THM_PC12,           S, false, Word,    ThumbLdr),
    (R_ARM_ABS32_NOI,          S, false, Nothing, Data32),
    (R_ARM_REL32_NOI,          S, false, Place,   Data32),
    (R_ARM_ALU_PC_G0_NC,       S, true,  Place,   Alu(0, false)),
    (R_ARM_ALU_PC_G0,          S, true,  Place,   Alu(0, true)),
    (R_ARM_ALU_PC_G1_NC,       S, true,  Place,   Alu(1, false)),
    (R_ARM_ALU_PC_G1,          S, true,  Place,   Alu(1, true)),
    (R_ARM_ALU_PC_G2,          S, true,  Place,   Alu(2, true)),
    (R_ARM_LDR_PC_G1,          S, false, Place,   Ldr(1)),
    (R_ARM_LDR_PC_G2,          S, false, Place,   Ldr(2)),
    (R_ARM_LDRS_PC_G0,         S, false, Place,   Ldrs(0)),
    (R_ARM_LDRS_PC_G1,         S, false, Place,   Ldrs(1)),
    (R_ARM_LDRS_PC_G2,         S, false, Place,   Ldrs(2)),
    (R_ARM_LDC_PC_G0,          S, false, Place,   Ldc(0)),
    (R_ARM_LDC_PC_G1,          S, false, Place,   Ldc(1)),
    (R_ARM_LDC_PC_G2,          S, false, Place,   Ldc(2)),
    (R_ARM_ALU_SB_G0_NC,       S, true,  Base,    Alu(0, false)),
    (R_ARM_ALU_SB_G0,          S, true,  Base,    Alu(0, true)),
    (R_ARM_ALU_SB_G1_NC,       S, true,  Base,    Alu(1, false)),
    (R_ARM_ALU_SB_G1,          S, true,  Base,    Alu(1, true)),
    (R_ARM_ALU_SB_G2,          S, true,  Base,    Alu(2, true)),
    (R_ARM_LDR_SB_G0,          S, false, Base,    Ldr(0)),
    (R_ARM_LDR_SB_G1,          S, false, Base,    Ldr(1)),
    (R_ARM_LDR_SB_G2,          S, false, Base,    Ldr(2)),
    (R_ARM_LDRS_SB_G0,         S, false, Base,    Ldrs(0)),
    (R_ARM_LDRS_SB_G1,         S, false, Base,    Ldrs(1)),
    (R_ARM_LDRS_SB_G2,         S, false, Base,    Ldrs(2)),
    (R_ARM_LDC_SB_G0,          S, false, Base,    Ldc(0)),
    (R_ARM_LDC_SB_G1,          S, false, Base,    Ldc(1)),
    (R_ARM_LDC_SB_G2,          S, false, Base,    Ldc(2)),
    (R_ARM_MOVW_BREL_NC,       S, true,  Base,    Movw(false)),
    (R_ARM_MOVT_BREL,          S, false, Base,    Movt),
    (R_ARM_MOVW_BREL,          S, true,  Base,    Movw(true)),
    (R_ARM_THM_MOVW_BREL_NC,   S, true,  Base,    ThumbMovw(false)),
    (R_ARM_THM_MOVT_BREL,      S, false, Base,    ThumbMovt),
    (R_ARM_THM_MOVW_BREL,      S, true,  Base,    ThumbMovw(true)),
    (R_ARM_PLT32_ABS,          L, true,  Nothing, Data32),
    (R_ARM_GOT_ABS,            G, false, Nothing, Data32),
    (R_ARM_GOT_PREL,           G, false, Place,   Data32),
    (R_ARM_GOT_BREL12,         G, false, Origin,  Ldr(0)),
    (R_ARM_GOTOFF12,           S, false, Origin,  Ldr(0)),
    (R_ARM_THM_JUMP11,         S, false, Place,   Branch11),
    (R_ARM_THM_JUMP8,          S, false, Place,   Branch8),
    (R_ARM_TLS_LDO32,          Role::DtpOffset, false, Nothing, Data32),
    (R_ARM_TLS_LE32,           Role::TpOffset,  false, Nothing, Data32),
    (R_ARM_TLS_LDO12,          Role::DtpOffset, false, Nothing, Ldr(0)),
    (R_ARM_TLS_LE12,           Role::TpOffset,  false, Nothing, Ldr(0)),
    (R_ARM_TLS_IE12GP, Role::Got(elf_core::Slot::TpOffset), false, Origin, Ldr(0)),
    (R_ARM_THM_GOT_BREL12,     G, false, Origin,  ThumbLdrUp),
    (R_ARM_THM_ALU_ABS_G0_NC,  S, true,  Nothing, Byte(0)),
    (R_ARM_THM_ALU_ABS_G1_NC,  S, false, Nothing, Byte(1)),
    (R_ARM_THM_ALU_ABS_G2_NC,  S, false, Nothing, Byte(2)),
    (R_ARM_THM_ALU_ABS_G3,     S, false, Nothing, Byte(3)),
];
