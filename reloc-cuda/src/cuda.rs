//! Relocations of machine code: name and number, value, check, field, who resolves it, and what proves the field.
//!
//! As nvlink 11.2 to 13.5, ptxas and libnvJitLink have them in their own tables, which agree in all but later additions. Fields are
//! bits of the little-endian instruction or word at `r_offset`.

use crate::proof::Proof::{self, Compared, Described, Disassembled, Linked, Seen, Table};
use crate::resolver::Resolver::{self, Driver, Either, Linker, Nobody};
use elf_core::Check::{self, Any, Signed, Unsigned};
use elf_core::Role::Bank;
use elf_core::{Bits, Field, Kind, Role, Value};

/// A kind of relocation, who resolves it, and how its row is known to be right.
#[derive(Clone, Copy, Debug)]
pub struct RelocationRow {
    /// What is computed, allowed and filled.
    pub kind: Kind,
    /// Who resolves it.
    pub resolver: Resolver,
    /// What proves the field.
    pub proof: Proof,
}

const S_A: Value = Value::of(Role::Address).plus_a();
const S_A_P: Value = S_A.minus(Role::Place);
/// The symbol's size, which is 0 for a function that a linker has dropped.
const Z: Value = Value::of(Role::Size);
/// The generic address.
const G_A: Value = Value::of(Role::Generic).plus_a();
/// The address in the table of unified addresses; without such a table S.
const U_A: Value = Value::of(Role::Unified).plus_a();
/// The address of the function's descriptor.
const D_A: Value = Value::of(Role::Descriptor).plus_a();
const HEADER: Value = Value::of(Role::HeaderIndex);
const SURFACE: Value = Value::of(Role::SurfaceDescriptor);
const SLOT: Value = Value::of(Role::TextureSlot);
const INSTR: Value = Value::of(Role::Instruction);
/// An address that fits 32 bits.
const E32: Check = Check::Either(32);

const fn bits(at: u8, width: u8) -> Bits {
    Bits::new(at, width)
}

/// The smallest word from bit 0 on that holds these bits.
const fn at(parts: &'static [Bits]) -> Field {
    let (mut rest, mut end) = (parts, 0);
    while let [bits, tail @ ..] = rest {
        if bits.at + bits.width > end {
            end = bits.at + bits.width;
        }
        rest = tail;
    }
    let bytes = match end {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        33..=64 => 8,
        _ => 16,
    };
    Field::instruction(bytes, parts)
}

/// Writes a row of [`elf_core::kinds!`] and of `ROWS` for each line.
macro_rules! rows {
    ($(
        $name:ident = $number:literal: $make:ident($($argument:expr),* $(,)?), $resolver:ident, $proof:expr;
    )*) => {
        elf_core::kinds! {
            $($name = $number: $make($($argument),*);)*
        }

        /// By number.
        pub(crate) static ROWS: &[RelocationRow] = &[$(
            RelocationRow {
                kind: Kind::$make($number, stringify!($name) $(, $argument)*),
                resolver: $resolver,
                proof: $proof,
            },
        )*];
    };
}

rows! {
    R_CUDA_NONE                 =   0: marker(),                                                                   Nobody, Table;
    R_CUDA_32                   =   1: new(S_A,     E32,               at(&[bits(0, 32)])),                        Either, Seen("calls_b-11.8-sm_61");
    R_CUDA_64                   =   2: new(S_A,     Any,               at(&[bits(0, 64)])),                        Either, Linked("calls-13.5-sm_80");
    R_CUDA_G32                  =   3: new(G_A,     E32,               at(&[bits(0, 32)])),                        Driver, Seen("kernel32-11.8-sm_35");
    R_CUDA_G64                  =   4: new(G_A,     Any,               at(&[bits(0, 64)])),                        Driver, Seen("kernels-13.5-sm_80");
    R_CUDA_ABS32_26             =   5: new(S_A,     E32,               at(&[bits(26, 32)])),                       Either, Table;
    R_CUDA_TEX_HEADER_INDEX     =   6: new(HEADER,  Unsigned(20),      at(&[bits(0, 20)])),                        Driver, Seen("textures-13.5-sm_80");
    R_CUDA_SAMP_HEADER_INDEX    =   7: new(HEADER,  Unsigned(12),      at(&[bits(20, 12)])),                       Driver, Seen("textures-13.5-sm_80");
    R_CUDA_SURF_HW_DESC         =   8: new(SURFACE, Unsigned(32),      at(&[bits(0, 32)])),                        Driver, Table;
    R_CUDA_SURF_HW_SW_DESC      =   9: new(SURFACE, Unsigned(32),      at(&[bits(0, 32)])),                        Driver, Table;
    R_CUDA_ABS32_LO_26          =  10: new(S_A,     Any,               at(&[bits(26, 32)])),                       Either, Table;
    R_CUDA_ABS32_HI_26          =  11: new(S_A,     Any,               at(&[bits(26, 32).shr(32)])),               Either, Table;
    R_CUDA_ABS32_23             =  12: new(S_A,     E32,               at(&[bits(23, 32)])),                       Either, Seen("calls_a-11.8-sm_35");
    R_CUDA_ABS32_LO_23          =  13: new(S_A,     Any,               at(&[bits(23, 32)])),                       Either, Seen("calls_a-11.8-sm_35");
    R_CUDA_ABS32_HI_23          =  14: new(S_A,     Any,               at(&[bits(23, 32).shr(32)])),               Either, Seen("calls_a-11.8-sm_35");
    R_CUDA_ABS24_26             =  15: new(S_A,     Check::Either(24), at(&[bits(26, 24)])),                       Linker, Table;
    R_CUDA_ABS24_23             =  16: new(S_A,     Check::Either(24), at(&[bits(23, 24)])),                       Linker, Compared;
    R_CUDA_ABS16_26             =  17: new(S_A,     Check::Either(16), at(&[bits(26, 16)])),                       Linker, Table;
    R_CUDA_ABS16_23             =  18: new(S_A,     Check::Either(16), at(&[bits(23, 16)])),                       Linker, Compared;
    R_CUDA_TEX_SLOT             =  19: new(SLOT,    Unsigned(8),       at(&[bits(32, 8)])),                        Linker, Table;
    R_CUDA_SAMP_SLOT            =  20: new(SLOT,    Unsigned(5),       at(&[bits(40, 5)])),                        Linker, Table;
    R_CUDA_SURF_SLOT            =  21: new(SLOT,    Unsigned(6),       at(&[bits(26, 6)])),                        Linker, Table;
    R_CUDA_TEX_BINDLESSOFF13_32 =  22: new(S_A,     Unsigned(15),      at(&[bits(32, 13).scaled(2)])),             Linker, Table;
    R_CUDA_TEX_BINDLESSOFF13_47 =  23: new(S_A,     Unsigned(15),      at(&[bits(47, 13).scaled(2)])),             Linker, Table;
    // the bank in two parts, of which each must hold it: banks 16 and up are refused
    R_CUDA_CONST_FIELD19_28     =  24: new(S_A,     Unsigned(16),      at(&[bits(28, 14).scaled(2), bits(42, 4).of(Bank), bits(26, 1).shr(4).of(Bank)])), Linker, Table;
    R_CUDA_CONST_FIELD19_23     =  25: new(S_A,     Unsigned(16),      at(&[bits(23, 14).scaled(2), bits(37, 5).of(Bank)])), Linker, Compared;
    R_CUDA_TEX_SLOT9_49         =  26: new(SLOT,    Unsigned(9),       at(&[bits(49, 9)])),                        Linker, Table;
    R_CUDA_6_31                 =  27: new(S_A,     Unsigned(6),       at(&[bits(31, 6)])),                        Linker, Table;
    R_CUDA_2_47                 =  28: new(S_A,     Unsigned(2),       at(&[bits(47, 2)])),                        Linker, Table;
    R_CUDA_TEX_BINDLESSOFF13_41 =  29: new(S_A,     Unsigned(15),      at(&[bits(41, 13).scaled(2)])),             Linker, Table;
    R_CUDA_TEX_BINDLESSOFF13_45 =  30: new(S_A,     Unsigned(15),      at(&[bits(45, 13).scaled(2)])),             Linker, Table;
    R_CUDA_FUNC_DESC32_23       =  31: new(D_A,     E32,               at(&[bits(23, 32)])),                       Driver, Table;
    R_CUDA_FUNC_DESC32_LO_23    =  32: new(D_A,     Any,               at(&[bits(23, 32)])),                       Driver, Table;
    R_CUDA_FUNC_DESC32_HI_23    =  33: new(D_A,     Any,               at(&[bits(23, 32).shr(32)])),               Driver, Table;
    R_CUDA_FUNC_DESC_32         =  34: new(D_A,     E32,               at(&[bits(0, 32)])),                        Driver, Table;
    R_CUDA_FUNC_DESC_64         =  35: new(D_A,     Any,               at(&[bits(0, 64)])),                        Driver, Compared;
    R_CUDA_CONST_FIELD21_26     =  36: new(S_A,     Check::Either(16), at(&[bits(26, 16), bits(42, 5).of(Bank)])), Linker, Table;
    R_CUDA_QUERY_DESC21_37      =  37: new(S_A,     Unsigned(16),      at(&[bits(37, 16), bits(53, 5).of(Bank)])), Linker, Table;
    R_CUDA_CONST_FIELD19_26     =  38: new(S_A,     Unsigned(16),      at(&[bits(26, 14).scaled(2), bits(40, 5).of(Bank)])), Linker, Table;
    R_CUDA_CONST_FIELD21_23     =  39: new(S_A,     Check::Either(16), at(&[bits(23, 16), bits(39, 5).of(Bank)])), Linker, Table;
    R_CUDA_PCREL_IMM24_26       =  40: new(S_A_P,   Signed(24),        at(&[bits(26, 24)])),                       Linker, Table;
    R_CUDA_PCREL_IMM24_23       =  41: new(S_A_P,   Signed(24),        at(&[bits(23, 24)])),                       Linker, Table;
    R_CUDA_ABS32_20             =  42: new(S_A,     E32,               at(&[bits(20, 32)])),                       Either, Disassembled("calls_a-11.8-sm_61");
    R_CUDA_ABS32_LO_20          =  43: new(S_A,     Any,               at(&[bits(20, 32)])),                       Either, Disassembled("calls_a-11.8-sm_61");
    R_CUDA_ABS32_HI_20          =  44: new(S_A,     Any,               at(&[bits(20, 32).shr(32)])),               Either, Disassembled("calls_a-11.8-sm_61");
    R_CUDA_ABS24_20             =  45: new(S_A,     Check::Either(24), at(&[bits(20, 24)])),                       Linker, Disassembled("calls_a-11.8-sm_61");
    R_CUDA_ABS16_20             =  46: new(S_A,     Check::Either(16), at(&[bits(20, 16)])),                       Linker, Compared;
    R_CUDA_FUNC_DESC32_20       =  47: new(D_A,     E32,               at(&[bits(20, 32)])),                       Driver, Table;
    R_CUDA_FUNC_DESC32_LO_20    =  48: new(D_A,     Any,               at(&[bits(20, 32)])),                       Driver, Table;
    R_CUDA_FUNC_DESC32_HI_20    =  49: new(D_A,     Any,               at(&[bits(20, 32).shr(32)])),               Driver, Table;
    R_CUDA_CONST_FIELD19_20     =  50: new(S_A,     Unsigned(16),      at(&[bits(20, 14).scaled(2), bits(34, 5).of(Bank)])), Linker, Disassembled("calls_a-11.8-sm_61");
    R_CUDA_BINDLESSOFF13_36     =  51: new(S_A,     Unsigned(15),      at(&[bits(36, 13).scaled(2)])),             Linker, Table;
    R_CUDA_SURF_HEADER_INDEX    =  52: new(HEADER,  Unsigned(20),      at(&[bits(0, 20)])),                        Driver, Seen("textures-13.5-sm_80");
    R_CUDA_INSTRUCTION64        =  53: new(INSTR,   Any,               at(&[bits(0, 64)])),                        Driver, Table;
    R_CUDA_CONST_FIELD21_20     =  54: new(S_A,     Check::Either(16), at(&[bits(20, 16), bits(36, 5).of(Bank)])), Linker, Table;
    R_CUDA_ABS32_32             =  55: new(S_A,     E32,               at(&[bits(32, 32)])),                       Either, Linked("calls-13.5-sm_90");
    R_CUDA_ABS32_LO_32          =  56: new(S_A,     Any,               at(&[bits(32, 32)])),                       Either, Disassembled("calls_a-13.5-sm_80");
    R_CUDA_ABS32_HI_32          =  57: new(S_A,     Any,               at(&[bits(32, 32).shr(32)])),               Either, Disassembled("calls_a-13.5-sm_80");
    R_CUDA_ABS47_34             =  58: new(S_A,     Unsigned(49),      at(&[bits(34, 47).scaled(2)])),             Driver, Disassembled("calls_a-13.5-sm_80");
    R_CUDA_ABS16_32             =  59: new(S_A,     Check::Either(16), at(&[bits(32, 16)])),                       Linker, Compared;
    R_CUDA_ABS24_32             =  60: new(S_A,     Check::Either(24), at(&[bits(32, 24)])),                       Linker, Table;
    R_CUDA_FUNC_DESC32_32       =  61: new(D_A,     E32,               at(&[bits(32, 32)])),                       Driver, Table;
    R_CUDA_FUNC_DESC32_LO_32    =  62: new(D_A,     Any,               at(&[bits(32, 32)])),                       Driver, Compared;
    R_CUDA_FUNC_DESC32_HI_32    =  63: new(D_A,     Any,               at(&[bits(32, 32).shr(32)])),               Driver, Compared;
    R_CUDA_CONST_FIELD19_40     =  64: new(S_A,     Unsigned(16),      at(&[bits(40, 14).scaled(2), bits(54, 5).of(Bank)])), Linker, Linked("calls-13.5-sm_80");
    R_CUDA_BINDLESSOFF14_40     =  65: new(S_A,     Unsigned(16),      at(&[bits(40, 14).scaled(2)])),             Linker, Compared;
    R_CUDA_CONST_FIELD21_38     =  66: new(S_A,     Check::Either(16), at(&[bits(38, 16), bits(54, 5).of(Bank)])), Linker, Linked("calls-13.5-sm_90");
    R_CUDA_INSTRUCTION128       =  67: dynamic(),                                                                  Driver, Table; // a value of 128 bits
    R_CUDA_YIELD_OPCODE9_0      =  68: marker(),                                                                   Linker, Compared; // 9 bits at 0: nvlink leaves them
    R_CUDA_YIELD_CLEAR_PRED4_87 =  69: marker(),                                                                   Linker, Compared; // 4 bits at 87: nvlink leaves them
    R_CUDA_32_LO                =  70: new(S_A,     Any,               at(&[bits(0, 32)])),                        Either, Table;
    R_CUDA_32_HI                =  71: new(S_A,     Any,               at(&[bits(0, 32).shr(32)])),                Either, Table;
    R_CUDA_UNUSED_CLEAR32       =  72: new(Z,       Unsigned(32),      at(&[bits(0, 32)])),                        Linker, Table;
    R_CUDA_UNUSED_CLEAR64       =  73: new(Z,       Any,               at(&[bits(0, 64)])),                        Linker, Seen("calls_a-13.5-sm_80");
    R_CUDA_ABS24_40             =  74: new(S_A,     Check::Either(24), at(&[bits(40, 24)])),                       Linker, Linked("calls-13.5-sm_80");
    R_CUDA_ABS55_16_34          =  75: new(S_A,     Unsigned(57),      at(&[bits(16, 8).scaled(2), bits(34, 47).shr(10)])), Driver, Disassembled("calls_a-13.5-sm_90");
    R_CUDA_8_0                  =  76: new(S_A,     Any,               at(&[bits(0, 8)])),                         Either, Described("textures-11.8-sm_61");
    R_CUDA_8_8                  =  77: new(S_A,     Any,               at(&[bits(0, 8).shr(8)])),                  Either, Described("textures-11.8-sm_61");
    R_CUDA_8_16                 =  78: new(S_A,     Any,               at(&[bits(0, 8).shr(16)])),                 Either, Described("textures-11.8-sm_61");
    R_CUDA_8_24                 =  79: new(S_A,     Any,               at(&[bits(0, 8).shr(24)])),                 Either, Described("textures-11.8-sm_61");
    R_CUDA_8_32                 =  80: new(S_A,     Any,               at(&[bits(0, 8).shr(32)])),                 Either, Described("textures-11.8-sm_61");
    R_CUDA_8_40                 =  81: new(S_A,     Any,               at(&[bits(0, 8).shr(40)])),                 Either, Described("textures-11.8-sm_61");
    R_CUDA_8_48                 =  82: new(S_A,     Any,               at(&[bits(0, 8).shr(48)])),                 Either, Described("textures-11.8-sm_61");
    R_CUDA_8_56                 =  83: new(S_A,     Any,               at(&[bits(0, 8).shr(56)])),                 Either, Described("textures-11.8-sm_61");
    R_CUDA_G8_0                 =  84: new(G_A,     Any,               at(&[bits(0, 8)])),                         Driver, Described("textures-11.8-sm_61");
    R_CUDA_G8_8                 =  85: new(G_A,     Any,               at(&[bits(0, 8).shr(8)])),                  Driver, Described("textures-11.8-sm_61");
    R_CUDA_G8_16                =  86: new(G_A,     Any,               at(&[bits(0, 8).shr(16)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_G8_24                =  87: new(G_A,     Any,               at(&[bits(0, 8).shr(24)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_G8_32                =  88: new(G_A,     Any,               at(&[bits(0, 8).shr(32)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_G8_40                =  89: new(G_A,     Any,               at(&[bits(0, 8).shr(40)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_G8_48                =  90: new(G_A,     Any,               at(&[bits(0, 8).shr(48)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_G8_56                =  91: new(G_A,     Any,               at(&[bits(0, 8).shr(56)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_0        =  92: new(D_A,     Any,               at(&[bits(0, 8)])),                         Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_8        =  93: new(D_A,     Any,               at(&[bits(0, 8).shr(8)])),                  Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_16       =  94: new(D_A,     Any,               at(&[bits(0, 8).shr(16)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_24       =  95: new(D_A,     Any,               at(&[bits(0, 8).shr(24)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_32       =  96: new(D_A,     Any,               at(&[bits(0, 8).shr(32)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_40       =  97: new(D_A,     Any,               at(&[bits(0, 8).shr(40)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_48       =  98: new(D_A,     Any,               at(&[bits(0, 8).shr(48)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_FUNC_DESC_8_56       =  99: new(D_A,     Any,               at(&[bits(0, 8).shr(56)])),                 Driver, Described("textures-11.8-sm_61");
    R_CUDA_ABS20_44             = 100: new(S_A,     Check::Either(20), at(&[bits(44, 20)])),                       Linker, Described("textures-11.8-sm_61");
    R_CUDA_SAMP_HEADER_INDEX_0  = 101: new(HEADER,  Unsigned(12),      at(&[bits(0, 12)])),                        Driver, Described("textures-11.8-sm_61");
    R_CUDA_UNIFIED              = 102: new(U_A,     Any,               at(&[bits(0, 64)])),                        Driver, Seen("calls_b-13.5-sm_90");
    R_CUDA_UNIFIED_32           = 103: new(U_A,     E32,               at(&[bits(0, 32)])),                        Driver, Table;
    R_CUDA_UNIFIED_8_0          = 104: new(U_A,     Any,               at(&[bits(0, 8)])),                         Driver, Table;
    R_CUDA_UNIFIED_8_8          = 105: new(U_A,     Any,               at(&[bits(0, 8).shr(8)])),                  Driver, Table;
    R_CUDA_UNIFIED_8_16         = 106: new(U_A,     Any,               at(&[bits(0, 8).shr(16)])),                 Driver, Table;
    R_CUDA_UNIFIED_8_24         = 107: new(U_A,     Any,               at(&[bits(0, 8).shr(24)])),                 Driver, Table;
    R_CUDA_UNIFIED_8_32         = 108: new(U_A,     Any,               at(&[bits(0, 8).shr(32)])),                 Driver, Table;
    R_CUDA_UNIFIED_8_40         = 109: new(U_A,     Any,               at(&[bits(0, 8).shr(40)])),                 Driver, Table;
    R_CUDA_UNIFIED_8_48         = 110: new(U_A,     Any,               at(&[bits(0, 8).shr(48)])),                 Driver, Table;
    R_CUDA_UNIFIED_8_56         = 111: new(U_A,     Any,               at(&[bits(0, 8).shr(56)])),                 Driver, Table;
    R_CUDA_UNIFIED32_LO_32      = 112: new(U_A,     Any,               at(&[bits(32, 32)])),                       Driver, Compared;
    R_CUDA_UNIFIED32_HI_32      = 113: new(U_A,     Any,               at(&[bits(32, 32).shr(32)])),               Driver, Compared;
    R_CUDA_ABS56_16_34          = 114: new(S_A,     Unsigned(58),      at(&[bits(16, 8).scaled(2), bits(34, 48).shr(10)])), Driver, Disassembled("calls_a-13.5-sm_90");
    R_CUDA_CONST_FIELD22_37     = 115: new(S_A,     Check::Either(17), at(&[bits(37, 17), bits(54, 5).of(Bank)])), Linker, Linked("calls-13.5-sm_100");
}
