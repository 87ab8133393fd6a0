//! Relocations of AArch64 (AAELF64, section 5.7 "Relocation").
//!
//! Instructions are 4 bytes and little-endian even in big-endian files; data have the file's order. Peculiarities:
//!
//! - Only kinds whose branch may go through a veneer (5.7.9: `CALL26`, `JUMP26`, `PLT32`) ask for L; short branches ask for S.
//! - Signed moves become `MOVN` of the inverted bits or `MOVZ`, by the sign of X (5.7.6).
//! - Scaled loads and stores take X only if it is a multiple of the access: the ABI expects it, GNU ld and lld demand it. The same
//!   holds of branch targets, where the linkers are not as strict.
//! - A branch to a weak symbol that nobody defines goes on with the next instruction; what else counts from the place takes the place
//!   for its address (4.6.1.1 "Unresolved weak references").
//! - An addend counts from the GOT entry, as in lld: `G(GDAT(S)) + A`. GNU ld ignores it.
//! - `PREL32` and `PREL16` are signed, as the ABI says since 2026 and GNU ld always did; lld also takes the upper half of unsigned
//!   values.
//! - 256 is the withdrawn number of `NONE`.
//! - Refused by name: `PATCHINST` (does nothing if the symbol is undefined), `FUNCINIT64` (calls a function), and the `AUTH` kinds
//!   of PAuth ABI ELF64 (sign pointers).

use crate::{relax, tls};
use elf_core::Check::{Any, Either, Signed, Unsigned};
use elf_core::names::EM_AARCH64;
use elf_core::tls::Tls;
use elf_core::{
    Arch, Bits, Field, Kind, Query, Reach, Rewrite, Role, Site, Slot, Stub, StubRelocation,
    Unencodable, Value,
};

/// AArch64 with addresses of 8 bytes (`EM_AARCH64`, `ELFCLASS64`), of either byte order.
#[derive(Clone, Copy, Debug)]
pub enum Aarch64 {}

impl Arch for Aarch64 {
    const MACHINE: u16 = EM_AARCH64;
    const ADDRESS_SIZE: u64 = 8;
    const KINDS: &'static [Kind] = KINDS;
    const STUBS: &'static [Stub] = STUBS;
    const TLS: Option<Tls> = Some(tls::TLS);
    const RELAXES_ALL_OR_NONE: bool = true;

    fn undefined_weak(query: &Query) -> Option<u64> {
        match (query.kind.value.of, query.kind.value.minus, query.kind.number) {
            // the next instruction, whatever the addend
            (
                _,
                Role::Place,
                R_AARCH64_TSTBR14 | R_AARCH64_CONDBR19 | R_AARCH64_JUMP26 | R_AARCH64_CALL26,
            ) => Some(query.place.wrapping_add(4).wrapping_add_signed(query.addend.wrapping_neg())),
            (Role::Address | Role::Plt, Role::Place, _) => Some(query.place),
            _ => None,
        }
    }
}

/// The pair that stands for an `adrp` of a GOT entry's page and the `ldr` behind it.
fn got_pair(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
    const NUMBERS: relax::Numbers = relax::Numbers {
        load: R_AARCH64_LD64_GOT_LO12_NC,
        adr: R_AARCH64_ADR_PREL_LO21,
        adrp: R_AARCH64_ADR_PREL_PG_HI21,
        add: R_AARCH64_ADD_ABS_LO12_NC,
    };
    relax::got_pair(site, reach, &NUMBERS)
}

#[rustfmt::skip]
const STUBS: &[Stub] = &[Stub::new(
    &[
        0x10, 0x00, 0x00, 0x90, // adrp x16, :got:symbol
        0x11, 0x02, 0x40, 0xf9, // ldr  x17, [x16, :got_lo12:symbol]
        0x20, 0x02, 0x1f, 0xd6, // br   x17
        0x1f, 0x20, 0x03, 0xd5, // nop
    ],
    16,
    &[
        StubRelocation::new(0, R_AARCH64_ADR_GOT_PAGE, 0),
        StubRelocation::new(4, R_AARCH64_LD64_GOT_LO12_NC, 0),
    ],
)
.reach(1 << 27)];

const S_A: Value = Value::of(Role::Address).plus_a();
const S_A_P: Value = S_A.minus(Role::Place);
const S_A_GOT: Value = S_A.minus(Role::GotBase);
const PG_S_A_P: Value = S_A_P.by_page();
const L_A_P: Value = Value::of(Role::Plt).plus_a().minus(Role::Place);
// G(GDAT(S)): an address
const G_A: Value = entry(Slot::Address);
const G_A_P: Value = G_A.minus(Role::Place);
const G_A_GOT: Value = G_A.minus(Role::GotBase);
const G_A_PG_GOT: Value = G_A_GOT.minus_page();
const PG_G_A_P: Value = G_A_P.by_page();
// G(GTLSIDX(S)): module and offset
const GD_A: Value = entry(Slot::TlsGd);
const GD_A_P: Value = GD_A.minus(Role::Place);
const GD_A_GOT: Value = GD_A.minus(Role::GotBase);
const PG_GD_A_P: Value = GD_A_P.by_page();
// G(GLDM(S)): module and 0
const LD_A: Value = entry(Slot::TlsLd);
const LD_A_P: Value = LD_A.minus(Role::Place);
const LD_A_GOT: Value = LD_A.minus(Role::GotBase);
const PG_LD_A_P: Value = LD_A_P.by_page();
// G(GTPREL(S)): offset from the thread pointer
const IE_A: Value = entry(Slot::TpOffset);
const IE_A_P: Value = IE_A.minus(Role::Place);
const IE_A_GOT: Value = IE_A.minus(Role::GotBase);
const PG_IE_A_P: Value = IE_A_P.by_page();
// G(GTLSDESC(S)): descriptor
const DESC_A: Value = entry(Slot::TlsDesc);
const DESC_A_P: Value = DESC_A.minus(Role::Place);
const DESC_A_GOT: Value = DESC_A.minus(Role::GotBase);
const PG_DESC_A_P: Value = DESC_A_P.by_page();
// DTPREL(S + A), TPREL(S + A)
const DTP_A: Value = Value::of(Role::DtpOffset).plus_a();
const TP_A: Value = Value::of(Role::TpOffset).plus_a();
/// Of loaders.
const B_A: Value = Value::of(Role::Base).plus_a();
const M: Value = Value::of(Role::TlsModule);
const INDIRECT: Value = Value::of(Role::Indirect);

const fn entry(slot: Slot) -> Value {
    Value::of(Role::Got(slot)).plus_a()
}

const DATA16: Field = Field::DATA16;
const DATA32: Field = Field::DATA32;
const DATA64: Field = Field::DATA64;
const ADR: Field = instruction(&[bits(29, 2), bits(5, 19).shr(2)]); // immlo, immhi
const ADRP: Field = instruction(&[bits(29, 2).shr(12), bits(5, 19).shr(14)]);
const ADD_LO12: Field = instruction(&[bits(10, 12)]);
const ADD_HI12: Field = instruction(&[bits(10, 12).shr(12)]);
const LDST8: Field = instruction(&[bits(10, 12)]); // X[11:0] of imm12, then what is left of it, scaled
const LDST16: Field = instruction(&[bits(10, 11).scaled(1)]);
const LDST32: Field = instruction(&[bits(10, 10).scaled(2)]);
const LDST64: Field = instruction(&[bits(10, 9).scaled(3)]);
const LDST128: Field = instruction(&[bits(10, 8).scaled(4)]);
const LO15: Field = instruction(&[bits(10, 12).scaled(3)]);
const IMM14: Field = instruction(&[bits(5, 14).scaled(2)]);
const IMM19: Field = instruction(&[bits(5, 19).scaled(2)]);
const IMM26: Field = instruction(&[bits(0, 26).scaled(2)]);
const MOVW_G0: Field = instruction(&[bits(5, 16)]);
const MOVW_G1: Field = instruction(&[bits(5, 16).shr(16)]);
const MOVW_G2: Field = instruction(&[bits(5, 16).shr(32)]);
const MOVW_G3: Field = instruction(&[bits(5, 16).shr(48)]);
const SMOVW_G0: Field = MOVW_G0.encoded(movn_or_movz);
const SMOVW_G1: Field = MOVW_G1.encoded(movn_or_movz);
const SMOVW_G2: Field = MOVW_G2.encoded(movn_or_movz);
const SMOVW_G3: Field = MOVW_G3.encoded(movn_or_movz);

const fn instruction(parts: &'static [Bits]) -> Field {
    Field::instruction(4, parts)
}

const fn bits(at: u8, width: u8) -> Bits {
    Bits::new(at, width)
}

/// Chooses the opcode by the sign: bits 30:29 are 00 in `MOVN`, 10 in `MOVZ`, 11 in `MOVK`, which stays what it is.
#[expect(clippy::unnecessary_wraps, reason = "an encoder may fail")]
const fn movn_or_movz(word: u64, value: i64, _: u8) -> Result<u64, Unencodable> {
    const MOVK: u64 = 1 << 29;
    const MOVZ: u64 = 1 << 30;
    const IMM16: u64 = 0xffff << 5;
    Ok(if word & MOVK != 0 {
        word
    } else if value < 0 {
        (word & !MOVZ) ^ IMM16
    } else {
        word | MOVZ
    })
}

elf_core::kinds! {
    R_AARCH64_NONE                         =    0: marker();
    R_AARCH64_NONE_WITHDRAWN as "R_AARCH64_NONE" =  256: marker(); // withdrawn
    R_AARCH64_ABS64                        =  257: new(S_A,          Any,           DATA64);
    R_AARCH64_ABS32                        =  258: new(S_A,          Either(32),    DATA32);
    R_AARCH64_ABS16                        =  259: new(S_A,          Either(16),    DATA16);
    R_AARCH64_PREL64                       =  260: new(S_A_P,        Any,           DATA64);
    R_AARCH64_PREL32                       =  261: new(S_A_P,        Signed(32),    DATA32);
    R_AARCH64_PREL16                       =  262: new(S_A_P,        Signed(16),    DATA16);
    R_AARCH64_MOVW_UABS_G0                 =  263: new(S_A,          Unsigned(16),  MOVW_G0);
    R_AARCH64_MOVW_UABS_G0_NC              =  264: new(S_A,          Any,           MOVW_G0);
    R_AARCH64_MOVW_UABS_G1                 =  265: new(S_A,          Unsigned(32),  MOVW_G1);
    R_AARCH64_MOVW_UABS_G1_NC              =  266: new(S_A,          Any,           MOVW_G1);
    R_AARCH64_MOVW_UABS_G2                 =  267: new(S_A,          Unsigned(48),  MOVW_G2);
    R_AARCH64_MOVW_UABS_G2_NC              =  268: new(S_A,          Any,           MOVW_G2);
    R_AARCH64_MOVW_UABS_G3                 =  269: new(S_A,          Any,           MOVW_G3);
    R_AARCH64_MOVW_SABS_G0                 =  270: new(S_A,          Signed(17),    SMOVW_G0);
    R_AARCH64_MOVW_SABS_G1                 =  271: new(S_A,          Signed(33),    SMOVW_G1);
    R_AARCH64_MOVW_SABS_G2                 =  272: new(S_A,          Signed(49),    SMOVW_G2);
    R_AARCH64_LD_PREL_LO19                 =  273: new(S_A_P,        Signed(21),    IMM19);
    R_AARCH64_ADR_PREL_LO21                =  274: new(S_A_P,        Signed(21),    ADR);
    R_AARCH64_ADR_PREL_PG_HI21             =  275: new(PG_S_A_P,     Signed(33),    ADRP);
    R_AARCH64_ADR_PREL_PG_HI21_NC          =  276: new(PG_S_A_P,     Any,           ADRP);
    R_AARCH64_ADD_ABS_LO12_NC              =  277: new(S_A,          Any,           ADD_LO12);
    R_AARCH64_LDST8_ABS_LO12_NC            =  278: new(S_A,          Any,           LDST8);
    R_AARCH64_TSTBR14                      =  279: new(S_A_P,        Signed(16),    IMM14);
    R_AARCH64_CONDBR19                     =  280: new(S_A_P,        Signed(21),    IMM19);
    R_AARCH64_JUMP26                       =  282: new(L_A_P,        Signed(28),    IMM26);
    R_AARCH64_CALL26                       =  283: new(L_A_P,        Signed(28),    IMM26);
    R_AARCH64_LDST16_ABS_LO12_NC           =  284: new(S_A,          Any,           LDST16);
    R_AARCH64_LDST32_ABS_LO12_NC           =  285: new(S_A,          Any,           LDST32);
    R_AARCH64_LDST64_ABS_LO12_NC           =  286: new(S_A,          Any,           LDST64);
    R_AARCH64_MOVW_PREL_G0                 =  287: new(S_A_P,        Signed(17),    SMOVW_G0);
    R_AARCH64_MOVW_PREL_G0_NC              =  288: new(S_A_P,        Any,           MOVW_G0);
    R_AARCH64_MOVW_PREL_G1                 =  289: new(S_A_P,        Signed(33),    SMOVW_G1);
    R_AARCH64_MOVW_PREL_G1_NC              =  290: new(S_A_P,        Any,           MOVW_G1);
    R_AARCH64_MOVW_PREL_G2                 =  291: new(S_A_P,        Signed(49),    SMOVW_G2);
    R_AARCH64_MOVW_PREL_G2_NC              =  292: new(S_A_P,        Any,           MOVW_G2);
    R_AARCH64_MOVW_PREL_G3                 =  293: new(S_A_P,        Any,           SMOVW_G3);
    R_AARCH64_LDST128_ABS_LO12_NC          =  299: new(S_A,          Any,           LDST128);
    R_AARCH64_MOVW_GOTOFF_G0               =  300: new(G_A_GOT,      Signed(17),    SMOVW_G0);
    R_AARCH64_MOVW_GOTOFF_G0_NC            =  301: new(G_A_GOT,      Any,           MOVW_G0);
    R_AARCH64_MOVW_GOTOFF_G1               =  302: new(G_A_GOT,      Signed(33),    SMOVW_G1);
    R_AARCH64_MOVW_GOTOFF_G1_NC            =  303: new(G_A_GOT,      Any,           MOVW_G1);
    R_AARCH64_MOVW_GOTOFF_G2               =  304: new(G_A_GOT,      Signed(49),    SMOVW_G2);
    R_AARCH64_MOVW_GOTOFF_G2_NC            =  305: new(G_A_GOT,      Any,           MOVW_G2);
    R_AARCH64_MOVW_GOTOFF_G3               =  306: new(G_A_GOT,      Any,           SMOVW_G3);
    R_AARCH64_GOTREL64                     =  307: new(S_A_GOT,      Any,           DATA64);
    R_AARCH64_GOTREL32                     =  308: new(S_A_GOT,      Signed(32),    DATA32);
    R_AARCH64_GOT_LD_PREL19                =  309: new(G_A_P,        Signed(21),    IMM19);
    R_AARCH64_LD64_GOTOFF_LO15             =  310: new(G_A_GOT,      Unsigned(15),  LO15);
    R_AARCH64_ADR_GOT_PAGE                 =  311: new(PG_G_A_P,     Signed(33),    ADRP).relax(got_pair);
    R_AARCH64_LD64_GOT_LO12_NC             =  312: new(G_A,          Any,           LDST64);
    R_AARCH64_LD64_GOTPAGE_LO15            =  313: new(G_A_PG_GOT,   Unsigned(15),  LO15);
    R_AARCH64_PLT32                        =  314: new(L_A_P,        Signed(32),    DATA32);
    R_AARCH64_GOTPCREL32                   =  315: new(G_A_P,        Signed(32),    DATA32);
    R_AARCH64_PATCHINST                    =  316: unsupported();
    R_AARCH64_FUNCINIT64                   =  317: unsupported();
    R_AARCH64_TLSGD_ADR_PREL21             =  512: new(GD_A_P,       Signed(21),    ADR).transition(tls::GD_TINY);
    R_AARCH64_TLSGD_ADR_PAGE21             =  513: new(PG_GD_A_P,    Signed(33),    ADRP).transition(tls::GD_PAGE);
    R_AARCH64_TLSGD_ADD_LO12_NC            =  514: new(GD_A,         Any,           ADD_LO12).transition(tls::GD_CALL);
    R_AARCH64_TLSGD_MOVW_G1                =  515: new(GD_A_GOT,     Signed(33),    SMOVW_G1);
    R_AARCH64_TLSGD_MOVW_G0_NC             =  516: new(GD_A_GOT,     Any,           MOVW_G0);
    R_AARCH64_TLSLD_ADR_PREL21             =  517: new(LD_A_P,       Signed(21),    ADR);
    R_AARCH64_TLSLD_ADR_PAGE21             =  518: new(PG_LD_A_P,    Signed(33),    ADRP).transition(tls::LD_PAGE);
    R_AARCH64_TLSLD_ADD_LO12_NC            =  519: new(LD_A,         Any,           ADD_LO12).transition(tls::LD_CALL);
    R_AARCH64_TLSLD_MOVW_G1                =  520: new(LD_A_GOT,     Signed(33),    SMOVW_G1);
    R_AARCH64_TLSLD_MOVW_G0_NC             =  521: new(LD_A_GOT,     Any,           MOVW_G0);
    R_AARCH64_TLSLD_LD_PREL19              =  522: new(LD_A_P,       Signed(21),    IMM19);
    R_AARCH64_TLSLD_MOVW_DTPREL_G2         =  523: new(DTP_A,        Signed(49),    SMOVW_G2);
    R_AARCH64_TLSLD_MOVW_DTPREL_G1         =  524: new(DTP_A,        Signed(33),    SMOVW_G1);
    R_AARCH64_TLSLD_MOVW_DTPREL_G1_NC      =  525: new(DTP_A,        Any,           MOVW_G1);
    R_AARCH64_TLSLD_MOVW_DTPREL_G0         =  526: new(DTP_A,        Signed(17),    SMOVW_G0);
    R_AARCH64_TLSLD_MOVW_DTPREL_G0_NC      =  527: new(DTP_A,        Any,           MOVW_G0);
    R_AARCH64_TLSLD_ADD_DTPREL_HI12        =  528: new(DTP_A,        Unsigned(24),  ADD_HI12);
    R_AARCH64_TLSLD_ADD_DTPREL_LO12        =  529: new(DTP_A,        Unsigned(12),  ADD_LO12);
    R_AARCH64_TLSLD_ADD_DTPREL_LO12_NC     =  530: new(DTP_A,        Any,           ADD_LO12);
    R_AARCH64_TLSLD_LDST8_DTPREL_LO12      =  531: new(DTP_A,        Unsigned(12),  LDST8);
    R_AARCH64_TLSLD_LDST8_DTPREL_LO12_NC   =  532: new(DTP_A,        Any,           LDST8);
    R_AARCH64_TLSLD_LDST16_DTPREL_LO12     =  533: new(DTP_A,        Unsigned(12),  LDST16);
    R_AARCH64_TLSLD_LDST16_DTPREL_LO12_NC  =  534: new(DTP_A,        Any,           LDST16);
    R_AARCH64_TLSLD_LDST32_DTPREL_LO12     =  535: new(DTP_A,        Unsigned(12),  LDST32);
    R_AARCH64_TLSLD_LDST32_DTPREL_LO12_NC  =  536: new(DTP_A,        Any,           LDST32);
    R_AARCH64_TLSLD_LDST64_DTPREL_LO12     =  537: new(DTP_A,        Unsigned(12),  LDST64);
    R_AARCH64_TLSLD_LDST64_DTPREL_LO12_NC  =  538: new(DTP_A,        Any,           LDST64);
    R_AARCH64_TLSIE_MOVW_GOTTPREL_G1       =  539: new(IE_A_GOT,     Signed(33),    SMOVW_G1);
    R_AARCH64_TLSIE_MOVW_GOTTPREL_G0_NC    =  540: new(IE_A_GOT,     Any,           MOVW_G0);
    R_AARCH64_TLSIE_ADR_GOTTPREL_PAGE21    =  541: new(PG_IE_A_P,    Signed(33),    ADRP).transition(tls::IE_PAGE);
    R_AARCH64_TLSIE_LD64_GOTTPREL_LO12_NC  =  542: new(IE_A,         Any,           LDST64).transition(tls::IE_LOAD);
    R_AARCH64_TLSIE_LD_GOTTPREL_PREL19     =  543: new(IE_A_P,       Signed(21),    IMM19);
    R_AARCH64_TLSLE_MOVW_TPREL_G2          =  544: new(TP_A,         Signed(49),    SMOVW_G2);
    R_AARCH64_TLSLE_MOVW_TPREL_G1          =  545: new(TP_A,         Signed(33),    SMOVW_G1);
    R_AARCH64_TLSLE_MOVW_TPREL_G1_NC       =  546: new(TP_A,         Any,           MOVW_G1);
    R_AARCH64_TLSLE_MOVW_TPREL_G0          =  547: new(TP_A,         Signed(17),    SMOVW_G0);
    R_AARCH64_TLSLE_MOVW_TPREL_G0_NC       =  548: new(TP_A,         Any,           MOVW_G0);
    R_AARCH64_TLSLE_ADD_TPREL_HI12         =  549: new(TP_A,         Unsigned(24),  ADD_HI12);
    R_AARCH64_TLSLE_ADD_TPREL_LO12         =  550: new(TP_A,         Unsigned(12),  ADD_LO12);
    R_AARCH64_TLSLE_ADD_TPREL_LO12_NC      =  551: new(TP_A,         Any,           ADD_LO12);
    R_AARCH64_TLSLE_LDST8_TPREL_LO12       =  552: new(TP_A,         Unsigned(12),  LDST8);
    R_AARCH64_TLSLE_LDST8_TPREL_LO12_NC    =  553: new(TP_A,         Any,           LDST8);
    R_AARCH64_TLSLE_LDST16_TPREL_LO12      =  554: new(TP_A,         Unsigned(12),  LDST16);
    R_AARCH64_TLSLE_LDST16_TPREL_LO12_NC   =  555: new(TP_A,         Any,           LDST16);
    R_AARCH64_TLSLE_LDST32_TPREL_LO12      =  556: new(TP_A,         Unsigned(12),  LDST32);
    R_AARCH64_TLSLE_LDST32_TPREL_LO12_NC   =  557: new(TP_A,         Any,           LDST32);
    R_AARCH64_TLSLE_LDST64_TPREL_LO12      =  558: new(TP_A,         Unsigned(12),  LDST64);
    R_AARCH64_TLSLE_LDST64_TPREL_LO12_NC   =  559: new(TP_A,         Any,           LDST64);
    R_AARCH64_TLSDESC_LD_PREL19            =  560: new(DESC_A_P,     Signed(21),    IMM19).transition(tls::DESC_TINY);
    R_AARCH64_TLSDESC_ADR_PREL21           =  561: new(DESC_A_P,     Signed(21),    ADR).transition(tls::DESC_TINY_ADD);
    R_AARCH64_TLSDESC_ADR_PAGE21           =  562: new(PG_DESC_A_P,  Signed(33),    ADRP).transition(tls::DESC_PAGE);
    R_AARCH64_TLSDESC_LD64_LO12            =  563: new(DESC_A,       Any,           LDST64).transition(tls::DESC_LOAD);
    R_AARCH64_TLSDESC_ADD_LO12             =  564: new(DESC_A,       Any,           ADD_LO12).transition(tls::DESC_ADD);
    R_AARCH64_TLSDESC_OFF_G1               =  565: new(DESC_A_GOT,   Signed(33),    SMOVW_G1);
    R_AARCH64_TLSDESC_OFF_G0_NC            =  566: new(DESC_A_GOT,   Any,           MOVW_G0);
    R_AARCH64_TLSDESC_LDR                  =  567: marker();
    R_AARCH64_TLSDESC_ADD                  =  568: marker();
    R_AARCH64_TLSDESC_CALL                 =  569: marker().transition(tls::DESC_CALL);
    R_AARCH64_TLSLE_LDST128_TPREL_LO12     =  570: new(TP_A,         Unsigned(12),  LDST128);
    R_AARCH64_TLSLE_LDST128_TPREL_LO12_NC  =  571: new(TP_A,         Any,           LDST128);
    R_AARCH64_TLSLD_LDST128_DTPREL_LO12    =  572: new(DTP_A,        Unsigned(12),  LDST128);
    R_AARCH64_TLSLD_LDST128_DTPREL_LO12_NC =  573: new(DTP_A,        Any,           LDST128);
    R_AARCH64_AUTH_ABS64                   =  580: unsupported();
    R_AARCH64_AUTH_MOVW_GOTOFF_G0          =  581: unsupported();
    R_AARCH64_AUTH_MOVW_GOTOFF_G0_NC       =  582: unsupported();
    R_AARCH64_AUTH_MOVW_GOTOFF_G1          =  583: unsupported();
    R_AARCH64_AUTH_MOVW_GOTOFF_G1_NC       =  584: unsupported();
    R_AARCH64_AUTH_MOVW_GOTOFF_G2          =  585: unsupported();
    R_AARCH64_AUTH_MOVW_GOTOFF_G2_NC       =  586: unsupported();
    R_AARCH64_AUTH_MOVW_GOTOFF_G3          =  587: unsupported();
    R_AARCH64_AUTH_GOT_LD_PREL19           =  588: unsupported();
    R_AARCH64_AUTH_LD64_GOTOFF_LO15        =  589: unsupported();
    R_AARCH64_AUTH_ADR_GOT_PAGE            =  590: unsupported();
    R_AARCH64_AUTH_LD64_GOT_LO12_NC        =  591: unsupported();
    R_AARCH64_AUTH_LD64_GOTPAGE_LO15       =  592: unsupported();
    R_AARCH64_AUTH_GOT_ADD_LO12_NC         =  593: unsupported();
    R_AARCH64_AUTH_GOT_ADR_PREL_LO21       =  594: unsupported();
    R_AARCH64_AUTH_TLSDESC_ADR_PAGE21      =  595: unsupported();
    R_AARCH64_AUTH_TLSDESC_LD64_LO12       =  596: unsupported();
    R_AARCH64_AUTH_TLSDESC_ADD_LO12        =  597: unsupported();
    R_AARCH64_COPY                         = 1024: copy();
    R_AARCH64_GLOB_DAT                     = 1025: load(S_A);
    R_AARCH64_JUMP_SLOT                    = 1026: load(S_A);
    R_AARCH64_RELATIVE                     = 1027: load(B_A);
    R_AARCH64_TLS_DTPMOD64                 = 1028: load(M);
    R_AARCH64_TLS_DTPREL64                 = 1029: load(DTP_A);
    R_AARCH64_TLS_TPREL64                  = 1030: load(TP_A);
    R_AARCH64_TLSDESC                      = 1031: descriptor();
    R_AARCH64_IRELATIVE                    = 1032: load(INDIRECT);
    R_AARCH64_AUTH_RELATIVE                = 1041: unsupported();
    R_AARCH64_AUTH_GLOB_DAT                = 1042: unsupported();
    R_AARCH64_AUTH_TLSDESC                 = 1043: unsupported();
    R_AARCH64_AUTH_IRELATIVE               = 1044: unsupported();
}
