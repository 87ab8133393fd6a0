//! Relocations of i386 (psABI Intel386 1.1, section 4.4.1 "Relocation Types"; TLS: Drepper, "ELF Handling For Thread-Local
//! Storage", chapter 4).
//!
//! Fields are whole little-endian words at any address; values of 32 bits are computed modulo 2^32 and so always fit. Addends are
//! at the places (`SHT_REL`). Peculiarities:
//!
//! - `GOT32` and `GOT32X` depend on the instruction: with a base register (`symbol@GOT(%ebx)`) they count from the GOT's base,
//!   without one (`symbol@GOT`) from 0.
//! - There are two TLS variants: GNU's, whose thread pointer offsets are negative (`TLS_LE`, `TLS_IE`, `TLS_GOTIE`), and Sun's,
//!   with positive ones (`..._32`). Of the latter only `TLS_LE_32` and `TLS_LDO_32` are known to linkers of today; the others
//!   are refused.
//! - The 8 and 16 bit kinds are GNU's and not in the psABI. `PC16` may wrap around a segment of 64 KiB, hence its 17 bits, as in
//!   lld.

use crate::relax::{Instruction, Numbers, Prefix};
use elf_core::Check::{Any, Either, Signed};
use elf_core::names::EM_386;
use elf_core::tls::Tls;
use elf_core::{Arch, Field, Kind, Reach, Rewrite, Role, Site, Slot, Stub, Value, well_formed};

/// i386 (`EM_386`).
#[derive(Clone, Copy, Debug)]
pub enum I386 {}

impl Arch for I386 {
    const MACHINE: u16 = EM_386;
    const ADDRESS_SIZE: u64 = 4;
    const KINDS: &'static [Kind] = KINDS;
    const STUB: Option<Stub> = Some(Stub {
        // jmp *symbol@GOT, without base register; int3; int3
        code: &[0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc],
        alignment: 8,
        relocations: &[(2, R_386_GOT32, 0)],
        reach: None,
    });
    const TLS: Option<Tls> = Some(crate::tls32::TLS);

    fn relax(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
        let [_, modrm, addend @ ..] = *site.around::<6>(2)?;
        let addend = site.record.addend.unwrap_or(i32::from_le_bytes(addend).into());
        // with a base register that needs no SIB byte, or without one
        let has_base = modrm & 0o300 == 0o200 && modrm & 7 != 4;
        let is_known = has_base || modrm & 0o307 == 0o005;
        if site.record.r#type != R_386_GOT32X || !is_known || addend != 0 {
            return None;
        }
        Instruction { site, prefix: Prefix::None, numbers: NUMBERS }.relaxed(reach, false)
    }
}

/// The relocations of relaxed instructions.
const NUMBERS: Numbers = Numbers { distance: 2, immediate: 1, signed_immediate: 1 };

const R_386_GOT32X: u32 = 43;

const R_386_GOT32: u32 = 3;

const S_A: Value = Value::of(Role::Address).plus_a();
const S_A_P: Value = S_A.minus(Role::Place);
const S_A_GOT: Value = S_A.minus(Role::GotBase);
const L_A: Value = Value::of(Role::Plt).plus_a();
const L_A_P: Value = L_A.minus(Role::Place);
const GOT_A_P: Value = Value::of(Role::GotBase).plus_a().minus(Role::Place);
const Z_A: Value = Value::of(Role::Size).plus_a();
/// The ABI's `G + A`: G counts from the GOT's base, `Role::Got` from 0.
const G_A: Value = entry(Slot::Address);
/// The ABI's `G + GOT + A`.
const G_GOT_A: Value = Value::of(Role::Got(Slot::Address)).plus_a();
const GD_A: Value = entry(Slot::TlsGd);
const LD_A: Value = entry(Slot::TlsLd);
const IE_A: Value = entry(Slot::TpOffset);
const IE_GOT_A: Value = Value::of(Role::Got(Slot::TpOffset)).plus_a();
const DESC_A: Value = entry(Slot::TlsDesc);
const DTP_A: Value = Value::of(Role::DtpOffset).plus_a();
const TP_A: Value = Value::of(Role::TpOffset).plus_a();
/// Sun's positive offset; its addend is added after the change of sign.
const A_TP: Value = Value::ZERO.plus_a().minus(Role::TpOffset);

const fn entry(slot: Slot) -> Value {
    Value::of(Role::Got(slot)).plus_a().minus(Role::GotBase)
}

/// The formula of `GOT32` and `GOT32X`: a ModRM byte with mod 00 and r/m 101 before the place means an address without base
/// register.
fn got32(before: &[u8]) -> Value {
    match before {
        [.., modrm] if modrm & 0o307 == 0o005 => G_GOT_A,
        _ => G_A,
    }
}

const WORD8: Field = Field::DATA8;
const WORD16: Field = Field::DATA16;
const WORD32: Field = Field::DATA32;

#[rustfmt::skip]
const KINDS: &[Kind] = &[
    //        number name                     value     check       field
    Kind::marker(0,  "R_386_NONE"),
    Kind::new(1,     "R_386_32",              S_A,      Any,        WORD32),
    Kind::new(2,     "R_386_PC32",            S_A_P,    Any,        WORD32),
    Kind::new(R_386_GOT32, "R_386_GOT32",     G_A,      Any,        WORD32).select(got32),
    Kind::new(4,     "R_386_PLT32",           L_A_P,    Any,        WORD32),
    Kind::dynamic(5, "R_386_COPY"),
    Kind::dynamic(6, "R_386_GLOB_DAT"),
    Kind::dynamic(7, "R_386_JUMP_SLOT"),
    Kind::dynamic(8, "R_386_RELATIVE"),
    Kind::new(9,     "R_386_GOTOFF",          S_A_GOT,  Any,        WORD32),
    Kind::new(10,    "R_386_GOTPC",           GOT_A_P,  Any,        WORD32),
    Kind::new(11,    "R_386_32PLT",           L_A,      Any,        WORD32),
    Kind::dynamic(14, "R_386_TLS_TPOFF"),
    Kind::new(15,    "R_386_TLS_IE",          IE_GOT_A, Any,        WORD32),
    Kind::new(16,    "R_386_TLS_GOTIE",       IE_A,     Any,        WORD32),
    Kind::new(17,    "R_386_TLS_LE",          TP_A,     Any,        WORD32),
    Kind::new(18,    "R_386_TLS_GD",          GD_A,     Any,        WORD32),
    Kind::new(19,    "R_386_TLS_LDM",         LD_A,     Any,        WORD32),
    Kind::new(20,    "R_386_16",              S_A,      Either(16), WORD16),
    Kind::new(21,    "R_386_PC16",            S_A_P,    Signed(17), WORD16),
    Kind::new(22,    "R_386_8",               S_A,      Either(8),  WORD8),
    Kind::new(23,    "R_386_PC8",             S_A_P,    Signed(8),  WORD8),
    Kind::unsupported(24,      "R_386_TLS_GD_32"),
    Kind::unsupported(25,      "R_386_TLS_GD_PUSH"),
    Kind::unsupported(26,      "R_386_TLS_GD_CALL"),
    Kind::unsupported(27,      "R_386_TLS_GD_POP"),
    Kind::unsupported(28,      "R_386_TLS_LDM_32"),
    Kind::unsupported(29,      "R_386_TLS_LDM_PUSH"),
    Kind::unsupported(30,      "R_386_TLS_LDM_CALL"),
    Kind::unsupported(31,      "R_386_TLS_LDM_POP"),
    Kind::new(32,    "R_386_TLS_LDO_32",      DTP_A,    Any,        WORD32),
    Kind::unsupported(33,      "R_386_TLS_IE_32"),
    Kind::new(34,    "R_386_TLS_LE_32",       A_TP,     Any,        WORD32),
    Kind::dynamic(35, "R_386_TLS_DTPMOD32"),
    Kind::dynamic(36, "R_386_TLS_DTPOFF32"),
    Kind::dynamic(37, "R_386_TLS_TPOFF32"),
    Kind::new(38,    "R_386_SIZE32",          Z_A,      Any,        WORD32),
    Kind::new(39,    "R_386_TLS_GOTDESC",     DESC_A,   Any,        WORD32),
    Kind::marker(40, "R_386_TLS_DESC_CALL"),
    Kind::dynamic(41, "R_386_TLS_DESC"),
    Kind::dynamic(42, "R_386_IRELATIVE"),
    Kind::new(43,    "R_386_GOT32X",          G_A,      Any,        WORD32).select(got32),
    Kind::marker(250, "R_386_GNU_VTINHERIT"),
    Kind::marker(251, "R_386_GNU_VTENTRY"),
];
const _: () = assert!(well_formed(KINDS));
