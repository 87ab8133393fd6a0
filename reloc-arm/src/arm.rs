//! Relocations of Arm (AAELF32, "Relocation codes") in A32, Thumb-2 and Thumb-1 code.
//!
//! Peculiarities:
//!
//! - Addends are in the instructions (`REL`), but may be in records. MOVT and its like hold no more of A than their MOVW, and do not shift it, so
//!   that carries are right.
//! - T, the state of a function, is bit 0 of its symbol's value and of every pointer to it. It is or-ed in once A is added.
//! - Branches change BL for BLX and back where the target's state asks for it, or go by way of a stub ([`crate::attributes`] says what the
//!   processors can do). Labels that are no functions say nothing of their state: the instruction stays what it is.
//! - Of a weak symbol that nobody defines, a branch goes on with the next instruction, and what counts from its place is A.
//! - Instructions have the byte order of the file, as in objects; processors since Armv7 have theirs little-endian in big-endian
//!   images (BE8), where they are turned around when all is relocated.
//! - `TARGET1` is `ABS32`; `TARGET2` is `GOT_PREL`, as on Linux, and `REL32` on M-profile, where the unwinder of GCC wants that, unless who links
//!   says what it is. B(S) is the start of the segment that the symbol is in.
//! - A branch of Armv8.1-M that is only a hint (`BF`) becomes a NOP where it does not reach.
//! - Code with TLS descriptors becomes local exec (`tls.rs`) where the variable's offset is known; else it calls [code](elf_core::tls::Tls::call)
//!   that asks the descriptor. Code that asks by itself (`DESCSEQ`), which no compiler makes, is refused by name then: its word would count
//!   from elsewhere; so are calls on processors whose branches do not span 16 MiB. So are the kinds that the ABI took back and those that vendors define.

use crate::branch;
use crate::field::{
    A32_BRANCH, A32_MOVT, A32_MOVW, BF12, BF16, BF18, DATA31, T16_BRANCH6, T16_BRANCH8,
    T16_BRANCH11, T16_BYTE0, T16_BYTE1, T16_BYTE2, T16_BYTE3, T16_LITERAL, T16_OFFSET5, T32_ADR,
    T32_BRANCH, T32_BRANCH19, T32_MOVT, T32_MOVW, T32_OFFSET12,
};
use crate::group::{T32_LOAD, alu, ldc, ldr, ldrs};
use crate::tls;
use elf_core::Check::{Any, Either, Signed, Unsigned};
use elf_core::{Field, Kind, Role, Slot, Value};

const S_A: Value = Value::of(Role::Address).plus_a();
const S_A_T: Value = S_A.or_t();
const S_A_P: Value = S_A.minus(Role::Place);
const S_A_T_P: Value = S_A_T.minus(Role::Place);
const S_A_PA: Value = S_A.minus_word(Role::Place);
const S_A_T_PA: Value = S_A_T.minus_word(Role::Place);
const S_A_B: Value = S_A.minus(Role::SegmentBase);
const S_A_T_B: Value = S_A_T.minus(Role::SegmentBase);
const S_A_GOT: Value = S_A.minus(Role::GotBase);
const S_A_T_GOT: Value = S_A_T.minus(Role::GotBase);
const L_A_T: Value = Value::of(Role::Plt).plus_a().or_t();
const L_A_T_P: Value = L_A_T.minus(Role::Place);
const GOT_A: Value = Value::of(Role::GotBase).plus_a();
const GOT_A_P: Value = GOT_A.minus(Role::Place);
const G_A: Value = entry(Slot::Address);
const G_A_P: Value = G_A.minus(Role::Place);
/// Of type information in unwinding tables.
const INFO_A_P: Value = Value::of(Role::TypeInfo).plus_a().minus(Role::Place);
const G_A_GOT: Value = G_A.minus(Role::GotBase);
const GD_A_P: Value = entry(Slot::TlsGd).minus(Role::Place);
const LD_A_P: Value = entry(Slot::TlsLd).minus(Role::Place);
const IE_A_P: Value = entry(Slot::TpOffset).minus(Role::Place);
const IE_A_GOT: Value = entry(Slot::TpOffset).minus(Role::GotBase);
/// A counts from the call, the word from where that returns to: the code that is called knows.
const DESC_A_P: Value = entry(Slot::TlsDesc).minus(Role::Place);
const ASK_A_P: Value = Value::of(Role::TlsDescCall).plus_a().or_t().minus(Role::Place);
const DTP_A: Value = Value::of(Role::DtpOffset).plus_a();
const TP_A: Value = Value::of(Role::TpOffset).plus_a();
/// Of dynamic loaders. What the place of a slot holds is no addend: it leads to lazy binding.
const S_T: Value = Value::of(Role::Address).or_t();
const B_A: Value = Value::of(Role::Base).plus_a();
const MODULE: Value = Value::of(Role::TlsModule);
const INDIRECT: Value = Value::of(Role::Indirect);

const fn entry(slot: Slot) -> Value {
    Value::of(Role::Got(slot)).plus_a()
}

const WORD8: Field = Field::DATA8;
const WORD16: Field = Field::DATA16;
const WORD32: Field = Field::DATA32;
const ALU_G0_NC: Field = alu(0, false);
const ALU_G0: Field = alu(0, true);
const ALU_G1_NC: Field = alu(1, false);
const ALU_G1: Field = alu(1, true);
const ALU_G2: Field = alu(2, true);
/// Assemblers leave out what a processor counts from, and linkers know it.
const A32_ASKS: Field = A32_BRANCH.decoded(|_| Some(-8));
const T32_ASKS: Field = T32_BRANCH.decoded(|_| Some(-4));
const LDR_G0: Field = ldr(0);
const LDR_G1: Field = ldr(1);
const LDR_G2: Field = ldr(2);
const LDRS_G0: Field = ldrs(0);
const LDRS_G1: Field = ldrs(1);
const LDRS_G2: Field = ldrs(2);
const LDC_G0: Field = ldc(0);
const LDC_G1: Field = ldc(1);
const LDC_G2: Field = ldc(2);

/// The rows.
pub(crate) const ROWS: &[Kind] = KINDS;

elf_core::kinds! {
    R_ARM_NONE               =   0: marker();
    R_ARM_PC24               =   1: new(L_A_T_P,   Signed(26),   A32_BRANCH).branch(branch::a32_any);
    R_ARM_ABS32              =   2: new(S_A_T,     Any,          WORD32);
    R_ARM_REL32              =   3: new(S_A_T_P,   Any,          WORD32);
    R_ARM_LDR_PC_G0          =   4: new(S_A_P,     Any,          LDR_G0);
    R_ARM_ABS16              =   5: new(S_A,       Either(16),   WORD16);
    R_ARM_ABS12              =   6: new(S_A,       Any,          LDR_G0);
    R_ARM_THM_ABS5           =   7: new(S_A,       Unsigned(7),  T16_OFFSET5);
    R_ARM_ABS8               =   8: new(S_A,       Either(8),    WORD8);
    R_ARM_SBREL32            =   9: new(S_A_T_B,   Any,          WORD32);
    R_ARM_THM_CALL           =  10: new(L_A_T_P,   Signed(25),   T32_BRANCH).branch(branch::t32_call);
    R_ARM_THM_PC8            =  11: new(S_A_PA,    Unsigned(10), T16_LITERAL);
    R_ARM_BREL_ADJ           =  12: dynamic();
    R_ARM_TLS_DESC           =  13: descriptor().argument_first();
    R_ARM_THM_SWI8           =  14: unsupported();
    R_ARM_XPC25              =  15: unsupported();
    R_ARM_THM_XPC22          =  16: unsupported();
    R_ARM_TLS_DTPMOD32       =  17: load(MODULE);
    R_ARM_TLS_DTPOFF32       =  18: load(DTP_A);
    R_ARM_TLS_TPOFF32        =  19: load(TP_A);
    R_ARM_COPY               =  20: copy();
    R_ARM_GLOB_DAT           =  21: load(S_T);
    R_ARM_JUMP_SLOT          =  22: load(S_T);
    R_ARM_RELATIVE           =  23: load(B_A);
    R_ARM_GOTOFF32           =  24: new(S_A_T_GOT, Any,          WORD32);
    R_ARM_BASE_PREL          =  25: new(GOT_A_P,   Any,          WORD32);
    R_ARM_GOT_BREL           =  26: new(G_A_GOT,   Any,          WORD32);
    R_ARM_PLT32              =  27: new(L_A_T_P,   Signed(26),   A32_BRANCH).branch(branch::a32_jump);
    R_ARM_CALL               =  28: new(L_A_T_P,   Signed(26),   A32_BRANCH).branch(branch::a32_call);
    R_ARM_JUMP24             =  29: new(L_A_T_P,   Signed(26),   A32_BRANCH).branch(branch::a32_jump);
    R_ARM_THM_JUMP24         =  30: new(L_A_T_P,   Signed(25),   T32_BRANCH).branch(branch::t32_jump);
    R_ARM_BASE_ABS           =  31: new(GOT_A,     Any,          WORD32);
    R_ARM_ALU_PCREL_7_0      =  32: unsupported();
    R_ARM_ALU_PCREL_15_8     =  33: unsupported();
    R_ARM_ALU_PCREL_23_15    =  34: unsupported();
    R_ARM_LDR_SBREL_11_0_NC  =  35: unsupported();
    R_ARM_ALU_SBREL_19_12_NC =  36: unsupported();
    R_ARM_ALU_SBREL_27_20_CK =  37: unsupported();
    R_ARM_TARGET1            =  38: new(S_A_T,     Any,          WORD32);
    R_ARM_SBREL31            =  39: unsupported();
    R_ARM_V4BX               =  40: marker();
    R_ARM_TARGET2            =  41: new(INFO_A_P,  Any,          WORD32);
    R_ARM_PREL31             =  42: new(L_A_T_P,   Signed(31),   DATA31);
    R_ARM_MOVW_ABS_NC        =  43: new(S_A_T,     Any,          A32_MOVW);
    R_ARM_MOVT_ABS           =  44: new(S_A,       Any,          A32_MOVT);
    R_ARM_MOVW_PREL_NC       =  45: new(S_A_T_P,   Any,          A32_MOVW);
    R_ARM_MOVT_PREL          =  46: new(S_A_P,     Any,          A32_MOVT);
    R_ARM_THM_MOVW_ABS_NC    =  47: new(S_A_T,     Any,          T32_MOVW);
    R_ARM_THM_MOVT_ABS       =  48: new(S_A,       Any,          T32_MOVT);
    R_ARM_THM_MOVW_PREL_NC   =  49: new(S_A_T_P,   Any,          T32_MOVW);
    R_ARM_THM_MOVT_PREL      =  50: new(S_A_P,     Any,          T32_MOVT);
    R_ARM_THM_JUMP19         =  51: new(L_A_T_P,   Signed(21),   T32_BRANCH19).branch(branch::thumb_jump);
    R_ARM_THM_JUMP6          =  52: new(S_A_P,     Unsigned(7),  T16_BRANCH6).branch(branch::thumb_jump);
    R_ARM_THM_ALU_PREL_11_0  =  53: new(S_A_T_PA,  Any,          T32_ADR);
    R_ARM_THM_PC12           =  54: new(S_A_PA,    Any,          T32_LOAD);
    R_ARM_ABS32_NOI          =  55: new(S_A,       Any,          WORD32);
    R_ARM_REL32_NOI          =  56: new(S_A_P,     Any,          WORD32);
    R_ARM_ALU_PC_G0_NC       =  57: new(S_A_T_P,   Any,          ALU_G0_NC);
    R_ARM_ALU_PC_G0          =  58: new(S_A_T_P,   Any,          ALU_G0);
    R_ARM_ALU_PC_G1_NC       =  59: new(S_A_T_P,   Any,          ALU_G1_NC);
    R_ARM_ALU_PC_G1          =  60: new(S_A_T_P,   Any,          ALU_G1);
    R_ARM_ALU_PC_G2          =  61: new(S_A_T_P,   Any,          ALU_G2);
    R_ARM_LDR_PC_G1          =  62: new(S_A_P,     Any,          LDR_G1);
    R_ARM_LDR_PC_G2          =  63: new(S_A_P,     Any,          LDR_G2);
    R_ARM_LDRS_PC_G0         =  64: new(S_A_P,     Any,          LDRS_G0);
    R_ARM_LDRS_PC_G1         =  65: new(S_A_P,     Any,          LDRS_G1);
    R_ARM_LDRS_PC_G2         =  66: new(S_A_P,     Any,          LDRS_G2);
    R_ARM_LDC_PC_G0          =  67: new(S_A_P,     Any,          LDC_G0);
    R_ARM_LDC_PC_G1          =  68: new(S_A_P,     Any,          LDC_G1);
    R_ARM_LDC_PC_G2          =  69: new(S_A_P,     Any,          LDC_G2);
    R_ARM_ALU_SB_G0_NC       =  70: new(S_A_T_B,   Any,          ALU_G0_NC);
    R_ARM_ALU_SB_G0          =  71: new(S_A_T_B,   Any,          ALU_G0);
    R_ARM_ALU_SB_G1_NC       =  72: new(S_A_T_B,   Any,          ALU_G1_NC);
    R_ARM_ALU_SB_G1          =  73: new(S_A_T_B,   Any,          ALU_G1);
    R_ARM_ALU_SB_G2          =  74: new(S_A_T_B,   Any,          ALU_G2);
    R_ARM_LDR_SB_G0          =  75: new(S_A_B,     Any,          LDR_G0);
    R_ARM_LDR_SB_G1          =  76: new(S_A_B,     Any,          LDR_G1);
    R_ARM_LDR_SB_G2          =  77: new(S_A_B,     Any,          LDR_G2);
    R_ARM_LDRS_SB_G0         =  78: new(S_A_B,     Any,          LDRS_G0);
    R_ARM_LDRS_SB_G1         =  79: new(S_A_B,     Any,          LDRS_G1);
    R_ARM_LDRS_SB_G2         =  80: new(S_A_B,     Any,          LDRS_G2);
    R_ARM_LDC_SB_G0          =  81: new(S_A_B,     Any,          LDC_G0);
    R_ARM_LDC_SB_G1          =  82: new(S_A_B,     Any,          LDC_G1);
    R_ARM_LDC_SB_G2          =  83: new(S_A_B,     Any,          LDC_G2);
    R_ARM_MOVW_BREL_NC       =  84: new(S_A_T_B,   Any,          A32_MOVW);
    R_ARM_MOVT_BREL          =  85: new(S_A_B,     Any,          A32_MOVT);
    R_ARM_MOVW_BREL          =  86: new(S_A_T_B,   Unsigned(16), A32_MOVW);
    R_ARM_THM_MOVW_BREL_NC   =  87: new(S_A_T_B,   Any,          T32_MOVW);
    R_ARM_THM_MOVT_BREL      =  88: new(S_A_B,     Any,          T32_MOVT);
    R_ARM_THM_MOVW_BREL      =  89: new(S_A_T_B,   Unsigned(16), T32_MOVW);
    R_ARM_TLS_GOTDESC        =  90: new(DESC_A_P,  Any,          WORD32).transition(tls::WORD);
    R_ARM_TLS_CALL           =  91: new(ASK_A_P,   Signed(26),   A32_ASKS).branch(branch::a32_call).transition(tls::CALL);
    R_ARM_TLS_DESCSEQ        =  92: unsupported().transition(tls::SEQUENCE);
    R_ARM_THM_TLS_CALL       =  93: new(ASK_A_P,   Signed(25),   T32_ASKS).branch(branch::t32_call).transition(tls::THUMB_CALL);
    R_ARM_PLT32_ABS          =  94: new(L_A_T,     Any,          WORD32);
    R_ARM_GOT_ABS            =  95: new(G_A,       Any,          WORD32);
    R_ARM_GOT_PREL           =  96: new(G_A_P,     Any,          WORD32);
    R_ARM_GOT_BREL12         =  97: new(G_A_GOT,   Any,          LDR_G0);
    R_ARM_GOTOFF12           =  98: new(S_A_GOT,   Any,          LDR_G0);
    R_ARM_GOTRELAX           =  99: marker();
    R_ARM_GNU_VTENTRY        = 100: marker();
    R_ARM_GNU_VTINHERIT      = 101: marker();
    R_ARM_THM_JUMP11         = 102: new(S_A_P,     Signed(12),   T16_BRANCH11).branch(branch::thumb_jump);
    R_ARM_THM_JUMP8          = 103: new(S_A_P,     Signed(9),    T16_BRANCH8).branch(branch::thumb_jump);
    R_ARM_TLS_GD32           = 104: new(GD_A_P,    Any,          WORD32);
    R_ARM_TLS_LDM32          = 105: new(LD_A_P,    Any,          WORD32);
    R_ARM_TLS_LDO32          = 106: new(DTP_A,     Any,          WORD32);
    R_ARM_TLS_IE32           = 107: new(IE_A_P,    Any,          WORD32);
    R_ARM_TLS_LE32           = 108: new(TP_A,      Any,          WORD32);
    R_ARM_TLS_LDO12          = 109: new(DTP_A,     Any,          LDR_G0);
    R_ARM_TLS_LE12           = 110: new(TP_A,      Any,          LDR_G0);
    R_ARM_TLS_IE12GP         = 111: new(IE_A_GOT,  Any,          LDR_G0);
    R_ARM_PRIVATE_0          = 112: unsupported();
    R_ARM_PRIVATE_1          = 113: unsupported();
    R_ARM_PRIVATE_2          = 114: unsupported();
    R_ARM_PRIVATE_3          = 115: unsupported();
    R_ARM_PRIVATE_4          = 116: unsupported();
    R_ARM_PRIVATE_5          = 117: unsupported();
    R_ARM_PRIVATE_6          = 118: unsupported();
    R_ARM_PRIVATE_7          = 119: unsupported();
    R_ARM_PRIVATE_8          = 120: unsupported();
    R_ARM_PRIVATE_9          = 121: unsupported();
    R_ARM_PRIVATE_10         = 122: unsupported();
    R_ARM_PRIVATE_11         = 123: unsupported();
    R_ARM_PRIVATE_12         = 124: unsupported();
    R_ARM_PRIVATE_13         = 125: unsupported();
    R_ARM_PRIVATE_14         = 126: unsupported();
    R_ARM_PRIVATE_15         = 127: unsupported();
    R_ARM_ME_TOO             = 128: unsupported();
    R_ARM_THM_TLS_DESCSEQ16  = 129: unsupported().transition(tls::THUMB_SEQUENCE);
    R_ARM_THM_TLS_DESCSEQ32  = 130: unsupported().transition(tls::WIDE_SEQUENCE);
    R_ARM_THM_GOT_BREL12     = 131: new(G_A_GOT,   Unsigned(12), T32_OFFSET12);
    R_ARM_THM_ALU_ABS_G0_NC  = 132: new(S_A_T,     Any,          T16_BYTE0);
    R_ARM_THM_ALU_ABS_G1_NC  = 133: new(S_A,       Any,          T16_BYTE1);
    R_ARM_THM_ALU_ABS_G2_NC  = 134: new(S_A,       Any,          T16_BYTE2);
    R_ARM_THM_ALU_ABS_G3     = 135: new(S_A,       Any,          T16_BYTE3);
    R_ARM_THM_BF16           = 136: new(S_A_T_P,   Any,          BF16);
    R_ARM_THM_BF12           = 137: new(S_A_T_P,   Any,          BF12);
    R_ARM_THM_BF18           = 138: new(S_A_T_P,   Any,          BF18);
    R_ARM_IRELATIVE          = 160: load(INDIRECT);
    R_ARM_GOTFUNCDESC        = 161: unsupported();
    R_ARM_GOTOFFFUNCDESC     = 162: unsupported();
    R_ARM_FUNCDESC           = 163: unsupported();
    R_ARM_FUNCDESC_VALUE     = 164: unsupported();
    R_ARM_TLS_GD32_FDPIC     = 165: unsupported();
    R_ARM_TLS_LDM32_FDPIC    = 166: unsupported();
    R_ARM_TLS_IE32_FDPIC     = 167: unsupported();
    R_ARM_PRIVATE_23         = 168: unsupported();
    R_ARM_PRIVATE_24         = 169: unsupported();
    R_ARM_PRIVATE_25         = 170: unsupported();
    R_ARM_PRIVATE_26         = 171: unsupported();
    R_ARM_PRIVATE_27         = 172: unsupported();
    R_ARM_PRIVATE_28         = 173: unsupported();
    R_ARM_PRIVATE_29         = 174: unsupported();
    R_ARM_PRIVATE_30         = 175: unsupported();
    R_ARM_PRIVATE_31         = 176: unsupported();
}
