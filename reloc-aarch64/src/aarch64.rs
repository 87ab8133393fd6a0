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

use crate::relax;
use elf_core::Check::{Any, Either, Signed, Unsigned};
use elf_core::names::EM_AARCH64;
use elf_core::tls::Tls;
use elf_core::{
    Arch, Bits, Field, Kind, Query, Reach, Rewrite, Role, Site, Slot, Stub, Value, well_formed,
};

/// AArch64 with addresses of 8 bytes (`EM_AARCH64`, `ELFCLASS64`), of either byte order.
#[derive(Clone, Copy, Debug)]
pub enum Aarch64 {}

impl Arch for Aarch64 {
    const MACHINE: u16 = EM_AARCH64;
    const ADDRESS_SIZE: u64 = 8;
    const KINDS: &'static [Kind] = KINDS;
    const STUB: Option<Stub> = Some(Stub {
        #[rustfmt::skip]
        code: &[
            0x10, 0x00, 0x00, 0x90, // adrp x16, :got:symbol
            0x11, 0x02, 0x40, 0xf9, // ldr  x17, [x16, :got_lo12:symbol]
            0x20, 0x02, 0x1f, 0xd6, // br   x17
            0x1f, 0x20, 0x03, 0xd5, // nop
        ],
        alignment: 16,
        relocations: &[(0, R_AARCH64_ADR_GOT_PAGE, 0), (4, R_AARCH64_LD64_GOT_LO12_NC, 0)],
        reach: Some(1 << 27),
    });
    const TLS: Option<Tls> = Some(crate::tls::TLS);
    const RELAXES_ALL_OR_NONE: bool = true;

    fn undefined_weak(query: &Query) -> Option<u64> {
        match (query.kind.value.of, query.kind.value.minus, query.kind.number) {
            // the next instruction, whatever the addend
            (_, Role::Place, TSTBR14 | CONDBR19 | JUMP26 | CALL26) => {
                Some(query.place.wrapping_add(4).wrapping_add_signed(query.addend.wrapping_neg()))
            }
            (Role::Address | Role::Plt, Role::Place, _) => Some(query.place),
            _ => None,
        }
    }

    fn relax(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
        relax::got_pair(site, reach)
    }
}

/// Branches.
const TSTBR14: u32 = 279;
const CONDBR19: u32 = 280;
const JUMP26: u32 = 282;
const CALL26: u32 = 283;
pub(crate) const R_AARCH64_ADR_GOT_PAGE: u32 = 311;
pub(crate) const R_AARCH64_LD64_GOT_LO12_NC: u32 = 312;

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

const fn bits(at: u32, width: u32) -> Bits {
    Bits::new(at, width)
}

/// Chooses the opcode by the sign: bits 30:29 are 00 in `MOVN`, 10 in `MOVZ`, 11 in `MOVK`, which stays what it is.
const fn movn_or_movz(word: u64, value: i64) -> u64 {
    const MOVK: u64 = 1 << 29;
    const MOVZ: u64 = 1 << 30;
    const IMM16: u64 = 0xffff << 5;
    if word & MOVK != 0 {
        word
    } else if value < 0 {
        (word & !MOVZ) ^ IMM16
    } else {
        word | MOVZ
    }
}

#[rustfmt::skip]
const KINDS: &[Kind] = &[
    //        number name                                     value         check         field
    Kind::marker(0, "R_AARCH64_NONE"),
    Kind::marker(256, "R_AARCH64_NONE"), // withdrawn
    Kind::new(257, "R_AARCH64_ABS64",                        S_A,          Any,          DATA64),
    Kind::new(258, "R_AARCH64_ABS32",                        S_A,          Either(32),   DATA32),
    Kind::new(259, "R_AARCH64_ABS16",                        S_A,          Either(16),   DATA16),
    Kind::new(260, "R_AARCH64_PREL64",                       S_A_P,        Any,          DATA64),
    Kind::new(261, "R_AARCH64_PREL32",                       S_A_P,        Signed(32),   DATA32),
    Kind::new(262, "R_AARCH64_PREL16",                       S_A_P,        Signed(16),   DATA16),
    Kind::new(263, "R_AARCH64_MOVW_UABS_G0",                 S_A,          Unsigned(16), MOVW_G0),
    Kind::new(264, "R_AARCH64_MOVW_UABS_G0_NC",              S_A,          Any,          MOVW_G0),
    Kind::new(265, "R_AARCH64_MOVW_UABS_G1",                 S_A,          Unsigned(32), MOVW_G1),
    Kind::new(266, "R_AARCH64_MOVW_UABS_G1_NC",              S_A,          Any,          MOVW_G1),
    Kind::new(267, "R_AARCH64_MOVW_UABS_G2",                 S_A,          Unsigned(48), MOVW_G2),
    Kind::new(268, "R_AARCH64_MOVW_UABS_G2_NC",              S_A,          Any,          MOVW_G2),
    Kind::new(269, "R_AARCH64_MOVW_UABS_G3",                 S_A,          Any,          MOVW_G3),
    Kind::new(270, "R_AARCH64_MOVW_SABS_G0",                 S_A,          Signed(17),   SMOVW_G0),
    Kind::new(271, "R_AARCH64_MOVW_SABS_G1",                 S_A,          Signed(33),   SMOVW_G1),
    Kind::new(272, "R_AARCH64_MOVW_SABS_G2",                 S_A,          Signed(49),   SMOVW_G2),
    Kind::new(273, "R_AARCH64_LD_PREL_LO19",                 S_A_P,        Signed(21),   IMM19),
    Kind::new(274, "R_AARCH64_ADR_PREL_LO21",                S_A_P,        Signed(21),   ADR),
    Kind::new(275, "R_AARCH64_ADR_PREL_PG_HI21",             PG_S_A_P,     Signed(33),   ADRP),
    Kind::new(276, "R_AARCH64_ADR_PREL_PG_HI21_NC",          PG_S_A_P,     Any,          ADRP),
    Kind::new(277, "R_AARCH64_ADD_ABS_LO12_NC",              S_A,          Any,          ADD_LO12),
    Kind::new(278, "R_AARCH64_LDST8_ABS_LO12_NC",            S_A,          Any,          LDST8),
    Kind::new(279, "R_AARCH64_TSTBR14",                      S_A_P,        Signed(16),   IMM14),
    Kind::new(280, "R_AARCH64_CONDBR19",                     S_A_P,        Signed(21),   IMM19),
    Kind::new(282, "R_AARCH64_JUMP26",                       L_A_P,        Signed(28),   IMM26),
    Kind::new(283, "R_AARCH64_CALL26",                       L_A_P,        Signed(28),   IMM26),
    Kind::new(284, "R_AARCH64_LDST16_ABS_LO12_NC",           S_A,          Any,          LDST16),
    Kind::new(285, "R_AARCH64_LDST32_ABS_LO12_NC",           S_A,          Any,          LDST32),
    Kind::new(286, "R_AARCH64_LDST64_ABS_LO12_NC",           S_A,          Any,          LDST64),
    Kind::new(287, "R_AARCH64_MOVW_PREL_G0",                 S_A_P,        Signed(17),   SMOVW_G0),
    Kind::new(288, "R_AARCH64_MOVW_PREL_G0_NC",              S_A_P,        Any,          MOVW_G0),
    Kind::new(289, "R_AARCH64_MOVW_PREL_G1",                 S_A_P,        Signed(33),   SMOVW_G1),
    Kind::new(290, "R_AARCH64_MOVW_PREL_G1_NC",              S_A_P,        Any,          MOVW_G1),
    Kind::new(291, "R_AARCH64_MOVW_PREL_G2",                 S_A_P,        Signed(49),   SMOVW_G2),
    Kind::new(292, "R_AARCH64_MOVW_PREL_G2_NC",              S_A_P,        Any,          MOVW_G2),
    Kind::new(293, "R_AARCH64_MOVW_PREL_G3",                 S_A_P,        Any,          SMOVW_G3),
    Kind::new(299, "R_AARCH64_LDST128_ABS_LO12_NC",          S_A,          Any,          LDST128),
    Kind::new(300, "R_AARCH64_MOVW_GOTOFF_G0",               G_A_GOT,      Signed(17),   SMOVW_G0),
    Kind::new(301, "R_AARCH64_MOVW_GOTOFF_G0_NC",            G_A_GOT,      Any,          MOVW_G0),
    Kind::new(302, "R_AARCH64_MOVW_GOTOFF_G1",               G_A_GOT,      Signed(33),   SMOVW_G1),
    Kind::new(303, "R_AARCH64_MOVW_GOTOFF_G1_NC",            G_A_GOT,      Any,          MOVW_G1),
    Kind::new(304, "R_AARCH64_MOVW_GOTOFF_G2",               G_A_GOT,      Signed(49),   SMOVW_G2),
    Kind::new(305, "R_AARCH64_MOVW_GOTOFF_G2_NC",            G_A_GOT,      Any,          MOVW_G2),
    Kind::new(306, "R_AARCH64_MOVW_GOTOFF_G3",               G_A_GOT,      Any,          SMOVW_G3),
    Kind::new(307, "R_AARCH64_GOTREL64",                     S_A_GOT,      Any,          DATA64),
    Kind::new(308, "R_AARCH64_GOTREL32",                     S_A_GOT,      Signed(32),   DATA32),
    Kind::new(309, "R_AARCH64_GOT_LD_PREL19",                G_A_P,        Signed(21),   IMM19),
    Kind::new(310, "R_AARCH64_LD64_GOTOFF_LO15",             G_A_GOT,      Unsigned(15), LO15),
    Kind::new(R_AARCH64_ADR_GOT_PAGE, "R_AARCH64_ADR_GOT_PAGE", PG_G_A_P,     Signed(33),   ADRP),
    Kind::new(R_AARCH64_LD64_GOT_LO12_NC, "R_AARCH64_LD64_GOT_LO12_NC", G_A,          Any,          LDST64),
    Kind::new(313, "R_AARCH64_LD64_GOTPAGE_LO15",            G_A_PG_GOT,   Unsigned(15), LO15),
    Kind::new(314, "R_AARCH64_PLT32",                        L_A_P,        Signed(32),   DATA32),
    Kind::new(315, "R_AARCH64_GOTPCREL32",                   G_A_P,        Signed(32),   DATA32),
    Kind::unsupported(316, "R_AARCH64_PATCHINST"),
    Kind::unsupported(317, "R_AARCH64_FUNCINIT64"),
    Kind::new(512, "R_AARCH64_TLSGD_ADR_PREL21",             GD_A_P,       Signed(21),   ADR),
    Kind::new(513, "R_AARCH64_TLSGD_ADR_PAGE21",             PG_GD_A_P,    Signed(33),   ADRP),
    Kind::new(514, "R_AARCH64_TLSGD_ADD_LO12_NC",            GD_A,         Any,          ADD_LO12),
    Kind::new(515, "R_AARCH64_TLSGD_MOVW_G1",                GD_A_GOT,     Signed(33),   SMOVW_G1),
    Kind::new(516, "R_AARCH64_TLSGD_MOVW_G0_NC",             GD_A_GOT,     Any,          MOVW_G0),
    Kind::new(517, "R_AARCH64_TLSLD_ADR_PREL21",             LD_A_P,       Signed(21),   ADR),
    Kind::new(518, "R_AARCH64_TLSLD_ADR_PAGE21",             PG_LD_A_P,    Signed(33),   ADRP),
    Kind::new(519, "R_AARCH64_TLSLD_ADD_LO12_NC",            LD_A,         Any,          ADD_LO12),
    Kind::new(520, "R_AARCH64_TLSLD_MOVW_G1",                LD_A_GOT,     Signed(33),   SMOVW_G1),
    Kind::new(521, "R_AARCH64_TLSLD_MOVW_G0_NC",             LD_A_GOT,     Any,          MOVW_G0),
    Kind::new(522, "R_AARCH64_TLSLD_LD_PREL19",              LD_A_P,       Signed(21),   IMM19),
    Kind::new(523, "R_AARCH64_TLSLD_MOVW_DTPREL_G2",         DTP_A,        Signed(49),   SMOVW_G2),
    Kind::new(524, "R_AARCH64_TLSLD_MOVW_DTPREL_G1",         DTP_A,        Signed(33),   SMOVW_G1),
    Kind::new(525, "R_AARCH64_TLSLD_MOVW_DTPREL_G1_NC",      DTP_A,        Any,          MOVW_G1),
    Kind::new(526, "R_AARCH64_TLSLD_MOVW_DTPREL_G0",         DTP_A,        Signed(17),   SMOVW_G0),
    Kind::new(527, "R_AARCH64_TLSLD_MOVW_DTPREL_G0_NC",      DTP_A,        Any,          MOVW_G0),
    Kind::new(528, "R_AARCH64_TLSLD_ADD_DTPREL_HI12",        DTP_A,        Unsigned(24), ADD_HI12),
    Kind::new(529, "R_AARCH64_TLSLD_ADD_DTPREL_LO12",        DTP_A,        Unsigned(12), ADD_LO12),
    Kind::new(530, "R_AARCH64_TLSLD_ADD_DTPREL_LO12_NC",     DTP_A,        Any,          ADD_LO12),
    Kind::new(531, "R_AARCH64_TLSLD_LDST8_DTPREL_LO12",      DTP_A,        Unsigned(12), LDST8),
    Kind::new(532, "R_AARCH64_TLSLD_LDST8_DTPREL_LO12_NC",   DTP_A,        Any,          LDST8),
    Kind::new(533, "R_AARCH64_TLSLD_LDST16_DTPREL_LO12",     DTP_A,        Unsigned(12), LDST16),
    Kind::new(534, "R_AARCH64_TLSLD_LDST16_DTPREL_LO12_NC",  DTP_A,        Any,          LDST16),
    Kind::new(535, "R_AARCH64_TLSLD_LDST32_DTPREL_LO12",     DTP_A,        Unsigned(12), LDST32),
    Kind::new(536, "R_AARCH64_TLSLD_LDST32_DTPREL_LO12_NC",  DTP_A,        Any,          LDST32),
    Kind::new(537, "R_AARCH64_TLSLD_LDST64_DTPREL_LO12",     DTP_A,        Unsigned(12), LDST64),
    Kind::new(538, "R_AARCH64_TLSLD_LDST64_DTPREL_LO12_NC",  DTP_A,        Any,          LDST64),
    Kind::new(539, "R_AARCH64_TLSIE_MOVW_GOTTPREL_G1",       IE_A_GOT,     Signed(33),   SMOVW_G1),
    Kind::new(540, "R_AARCH64_TLSIE_MOVW_GOTTPREL_G0_NC",    IE_A_GOT,     Any,          MOVW_G0),
    Kind::new(541, "R_AARCH64_TLSIE_ADR_GOTTPREL_PAGE21",    PG_IE_A_P,    Signed(33),   ADRP),
    Kind::new(542, "R_AARCH64_TLSIE_LD64_GOTTPREL_LO12_NC",  IE_A,         Any,          LDST64),
    Kind::new(543, "R_AARCH64_TLSIE_LD_GOTTPREL_PREL19",     IE_A_P,       Signed(21),   IMM19),
    Kind::new(544, "R_AARCH64_TLSLE_MOVW_TPREL_G2",          TP_A,         Signed(49),   SMOVW_G2),
    Kind::new(545, "R_AARCH64_TLSLE_MOVW_TPREL_G1",          TP_A,         Signed(33),   SMOVW_G1),
    Kind::new(546, "R_AARCH64_TLSLE_MOVW_TPREL_G1_NC",       TP_A,         Any,          MOVW_G1),
    Kind::new(547, "R_AARCH64_TLSLE_MOVW_TPREL_G0",          TP_A,         Signed(17),   SMOVW_G0),
    Kind::new(548, "R_AARCH64_TLSLE_MOVW_TPREL_G0_NC",       TP_A,         Any,          MOVW_G0),
    Kind::new(549, "R_AARCH64_TLSLE_ADD_TPREL_HI12",         TP_A,         Unsigned(24), ADD_HI12),
    Kind::new(550, "R_AARCH64_TLSLE_ADD_TPREL_LO12",         TP_A,         Unsigned(12), ADD_LO12),
    Kind::new(551, "R_AARCH64_TLSLE_ADD_TPREL_LO12_NC",      TP_A,         Any,          ADD_LO12),
    Kind::new(552, "R_AARCH64_TLSLE_LDST8_TPREL_LO12",       TP_A,         Unsigned(12), LDST8),
    Kind::new(553, "R_AARCH64_TLSLE_LDST8_TPREL_LO12_NC",    TP_A,         Any,          LDST8),
    Kind::new(554, "R_AARCH64_TLSLE_LDST16_TPREL_LO12",      TP_A,         Unsigned(12), LDST16),
    Kind::new(555, "R_AARCH64_TLSLE_LDST16_TPREL_LO12_NC",   TP_A,         Any,          LDST16),
    Kind::new(556, "R_AARCH64_TLSLE_LDST32_TPREL_LO12",      TP_A,         Unsigned(12), LDST32),
    Kind::new(557, "R_AARCH64_TLSLE_LDST32_TPREL_LO12_NC",   TP_A,         Any,          LDST32),
    Kind::new(558, "R_AARCH64_TLSLE_LDST64_TPREL_LO12",      TP_A,         Unsigned(12), LDST64),
    Kind::new(559, "R_AARCH64_TLSLE_LDST64_TPREL_LO12_NC",   TP_A,         Any,          LDST64),
    Kind::new(560, "R_AARCH64_TLSDESC_LD_PREL19",            DESC_A_P,     Signed(21),   IMM19),
    Kind::new(561, "R_AARCH64_TLSDESC_ADR_PREL21",           DESC_A_P,     Signed(21),   ADR),
    Kind::new(562, "R_AARCH64_TLSDESC_ADR_PAGE21",           PG_DESC_A_P,  Signed(33),   ADRP),
    Kind::new(563, "R_AARCH64_TLSDESC_LD64_LO12",            DESC_A,       Any,          LDST64),
    Kind::new(564, "R_AARCH64_TLSDESC_ADD_LO12",             DESC_A,       Any,          ADD_LO12),
    Kind::new(565, "R_AARCH64_TLSDESC_OFF_G1",               DESC_A_GOT,   Signed(33),   SMOVW_G1),
    Kind::new(566, "R_AARCH64_TLSDESC_OFF_G0_NC",            DESC_A_GOT,   Any,          MOVW_G0),
    Kind::marker(567, "R_AARCH64_TLSDESC_LDR"),
    Kind::marker(568, "R_AARCH64_TLSDESC_ADD"),
    Kind::marker(569, "R_AARCH64_TLSDESC_CALL"),
    Kind::new(570, "R_AARCH64_TLSLE_LDST128_TPREL_LO12",     TP_A,         Unsigned(12), LDST128),
    Kind::new(571, "R_AARCH64_TLSLE_LDST128_TPREL_LO12_NC",  TP_A,         Any,          LDST128),
    Kind::new(572, "R_AARCH64_TLSLD_LDST128_DTPREL_LO12",    DTP_A,        Unsigned(12), LDST128),
    Kind::new(573, "R_AARCH64_TLSLD_LDST128_DTPREL_LO12_NC", DTP_A,        Any,          LDST128),
    Kind::unsupported(580, "R_AARCH64_AUTH_ABS64"),
    Kind::unsupported(581, "R_AARCH64_AUTH_MOVW_GOTOFF_G0"),
    Kind::unsupported(582, "R_AARCH64_AUTH_MOVW_GOTOFF_G0_NC"),
    Kind::unsupported(583, "R_AARCH64_AUTH_MOVW_GOTOFF_G1"),
    Kind::unsupported(584, "R_AARCH64_AUTH_MOVW_GOTOFF_G1_NC"),
    Kind::unsupported(585, "R_AARCH64_AUTH_MOVW_GOTOFF_G2"),
    Kind::unsupported(586, "R_AARCH64_AUTH_MOVW_GOTOFF_G2_NC"),
    Kind::unsupported(587, "R_AARCH64_AUTH_MOVW_GOTOFF_G3"),
    Kind::unsupported(588, "R_AARCH64_AUTH_GOT_LD_PREL19"),
    Kind::unsupported(589, "R_AARCH64_AUTH_LD64_GOTOFF_LO15"),
    Kind::unsupported(590, "R_AARCH64_AUTH_ADR_GOT_PAGE"),
    Kind::unsupported(591, "R_AARCH64_AUTH_LD64_GOT_LO12_NC"),
    Kind::unsupported(592, "R_AARCH64_AUTH_LD64_GOTPAGE_LO15"),
    Kind::unsupported(593, "R_AARCH64_AUTH_GOT_ADD_LO12_NC"),
    Kind::unsupported(594, "R_AARCH64_AUTH_GOT_ADR_PREL_LO21"),
    Kind::unsupported(595, "R_AARCH64_AUTH_TLSDESC_ADR_PAGE21"),
    Kind::unsupported(596, "R_AARCH64_AUTH_TLSDESC_LD64_LO12"),
    Kind::unsupported(597, "R_AARCH64_AUTH_TLSDESC_ADD_LO12"),
    Kind::dynamic(1024, "R_AARCH64_COPY"),
    Kind::dynamic(1025, "R_AARCH64_GLOB_DAT"),
    Kind::dynamic(1026, "R_AARCH64_JUMP_SLOT"),
    Kind::dynamic(1027, "R_AARCH64_RELATIVE"),
    Kind::dynamic(1028, "R_AARCH64_TLS_DTPMOD64"),
    Kind::dynamic(1029, "R_AARCH64_TLS_DTPREL64"),
    Kind::dynamic(1030, "R_AARCH64_TLS_TPREL64"),
    Kind::dynamic(1031, "R_AARCH64_TLSDESC"),
    Kind::dynamic(1032, "R_AARCH64_IRELATIVE"),
    Kind::unsupported(1041, "R_AARCH64_AUTH_RELATIVE"),
    Kind::unsupported(1042, "R_AARCH64_AUTH_GLOB_DAT"),
    Kind::unsupported(1043, "R_AARCH64_AUTH_TLSDESC"),
    Kind::unsupported(1044, "R_AARCH64_AUTH_IRELATIVE"),
];
const _: () = assert!(well_formed(KINDS));
