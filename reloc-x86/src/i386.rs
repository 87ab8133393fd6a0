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
use crate::tls32;
use elf_core::Check::{Any, Either, Signed};
use elf_core::names::EM_386;
use elf_core::tls::Tls;
use elf_core::{Arch, Field, Kind, Reach, Rewrite, Role, Site, Slot, Stub, StubRelocation, Value};

/// i386 (`EM_386`).
#[derive(Clone, Copy, Debug)]
pub enum I386 {}

impl Arch for I386 {
    const MACHINE: u16 = EM_386;
    const ADDRESS_SIZE: u64 = 4;
    const KINDS: &'static [Kind] = KINDS;
    const STUBS: &'static [Stub] = &[Stub::new(
        // jmp *symbol@GOT, without base register; int3; int3
        &[0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc],
        8,
        &[StubRelocation::new(2, R_386_GOT32, 0)],
    )];
    const TLS: Option<Tls> = Some(tls32::TLS);
}

/// The instruction that stands for one with `GOT32X`.
fn relaxed(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
    let [_, modrm, addend @ ..] = *site.around::<6>(2)?;
    let addend = site.record.addend.unwrap_or(i32::from_le_bytes(addend).into());
    // with a base register that needs no SIB byte, or without one
    let has_base = modrm & 0o300 == 0o200 && modrm & 7 != 4;
    let is_known = has_base || modrm & 0o307 == 0o005;
    if !is_known || addend != 0 {
        return None;
    }
    Instruction { site, prefix: Prefix::None, numbers: NUMBERS }.relaxed(reach, false)
}

/// The relocations of relaxed instructions.
const NUMBERS: Numbers =
    Numbers { distance: R_386_PC32, immediate: R_386_32, signed_immediate: R_386_32 };

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
/// Of loaders.
const S: Value = Value::of(Role::Address);
const B_A: Value = Value::of(Role::Base).plus_a();
const M: Value = Value::of(Role::TlsModule);
const DTP: Value = Value::of(Role::DtpOffset);
const INDIRECT: Value = Value::of(Role::Indirect);

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

elf_core::kinds! {
    R_386_NONE          =    0: marker();
    R_386_32            =    1: new(S_A,          Any,           WORD32);
    R_386_PC32          =    2: new(S_A_P,        Any,           WORD32);
    R_386_GOT32         =    3: new(G_A,          Any,           WORD32).select(got32);
    R_386_PLT32         =    4: new(L_A_P,        Any,           WORD32);
    R_386_COPY          =    5: copy();
    R_386_GLOB_DAT      =    6: load(S);
    R_386_JUMP_SLOT     =    7: load(S);
    R_386_RELATIVE      =    8: load(B_A);
    R_386_GOTOFF        =    9: new(S_A_GOT,      Any,           WORD32);
    R_386_GOTPC         =   10: new(GOT_A_P,      Any,           WORD32);
    R_386_32PLT         =   11: new(L_A,          Any,           WORD32);
    R_386_TLS_TPOFF     =   14: load(TP_A);
    R_386_TLS_IE        =   15: new(IE_GOT_A,     Any,           WORD32).transition(tls32::IE_TO_LE);
    R_386_TLS_GOTIE     =   16: new(IE_A,         Any,           WORD32).transition(tls32::GOTIE_TO_LE);
    R_386_TLS_LE        =   17: new(TP_A,         Any,           WORD32);
    R_386_TLS_GD        =   18: new(GD_A,         Any,           WORD32).transition(tls32::GD_TO_LE);
    R_386_TLS_LDM       =   19: new(LD_A,         Any,           WORD32).transition(tls32::LD_TO_LE);
    R_386_16            =   20: new(S_A,          Either(16),    WORD16);
    R_386_PC16          =   21: new(S_A_P,        Signed(17),    WORD16);
    R_386_8             =   22: new(S_A,          Either(8),     WORD8);
    R_386_PC8           =   23: new(S_A_P,        Signed(8),     WORD8);
    R_386_TLS_GD_32     =   24: unsupported();
    R_386_TLS_GD_PUSH   =   25: unsupported();
    R_386_TLS_GD_CALL   =   26: unsupported();
    R_386_TLS_GD_POP    =   27: unsupported();
    R_386_TLS_LDM_32    =   28: unsupported();
    R_386_TLS_LDM_PUSH  =   29: unsupported();
    R_386_TLS_LDM_CALL  =   30: unsupported();
    R_386_TLS_LDM_POP   =   31: unsupported();
    R_386_TLS_LDO_32    =   32: new(DTP_A,        Any,           WORD32).transition(tls32::LDO);
    R_386_TLS_IE_32     =   33: unsupported();
    R_386_TLS_LE_32     =   34: new(A_TP,         Any,           WORD32);
    R_386_TLS_DTPMOD32  =   35: load(M);
    R_386_TLS_DTPOFF32  =   36: load(DTP);
    R_386_TLS_TPOFF32   =   37: load(A_TP);
    R_386_SIZE32        =   38: new(Z_A,          Any,           WORD32);
    R_386_TLS_GOTDESC   =   39: new(DESC_A,       Any,           WORD32).transition(tls32::DESC_TO_LE);
    R_386_TLS_DESC_CALL =   40: marker().transition(tls32::DESC_CALL);
    R_386_TLS_DESC      =   41: descriptor();
    R_386_IRELATIVE     =   42: load(INDIRECT);
    R_386_GOT32X        =   43: new(G_A,          Any,           WORD32).select(got32).relax(relaxed);
    R_386_GNU_VTINHERIT =  250: marker();
    R_386_GNU_VTENTRY   =  251: marker();
}
