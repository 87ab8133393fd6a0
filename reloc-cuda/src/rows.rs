//! The rows: number, name, who resolves it, value, check, field, and what proves the field.
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
pub struct Row {
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

const fn row(
    number: u32,
    name: &'static str,
    resolver: Resolver,
    value: Value,
    check: Check,
    field: Field,
    proof: Proof,
) -> Row {
    Row { kind: Kind::new(number, name, value, check, field), resolver, proof }
}

/// A row that [`apply`](elf_core::apply) refuses by its name.
const fn refused(number: u32, name: &'static str, resolver: Resolver, proof: Proof) -> Row {
    Row { kind: Kind::dynamic(number, name), resolver, proof }
}

/// A row that changes nothing.
const fn untouched(number: u32, name: &'static str, resolver: Resolver, proof: Proof) -> Row {
    Row { kind: Kind::marker(number, name), resolver, proof }
}

const fn bits(at: u32, width: u32) -> Bits {
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

/// By number.
#[rustfmt::skip]
pub(crate) static ROWS: [Row; 116] = [
    untouched(0, "R_CUDA_NONE", Nobody, Table),
    row(  1, "R_CUDA_32",                   Either, S_A,     E32,          at(&[bits(0, 32)]),                                   Seen("calls_b-11.8-sm_61")),
    row(  2, "R_CUDA_64",                   Either, S_A,     Any,          at(&[bits(0, 64)]),                                   Linked("calls-13.5-sm_80")),
    row(  3, "R_CUDA_G32",                  Driver, G_A,     E32,          at(&[bits(0, 32)]),                                   Seen("kernel32-11.8-sm_35")),
    row(  4, "R_CUDA_G64",                  Driver, G_A,     Any,          at(&[bits(0, 64)]),                                   Seen("kernels-13.5-sm_80")),
    row(  5, "R_CUDA_ABS32_26",             Either, S_A,     E32,          at(&[bits(26, 32)]),                                  Table),
    row(  6, "R_CUDA_TEX_HEADER_INDEX",     Driver, HEADER,  Unsigned(20), at(&[bits(0, 20)]),                                   Seen("textures-13.5-sm_80")),
    row(  7, "R_CUDA_SAMP_HEADER_INDEX",    Driver, HEADER,  Unsigned(12), at(&[bits(20, 12)]),                                  Seen("textures-13.5-sm_80")),
    row(  8, "R_CUDA_SURF_HW_DESC",         Driver, SURFACE, Unsigned(32), at(&[bits(0, 32)]),                                   Table),
    row(  9, "R_CUDA_SURF_HW_SW_DESC",      Driver, SURFACE, Unsigned(32), at(&[bits(0, 32)]),                                   Table),
    row( 10, "R_CUDA_ABS32_LO_26",          Either, S_A,     Any,          at(&[bits(26, 32)]),                                  Table),
    row( 11, "R_CUDA_ABS32_HI_26",          Either, S_A,     Any,          at(&[bits(26, 32).shr(32)]),                          Table),
    row( 12, "R_CUDA_ABS32_23",             Either, S_A,     E32,          at(&[bits(23, 32)]),                                  Seen("calls_a-11.8-sm_35")),
    row( 13, "R_CUDA_ABS32_LO_23",          Either, S_A,     Any,          at(&[bits(23, 32)]),                                  Seen("calls_a-11.8-sm_35")),
    row( 14, "R_CUDA_ABS32_HI_23",          Either, S_A,     Any,          at(&[bits(23, 32).shr(32)]),                          Seen("calls_a-11.8-sm_35")),
    row( 15, "R_CUDA_ABS24_26",             Linker, S_A,     Unsigned(24), at(&[bits(26, 24)]),                                  Table),
    row( 16, "R_CUDA_ABS24_23",             Linker, S_A,     Unsigned(24), at(&[bits(23, 24)]),                                  Compared),
    row( 17, "R_CUDA_ABS16_26",             Linker, S_A,     Unsigned(16), at(&[bits(26, 16)]),                                  Table),
    row( 18, "R_CUDA_ABS16_23",             Linker, S_A,     Unsigned(16), at(&[bits(23, 16)]),                                  Compared),
    row( 19, "R_CUDA_TEX_SLOT",             Linker, SLOT,    Unsigned(8),  at(&[bits(32, 8)]),                                   Table),
    row( 20, "R_CUDA_SAMP_SLOT",            Linker, SLOT,    Unsigned(5),  at(&[bits(40, 5)]),                                   Table),
    row( 21, "R_CUDA_SURF_SLOT",            Linker, SLOT,    Unsigned(6),  at(&[bits(26, 6)]),                                   Table),
    row( 22, "R_CUDA_TEX_BINDLESSOFF13_32", Linker, S_A,     Unsigned(15), at(&[bits(32, 13).scaled(2)]),                        Table),
    row( 23, "R_CUDA_TEX_BINDLESSOFF13_47", Linker, S_A,     Unsigned(15), at(&[bits(47, 13).scaled(2)]),                        Table),
    // the bank in two parts, of which each must hold it: banks 16 and up are refused
    row( 24, "R_CUDA_CONST_FIELD19_28",     Linker, S_A,     Unsigned(16), at(&[bits(28, 14).scaled(2), bits(42, 4).of(Bank), bits(26, 1).shr(4).of(Bank)]), Table),
    row( 25, "R_CUDA_CONST_FIELD19_23",     Linker, S_A,     Unsigned(16), at(&[bits(23, 14).scaled(2), bits(37, 5).of(Bank)]),  Compared),
    row( 26, "R_CUDA_TEX_SLOT9_49",         Linker, SLOT,    Unsigned(9),  at(&[bits(49, 9)]),                                   Table),
    row( 27, "R_CUDA_6_31",                 Linker, S_A,     Unsigned(6),  at(&[bits(31, 6)]),                                   Table),
    row( 28, "R_CUDA_2_47",                 Linker, S_A,     Unsigned(2),  at(&[bits(47, 2)]),                                   Table),
    row( 29, "R_CUDA_TEX_BINDLESSOFF13_41", Linker, S_A,     Unsigned(15), at(&[bits(41, 13).scaled(2)]),                        Table),
    row( 30, "R_CUDA_TEX_BINDLESSOFF13_45", Linker, S_A,     Unsigned(15), at(&[bits(45, 13).scaled(2)]),                        Table),
    row( 31, "R_CUDA_FUNC_DESC32_23",       Driver, D_A,     E32,          at(&[bits(23, 32)]),                                  Table),
    row( 32, "R_CUDA_FUNC_DESC32_LO_23",    Driver, D_A,     Any,          at(&[bits(23, 32)]),                                  Table),
    row( 33, "R_CUDA_FUNC_DESC32_HI_23",    Driver, D_A,     Any,          at(&[bits(23, 32).shr(32)]),                          Table),
    row( 34, "R_CUDA_FUNC_DESC_32",         Driver, D_A,     E32,          at(&[bits(0, 32)]),                                   Table),
    row( 35, "R_CUDA_FUNC_DESC_64",         Driver, D_A,     Any,          at(&[bits(0, 64)]),                                   Compared),
    row( 36, "R_CUDA_CONST_FIELD21_26",     Linker, S_A,     Check::Either(16), at(&[bits(26, 16), bits(42, 5).of(Bank)]),            Table),
    row( 37, "R_CUDA_QUERY_DESC21_37",      Linker, S_A,     Unsigned(16), at(&[bits(37, 16), bits(53, 5).of(Bank)]),            Table),
    row( 38, "R_CUDA_CONST_FIELD19_26",     Linker, S_A,     Unsigned(16), at(&[bits(26, 14).scaled(2), bits(40, 5).of(Bank)]),  Table),
    row( 39, "R_CUDA_CONST_FIELD21_23",     Linker, S_A,     Check::Either(16), at(&[bits(23, 16), bits(39, 5).of(Bank)]),            Table),
    row( 40, "R_CUDA_PCREL_IMM24_26",       Linker, S_A_P,   Signed(24),   at(&[bits(26, 24)]),                                  Table),
    row( 41, "R_CUDA_PCREL_IMM24_23",       Linker, S_A_P,   Signed(24),   at(&[bits(23, 24)]),                                  Table),
    row( 42, "R_CUDA_ABS32_20",             Either, S_A,     E32,          at(&[bits(20, 32)]),                                  Disassembled("calls_a-11.8-sm_61")),
    row( 43, "R_CUDA_ABS32_LO_20",          Either, S_A,     Any,          at(&[bits(20, 32)]),                                  Disassembled("calls_a-11.8-sm_61")),
    row( 44, "R_CUDA_ABS32_HI_20",          Either, S_A,     Any,          at(&[bits(20, 32).shr(32)]),                          Disassembled("calls_a-11.8-sm_61")),
    row( 45, "R_CUDA_ABS24_20",             Linker, S_A,     Unsigned(24), at(&[bits(20, 24)]),                                  Disassembled("calls_a-11.8-sm_61")),
    row( 46, "R_CUDA_ABS16_20",             Linker, S_A,     Unsigned(16), at(&[bits(20, 16)]),                                  Compared),
    row( 47, "R_CUDA_FUNC_DESC32_20",       Driver, D_A,     E32,          at(&[bits(20, 32)]),                                  Table),
    row( 48, "R_CUDA_FUNC_DESC32_LO_20",    Driver, D_A,     Any,          at(&[bits(20, 32)]),                                  Table),
    row( 49, "R_CUDA_FUNC_DESC32_HI_20",    Driver, D_A,     Any,          at(&[bits(20, 32).shr(32)]),                          Table),
    row( 50, "R_CUDA_CONST_FIELD19_20",     Linker, S_A,     Unsigned(16), at(&[bits(20, 14).scaled(2), bits(34, 5).of(Bank)]),  Disassembled("calls_a-11.8-sm_61")),
    row( 51, "R_CUDA_BINDLESSOFF13_36",     Linker, S_A,     Unsigned(15), at(&[bits(36, 13).scaled(2)]),                        Table),
    row( 52, "R_CUDA_SURF_HEADER_INDEX",    Driver, HEADER,  Unsigned(20), at(&[bits(0, 20)]),                                   Seen("textures-13.5-sm_80")),
    row( 53, "R_CUDA_INSTRUCTION64",        Driver, INSTR,   Any,          at(&[bits(0, 64)]),                                   Table),
    row( 54, "R_CUDA_CONST_FIELD21_20",     Linker, S_A,     Check::Either(16), at(&[bits(20, 16), bits(36, 5).of(Bank)]),            Table),
    row( 55, "R_CUDA_ABS32_32",             Either, S_A,     E32,          at(&[bits(32, 32)]),                                  Linked("calls-13.5-sm_90")),
    row( 56, "R_CUDA_ABS32_LO_32",          Either, S_A,     Any,          at(&[bits(32, 32)]),                                  Disassembled("calls_a-13.5-sm_80")),
    row( 57, "R_CUDA_ABS32_HI_32",          Either, S_A,     Any,          at(&[bits(32, 32).shr(32)]),                          Disassembled("calls_a-13.5-sm_80")),
    row( 58, "R_CUDA_ABS47_34",             Driver, S_A,     Unsigned(49), at(&[bits(34, 47).scaled(2)]),                        Disassembled("calls_a-13.5-sm_80")),
    row( 59, "R_CUDA_ABS16_32",             Linker, S_A,     Unsigned(16), at(&[bits(32, 16)]),                                  Compared),
    row( 60, "R_CUDA_ABS24_32",             Linker, S_A,     Unsigned(24), at(&[bits(32, 24)]),                                  Table),
    row( 61, "R_CUDA_FUNC_DESC32_32",       Driver, D_A,     E32,          at(&[bits(32, 32)]),                                  Table),
    row( 62, "R_CUDA_FUNC_DESC32_LO_32",    Driver, D_A,     Any,          at(&[bits(32, 32)]),                                  Compared),
    row( 63, "R_CUDA_FUNC_DESC32_HI_32",    Driver, D_A,     Any,          at(&[bits(32, 32).shr(32)]),                          Compared),
    row( 64, "R_CUDA_CONST_FIELD19_40",     Linker, S_A,     Unsigned(16), at(&[bits(40, 14).scaled(2), bits(54, 5).of(Bank)]),  Linked("calls-13.5-sm_80")),
    row( 65, "R_CUDA_BINDLESSOFF14_40",     Linker, S_A,     Unsigned(16), at(&[bits(40, 14).scaled(2)]),                        Compared),
    row( 66, "R_CUDA_CONST_FIELD21_38",     Linker, S_A,     Check::Either(16), at(&[bits(38, 16), bits(54, 5).of(Bank)]),            Linked("calls-13.5-sm_90")),
    refused(67, "R_CUDA_INSTRUCTION128", Driver, Table), // a value of 128 bits
    untouched(68, "R_CUDA_YIELD_OPCODE9_0", Linker, Compared), // 9 bits at 0: nvlink leaves them
    untouched(69, "R_CUDA_YIELD_CLEAR_PRED4_87", Linker, Compared), // 4 bits at 87: nvlink leaves them
    row( 70, "R_CUDA_32_LO",                Either, S_A,     Any,          at(&[bits(0, 32)]),                                   Table),
    row( 71, "R_CUDA_32_HI",                Either, S_A,     Any,          at(&[bits(0, 32).shr(32)]),                           Table),
    row( 72, "R_CUDA_UNUSED_CLEAR32",       Linker, Z,       Unsigned(32), at(&[bits(0, 32)]),                                   Table),
    row( 73, "R_CUDA_UNUSED_CLEAR64",       Linker, Z,       Any,          at(&[bits(0, 64)]),                                   Seen("calls_a-13.5-sm_80")),
    row( 74, "R_CUDA_ABS24_40",             Linker, S_A,     Unsigned(24), at(&[bits(40, 24)]),                                  Linked("calls-13.5-sm_80")),
    row( 75, "R_CUDA_ABS55_16_34",          Driver, S_A,     Unsigned(57), at(&[bits(16, 8).scaled(2), bits(34, 47).shr(10)]),   Disassembled("calls_a-13.5-sm_90")),
    row( 76, "R_CUDA_8_0",                  Either, S_A,     Any,          at(&[bits(0, 8)]),                                    Described("textures-11.8-sm_61")),
    row( 77, "R_CUDA_8_8",                  Either, S_A,     Any,          at(&[bits(0, 8).shr(8)]),                             Described("textures-11.8-sm_61")),
    row( 78, "R_CUDA_8_16",                 Either, S_A,     Any,          at(&[bits(0, 8).shr(16)]),                            Described("textures-11.8-sm_61")),
    row( 79, "R_CUDA_8_24",                 Either, S_A,     Any,          at(&[bits(0, 8).shr(24)]),                            Described("textures-11.8-sm_61")),
    row( 80, "R_CUDA_8_32",                 Either, S_A,     Any,          at(&[bits(0, 8).shr(32)]),                            Described("textures-11.8-sm_61")),
    row( 81, "R_CUDA_8_40",                 Either, S_A,     Any,          at(&[bits(0, 8).shr(40)]),                            Described("textures-11.8-sm_61")),
    row( 82, "R_CUDA_8_48",                 Either, S_A,     Any,          at(&[bits(0, 8).shr(48)]),                            Described("textures-11.8-sm_61")),
    row( 83, "R_CUDA_8_56",                 Either, S_A,     Any,          at(&[bits(0, 8).shr(56)]),                            Described("textures-11.8-sm_61")),
    row( 84, "R_CUDA_G8_0",                 Driver, G_A,     Any,          at(&[bits(0, 8)]),                                    Described("textures-11.8-sm_61")),
    row( 85, "R_CUDA_G8_8",                 Driver, G_A,     Any,          at(&[bits(0, 8).shr(8)]),                             Described("textures-11.8-sm_61")),
    row( 86, "R_CUDA_G8_16",                Driver, G_A,     Any,          at(&[bits(0, 8).shr(16)]),                            Described("textures-11.8-sm_61")),
    row( 87, "R_CUDA_G8_24",                Driver, G_A,     Any,          at(&[bits(0, 8).shr(24)]),                            Described("textures-11.8-sm_61")),
    row( 88, "R_CUDA_G8_32",                Driver, G_A,     Any,          at(&[bits(0, 8).shr(32)]),                            Described("textures-11.8-sm_61")),
    row( 89, "R_CUDA_G8_40",                Driver, G_A,     Any,          at(&[bits(0, 8).shr(40)]),                            Described("textures-11.8-sm_61")),
    row( 90, "R_CUDA_G8_48",                Driver, G_A,     Any,          at(&[bits(0, 8).shr(48)]),                            Described("textures-11.8-sm_61")),
    row( 91, "R_CUDA_G8_56",                Driver, G_A,     Any,          at(&[bits(0, 8).shr(56)]),                            Described("textures-11.8-sm_61")),
    row( 92, "R_CUDA_FUNC_DESC_8_0",        Driver, D_A,     Any,          at(&[bits(0, 8)]),                                    Described("textures-11.8-sm_61")),
    row( 93, "R_CUDA_FUNC_DESC_8_8",        Driver, D_A,     Any,          at(&[bits(0, 8).shr(8)]),                             Described("textures-11.8-sm_61")),
    row( 94, "R_CUDA_FUNC_DESC_8_16",       Driver, D_A,     Any,          at(&[bits(0, 8).shr(16)]),                            Described("textures-11.8-sm_61")),
    row( 95, "R_CUDA_FUNC_DESC_8_24",       Driver, D_A,     Any,          at(&[bits(0, 8).shr(24)]),                            Described("textures-11.8-sm_61")),
    row( 96, "R_CUDA_FUNC_DESC_8_32",       Driver, D_A,     Any,          at(&[bits(0, 8).shr(32)]),                            Described("textures-11.8-sm_61")),
    row( 97, "R_CUDA_FUNC_DESC_8_40",       Driver, D_A,     Any,          at(&[bits(0, 8).shr(40)]),                            Described("textures-11.8-sm_61")),
    row( 98, "R_CUDA_FUNC_DESC_8_48",       Driver, D_A,     Any,          at(&[bits(0, 8).shr(48)]),                            Described("textures-11.8-sm_61")),
    row( 99, "R_CUDA_FUNC_DESC_8_56",       Driver, D_A,     Any,          at(&[bits(0, 8).shr(56)]),                            Described("textures-11.8-sm_61")),
    row(100, "R_CUDA_ABS20_44",             Linker, S_A,     Unsigned(20), at(&[bits(44, 20)]),                                  Described("textures-11.8-sm_61")),
    row(101, "R_CUDA_SAMP_HEADER_INDEX_0",  Driver, HEADER,  Unsigned(12), at(&[bits(0, 12)]),                                   Described("textures-11.8-sm_61")),
    row(102, "R_CUDA_UNIFIED",              Driver, U_A,     Any,          at(&[bits(0, 64)]),                                   Seen("calls_b-13.5-sm_90")),
    row(103, "R_CUDA_UNIFIED_32",           Driver, U_A,     E32,          at(&[bits(0, 32)]),                                   Table),
    row(104, "R_CUDA_UNIFIED_8_0",          Driver, U_A,     Any,          at(&[bits(0, 8)]),                                    Table),
    row(105, "R_CUDA_UNIFIED_8_8",          Driver, U_A,     Any,          at(&[bits(0, 8).shr(8)]),                             Table),
    row(106, "R_CUDA_UNIFIED_8_16",         Driver, U_A,     Any,          at(&[bits(0, 8).shr(16)]),                            Table),
    row(107, "R_CUDA_UNIFIED_8_24",         Driver, U_A,     Any,          at(&[bits(0, 8).shr(24)]),                            Table),
    row(108, "R_CUDA_UNIFIED_8_32",         Driver, U_A,     Any,          at(&[bits(0, 8).shr(32)]),                            Table),
    row(109, "R_CUDA_UNIFIED_8_40",         Driver, U_A,     Any,          at(&[bits(0, 8).shr(40)]),                            Table),
    row(110, "R_CUDA_UNIFIED_8_48",         Driver, U_A,     Any,          at(&[bits(0, 8).shr(48)]),                            Table),
    row(111, "R_CUDA_UNIFIED_8_56",         Driver, U_A,     Any,          at(&[bits(0, 8).shr(56)]),                            Table),
    row(112, "R_CUDA_UNIFIED32_LO_32",      Driver, U_A,     Any,          at(&[bits(32, 32)]),                                  Compared),
    row(113, "R_CUDA_UNIFIED32_HI_32",      Driver, U_A,     Any,          at(&[bits(32, 32).shr(32)]),                          Compared),
    row(114, "R_CUDA_ABS56_16_34",          Driver, S_A,     Unsigned(58), at(&[bits(16, 8).scaled(2), bits(34, 48).shr(10)]),   Disassembled("calls_a-13.5-sm_90")),
    row(115, "R_CUDA_CONST_FIELD22_37",     Linker, S_A,     Check::Either(17), at(&[bits(37, 17), bits(54, 5).of(Bank)]),            Linked("calls-13.5-sm_100")),
];
