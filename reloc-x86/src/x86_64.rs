//! Relocations of x86-64 (psABI AMD64 1.0, section 4.4.1 "Relocation Types"; TLS: Drepper, "ELF Handling For
//! Thread-Local Storage", chapter 4).
//!
//! Fields are whole little-endian words at any address. What the psABI leaves open is done as GNU ld and lld do it:
//!
//! - `R_X86_64_16` and `R_X86_64_8` take a signed or an unsigned value, `R_X86_64_32` only an unsigned one.
//! - `GOT...` counts from the GOT's base, `GOTPC...` and `GOTPCREL...` from the place.
//! - `GOTPLT64` is `GOT64`; the withdrawn `..._BND` kinds are the kinds without that ending.
//! - `CODE_4_...`, `CODE_5_...` and `CODE_6_...` (APX) differ from their namesakes only in how long an instruction a linker may
//!   rewrite.

use crate::relax::{Instruction, Numbers, Prefix};
use crate::tls64;
use elf_core::Check::{Any, Either, Signed, Unsigned};
use elf_core::names::EM_X86_64;
use elf_core::tls::Tls;
use elf_core::{
    Arch, Field, GotLoad, Kind, Reach, Rewrite, Role, Site, Slot, Stub, StubRelocation, Value,
};

/// x86-64 with addresses of 8 bytes (`EM_X86_64`, `ELFCLASS64`).
#[derive(Clone, Copy, Debug)]
pub enum X86_64 {}

impl Arch for X86_64 {
    const MACHINE: u16 = EM_X86_64;
    const ADDRESS_SIZE: u64 = 8;
    const KINDS: &'static [Kind] = KINDS;
    const STUBS: &'static [Stub] = &[Stub::new(
        // jmp *symbol@GOTPCREL(%rip); int3; int3
        &[0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc],
        8,
        &[StubRelocation::new(2, R_X86_64_GOTPCREL, -4)],
    )];
    const TLS: Option<Tls> = Some(tls64::TLS);
    // mov foo@GOTPCREL(%rip), reg; lea foo(%rip), reg
    const GOT_LOAD: Option<GotLoad> = Some(GotLoad::new(
        R_X86_64_REX_GOTPCRELX,
        [0x00c7_fff0, 0x0005_8b40],
        -4,
        0x8d,
        R_X86_64_PC32,
    ));
}

/// The instruction that stands for one without a prefix.
fn relaxed(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
    relaxed_behind(Prefix::None, site, reach)
}

/// The same behind a REX prefix.
fn relaxed_rex(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
    relaxed_behind(Prefix::Rex, site, reach)
}

/// The same behind a REX2 prefix.
fn relaxed_rex2(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
    relaxed_behind(Prefix::Rex2, site, reach)
}

#[inline]
fn relaxed_behind(prefix: Prefix, site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
    let [modrm] = *site.around::<1>(1)?;
    let is_relative = modrm & 0o307 == 0o005;
    // with another addend it is not the whole entry that is meant
    if !is_relative || site.record.addend != Some(-4) {
        return None;
    }
    Instruction { site, prefix, numbers: NUMBERS }.relaxed(reach, true)
}

/// The relocations of relaxed instructions.
const NUMBERS: Numbers =
    Numbers { distance: R_X86_64_PC32, immediate: R_X86_64_32, signed_immediate: R_X86_64_32S };

const S_A: Value = Value::of(Role::Address).plus_a();
const S_A_P: Value = S_A.minus(Role::Place);
const S_A_GOT: Value = S_A.minus(Role::GotBase);
const L_A_P: Value = Value::of(Role::Plt).plus_a().minus(Role::Place);
const L_A_GOT: Value = Value::of(Role::Plt).plus_a().minus(Role::GotBase);
const GOT_A_P: Value = Value::of(Role::GotBase).plus_a().minus(Role::Place);
const Z_A: Value = Value::of(Role::Size).plus_a();
/// The ABI's `G + A`: G counts from the GOT's base, `Role::Got` from 0.
const G_A: Value = Value::of(Role::Got(Slot::Address)).plus_a().minus(Role::GotBase);
/// The ABI's `G + GOT + A - P`.
const G_A_P: Value = entry(Slot::Address);
const GD_A_P: Value = entry(Slot::TlsGd);
const LD_A_P: Value = entry(Slot::TlsLd);
const IE_A_P: Value = entry(Slot::TpOffset);
const DESC_A_P: Value = entry(Slot::TlsDesc);
const DTP_A: Value = Value::of(Role::DtpOffset).plus_a();
const TP_A: Value = Value::of(Role::TpOffset).plus_a();
/// Of loaders.
const S: Value = Value::of(Role::Address);
const B_A: Value = Value::of(Role::Base).plus_a();
const M: Value = Value::of(Role::TlsModule);
const INDIRECT: Value = Value::of(Role::Indirect);

const fn entry(slot: Slot) -> Value {
    Value::of(Role::Got(slot)).plus_a().minus(Role::Place)
}

const WORD8: Field = Field::DATA8;
const WORD16: Field = Field::DATA16;
const WORD32: Field = Field::DATA32;
const WORD64: Field = Field::DATA64;

elf_core::kinds! {
    R_X86_64_NONE                   =    0: marker();
    R_X86_64_64                     =    1: new(S_A,          Any,           WORD64);
    R_X86_64_PC32                   =    2: new(S_A_P,        Signed(32),    WORD32);
    R_X86_64_GOT32                  =    3: new(G_A,          Signed(32),    WORD32);
    R_X86_64_PLT32                  =    4: new(L_A_P,        Signed(32),    WORD32);
    R_X86_64_COPY                   =    5: copy();
    R_X86_64_GLOB_DAT               =    6: load(S);
    R_X86_64_JUMP_SLOT              =    7: load(S);
    R_X86_64_RELATIVE               =    8: load(B_A);
    R_X86_64_GOTPCREL               =    9: new(G_A_P,        Signed(32),    WORD32);
    R_X86_64_32                     =   10: new(S_A,          Unsigned(32),  WORD32);
    R_X86_64_32S                    =   11: new(S_A,          Signed(32),    WORD32);
    R_X86_64_16                     =   12: new(S_A,          Either(16),    WORD16);
    R_X86_64_PC16                   =   13: new(S_A_P,        Signed(16),    WORD16);
    R_X86_64_8                      =   14: new(S_A,          Either(8),     WORD8);
    R_X86_64_PC8                    =   15: new(S_A_P,        Signed(8),     WORD8);
    R_X86_64_DTPMOD64               =   16: load(M);
    R_X86_64_DTPOFF64               =   17: new(DTP_A,        Any,           WORD64).transition(tls64::DTPOFF64);
    R_X86_64_TPOFF64                =   18: new(TP_A,         Any,           WORD64);
    R_X86_64_TLSGD                  =   19: new(GD_A_P,       Signed(32),    WORD32).transition(tls64::GD_TO_LE);
    R_X86_64_TLSLD                  =   20: new(LD_A_P,       Signed(32),    WORD32).transition(tls64::LD_TO_LE);
    R_X86_64_DTPOFF32               =   21: new(DTP_A,        Signed(32),    WORD32).transition(tls64::DTPOFF32);
    R_X86_64_GOTTPOFF               =   22: new(IE_A_P,       Signed(32),    WORD32).transition(tls64::IE_TO_LE);
    R_X86_64_TPOFF32                =   23: new(TP_A,         Signed(32),    WORD32);
    R_X86_64_PC64                   =   24: new(S_A_P,        Any,           WORD64);
    R_X86_64_GOTOFF64               =   25: new(S_A_GOT,      Any,           WORD64);
    R_X86_64_GOTPC32                =   26: new(GOT_A_P,      Signed(32),    WORD32);
    R_X86_64_GOT64                  =   27: new(G_A,          Any,           WORD64);
    R_X86_64_GOTPCREL64             =   28: new(G_A_P,        Any,           WORD64);
    R_X86_64_GOTPC64                =   29: new(GOT_A_P,      Any,           WORD64);
    R_X86_64_GOTPLT64               =   30: new(G_A,          Any,           WORD64);
    R_X86_64_PLTOFF64               =   31: new(L_A_GOT,      Any,           WORD64);
    R_X86_64_SIZE32                 =   32: new(Z_A,          Unsigned(32),  WORD32);
    R_X86_64_SIZE64                 =   33: new(Z_A,          Any,           WORD64);
    R_X86_64_GOTPC32_TLSDESC        =   34: new(DESC_A_P,     Signed(32),    WORD32).transition(tls64::DESC_TO_LE);
    R_X86_64_TLSDESC_CALL           =   35: marker().transition(tls64::DESC_CALL);
    R_X86_64_TLSDESC                =   36: descriptor();
    R_X86_64_IRELATIVE              =   37: load(INDIRECT);
    R_X86_64_RELATIVE64             =   38: dynamic();
    R_X86_64_PC32_BND               =   39: new(S_A_P,        Signed(32),    WORD32);
    R_X86_64_PLT32_BND              =   40: new(L_A_P,        Signed(32),    WORD32);
    R_X86_64_GOTPCRELX              =   41: new(G_A_P,        Signed(32),    WORD32).relax(relaxed);
    R_X86_64_REX_GOTPCRELX          =   42: new(G_A_P,        Signed(32),    WORD32).relax(relaxed_rex);
    R_X86_64_CODE_4_GOTPCRELX       =   43: new(G_A_P,        Signed(32),    WORD32).relax(relaxed_rex2);
    R_X86_64_CODE_4_GOTTPOFF        =   44: new(IE_A_P,       Signed(32),    WORD32).transition(tls64::IE_TO_LE_REX2);
    R_X86_64_CODE_4_GOTPC32_TLSDESC =   45: new(DESC_A_P,     Signed(32),    WORD32).transition(tls64::DESC_TO_LE_REX2);
    R_X86_64_CODE_5_GOTPCRELX       =   46: new(G_A_P,        Signed(32),    WORD32);
    R_X86_64_CODE_5_GOTTPOFF        =   47: new(IE_A_P,       Signed(32),    WORD32);
    R_X86_64_CODE_5_GOTPC32_TLSDESC =   48: new(DESC_A_P,     Signed(32),    WORD32);
    R_X86_64_CODE_6_GOTPCRELX       =   49: new(G_A_P,        Signed(32),    WORD32);
    R_X86_64_CODE_6_GOTTPOFF        =   50: new(IE_A_P,       Signed(32),    WORD32);
    R_X86_64_CODE_6_GOTPC32_TLSDESC =   51: new(DESC_A_P,     Signed(32),    WORD32);
    R_X86_64_GNU_VTINHERIT          =  250: marker();
    R_X86_64_GNU_VTENTRY            =  251: marker();
}
