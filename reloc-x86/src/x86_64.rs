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
use elf_core::Check::{Any, Either, Signed, Unsigned};
use elf_core::names::EM_X86_64;
use elf_core::tls::Tls;
use elf_core::{Arch, Field, Kind, Reach, Rewrite, Role, Site, Slot, Stub, Value, well_formed};

/// x86-64 with addresses of 8 bytes (`EM_X86_64`, `ELFCLASS64`).
#[derive(Clone, Copy, Debug)]
pub enum X86_64 {}

impl Arch for X86_64 {
    const MACHINE: u16 = EM_X86_64;
    const ADDRESS_SIZE: u64 = 8;
    const KINDS: &'static [Kind] = KINDS;
    const STUB: Option<Stub> = Some(Stub {
        // jmp *symbol@GOTPCREL(%rip); int3; int3
        code: &[0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc],
        alignment: 8,
        relocations: &[(2, R_X86_64_GOTPCREL, -4)],
        reach: None,
    });
    const TLS: Option<Tls> = Some(crate::tls64::TLS);

    #[inline]
    fn relax(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
        let prefix = match site.record.r#type {
            R_X86_64_GOTPCRELX => Prefix::None,
            R_X86_64_REX_GOTPCRELX => Prefix::Rex,
            R_X86_64_CODE_4_GOTPCRELX => Prefix::Rex2,
            _ => return None,
        };
        let [modrm] = *site.around::<1>(1)?;
        let is_relative = modrm & 0o307 == 0o005;
        // with another addend it is not the whole entry that is meant
        if !is_relative || site.record.addend != Some(-4) {
            return None;
        }
        Instruction { site, prefix, numbers: NUMBERS }.relaxed(reach, true)
    }
}

/// The relocations of relaxed instructions.
const NUMBERS: Numbers = Numbers { distance: 2, immediate: 10, signed_immediate: 11 };

const R_X86_64_GOTPCRELX: u32 = 41;
const R_X86_64_REX_GOTPCRELX: u32 = 42;
const R_X86_64_CODE_4_GOTPCRELX: u32 = 43;

const R_X86_64_GOTPCREL: u32 = 9;

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

const fn entry(slot: Slot) -> Value {
    Value::of(Role::Got(slot)).plus_a().minus(Role::Place)
}

const WORD8: Field = Field::DATA8;
const WORD16: Field = Field::DATA16;
const WORD32: Field = Field::DATA32;
const WORD64: Field = Field::DATA64;

#[rustfmt::skip]
const KINDS: &[Kind] = &[
    //        number name                           value     check         field
    Kind::marker(0,  "R_X86_64_NONE"),
    Kind::new(1,     "R_X86_64_64",                 S_A,      Any,          WORD64),
    Kind::new(2,     "R_X86_64_PC32",               S_A_P,    Signed(32),   WORD32),
    Kind::new(3,     "R_X86_64_GOT32",              G_A,      Signed(32),   WORD32),
    Kind::new(4,     "R_X86_64_PLT32",              L_A_P,    Signed(32),   WORD32),
    Kind::dynamic(5, "R_X86_64_COPY"),
    Kind::dynamic(6, "R_X86_64_GLOB_DAT"),
    Kind::dynamic(7, "R_X86_64_JUMP_SLOT"),
    Kind::dynamic(8, "R_X86_64_RELATIVE"),
    Kind::new(R_X86_64_GOTPCREL, "R_X86_64_GOTPCREL", G_A_P,  Signed(32),   WORD32),
    Kind::new(10,    "R_X86_64_32",                 S_A,      Unsigned(32), WORD32),
    Kind::new(11,    "R_X86_64_32S",                S_A,      Signed(32),   WORD32),
    Kind::new(12,    "R_X86_64_16",                 S_A,      Either(16),   WORD16),
    Kind::new(13,    "R_X86_64_PC16",               S_A_P,    Signed(16),   WORD16),
    Kind::new(14,    "R_X86_64_8",                  S_A,      Either(8),    WORD8),
    Kind::new(15,    "R_X86_64_PC8",                S_A_P,    Signed(8),    WORD8),
    Kind::dynamic(16, "R_X86_64_DTPMOD64"),
    Kind::new(17,    "R_X86_64_DTPOFF64",           DTP_A,    Any,          WORD64),
    Kind::new(18,    "R_X86_64_TPOFF64",            TP_A,     Any,          WORD64),
    Kind::new(19,    "R_X86_64_TLSGD",              GD_A_P,   Signed(32),   WORD32),
    Kind::new(20,    "R_X86_64_TLSLD",              LD_A_P,   Signed(32),   WORD32),
    Kind::new(21,    "R_X86_64_DTPOFF32",           DTP_A,    Signed(32),   WORD32),
    Kind::new(22,    "R_X86_64_GOTTPOFF",           IE_A_P,   Signed(32),   WORD32),
    Kind::new(23,    "R_X86_64_TPOFF32",            TP_A,     Signed(32),   WORD32),
    Kind::new(24,    "R_X86_64_PC64",               S_A_P,    Any,          WORD64),
    Kind::new(25,    "R_X86_64_GOTOFF64",           S_A_GOT,  Any,          WORD64),
    Kind::new(26,    "R_X86_64_GOTPC32",            GOT_A_P,  Signed(32),   WORD32),
    Kind::new(27,    "R_X86_64_GOT64",              G_A,      Any,          WORD64),
    Kind::new(28,    "R_X86_64_GOTPCREL64",         G_A_P,    Any,          WORD64),
    Kind::new(29,    "R_X86_64_GOTPC64",            GOT_A_P,  Any,          WORD64),
    Kind::new(30,    "R_X86_64_GOTPLT64",           G_A,      Any,          WORD64),
    Kind::new(31,    "R_X86_64_PLTOFF64",           L_A_GOT,  Any,          WORD64),
    Kind::new(32,    "R_X86_64_SIZE32",             Z_A,      Unsigned(32), WORD32),
    Kind::new(33,    "R_X86_64_SIZE64",             Z_A,      Any,          WORD64),
    Kind::new(34,    "R_X86_64_GOTPC32_TLSDESC",    DESC_A_P, Signed(32),   WORD32),
    Kind::marker(35, "R_X86_64_TLSDESC_CALL"),
    Kind::dynamic(36, "R_X86_64_TLSDESC"),
    Kind::dynamic(37, "R_X86_64_IRELATIVE"),
    Kind::dynamic(38, "R_X86_64_RELATIVE64"),
    Kind::new(39,    "R_X86_64_PC32_BND",           S_A_P,    Signed(32),   WORD32),
    Kind::new(40,    "R_X86_64_PLT32_BND",          L_A_P,    Signed(32),   WORD32),
    Kind::new(41,    "R_X86_64_GOTPCRELX",          G_A_P,    Signed(32),   WORD32),
    Kind::new(42,    "R_X86_64_REX_GOTPCRELX",      G_A_P,    Signed(32),   WORD32),
    Kind::new(43,    "R_X86_64_CODE_4_GOTPCRELX",   G_A_P,    Signed(32),   WORD32),
    Kind::new(44,    "R_X86_64_CODE_4_GOTTPOFF",    IE_A_P,   Signed(32),   WORD32),
    Kind::new(45,    "R_X86_64_CODE_4_GOTPC32_TLSDESC", DESC_A_P, Signed(32), WORD32),
    Kind::new(46,    "R_X86_64_CODE_5_GOTPCRELX",   G_A_P,    Signed(32),   WORD32),
    Kind::new(47,    "R_X86_64_CODE_5_GOTTPOFF",    IE_A_P,   Signed(32),   WORD32),
    Kind::new(48,    "R_X86_64_CODE_5_GOTPC32_TLSDESC", DESC_A_P, Signed(32), WORD32),
    Kind::new(49,    "R_X86_64_CODE_6_GOTPCRELX",   G_A_P,    Signed(32),   WORD32),
    Kind::new(50,    "R_X86_64_CODE_6_GOTTPOFF",    IE_A_P,   Signed(32),   WORD32),
    Kind::new(51,    "R_X86_64_CODE_6_GOTPC32_TLSDESC", DESC_A_P, Signed(32), WORD32),
    Kind::marker(250, "R_X86_64_GNU_VTINHERIT"),
    Kind::marker(251, "R_X86_64_GNU_VTENTRY"),
];
const _: () = assert!(well_formed(KINDS));
