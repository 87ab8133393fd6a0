//! Relocations of RISC-V (RISC-V psABI, "Relocations"), for addresses of 4 and of 8 bytes.
//!
//! Peculiarities:
//!
//! - A value in two parts is rounded: the upper 20 bits are those of X + 0x800, since the lower 12 are added with a sign. Addresses
//!   of 4 bytes are computed modulo 2^32, so that every one is in reach.
//! - `PCREL_LO12`, and the lower parts of a TLS descriptor, name the label of the instruction with the upper part; theirs is the value
//!   of the one relocation there. They have no addend of their own, and two relocations there are one too many. (GNU ld fails, lld mixes them.)
//! - `ADD`, `SUB` and `SUB6` count from what the place holds. `SET_ULEB128` and the `SUB_ULEB128` behind it are one; the number
//!   keeps its length.
//! - `CALL` and `CALL_PLT` are the same, and fill two instructions.
//! - `32` in files of 64 bits must fit, signed or not: the linkers cut it off.
//! - `ALIGN` stands for A bytes of padding, what is behind it for a multiple of the least power of two above A. `RELAX` says of the record
//!   before it that its code may become shorter (`relax.rs`).
//! - A call to a weak symbol that nobody defines goes to 0, by way of a stub where 0 is out of reach.
//! - `RVC_LUI`, which only GNU ld's relaxation makes, was taken out of the ABI in 2023. 0 has no encoding as `c.lui`: it is `c.li`, as in
//!   lld.
//! - What vendors define (192 and up) follows a `VENDOR`, which is refused by name.
//!
//! Stubs use `t3`, as the psABI's PLT entries do. RV32E and RV64E have no such register, but those of their branches that reach 2 GiB
//! need no stubs.

use crate::{attributes, relax, tls};
use elf_core::Check::{self, Any, Either, Signed};
use elf_core::names::{
    EF_RISCV_FLOAT_ABI_QUAD, EF_RISCV_RV64ILP32, EF_RISCV_RVE, EF_RISCV_RVY, EM_RISCV,
};
use elf_core::tls::{Tls, Transition};
use elf_core::{
    ApplyErrorKind, Arch, Bits, BuildAttributes, Error, Field, File, Kind, Pairing, Record, Role,
    Shrink, Site, Slot, Stub, StubRelocation, Unencodable, Value,
};

/// RISC-V with addresses of 4 bytes (`EM_RISCV`, `ELFCLASS32`).
#[derive(Clone, Copy, Debug)]
pub enum Rv32 {}

/// RISC-V with addresses of 8 bytes (`EM_RISCV`, `ELFCLASS64`).
#[derive(Clone, Copy, Debug)]
pub enum Rv64 {}

impl Arch for Rv32 {
    const MACHINE: u16 = EM_RISCV;
    const ADDRESS_SIZE: u64 = 4;
    const KINDS: &'static [Kind] = KINDS;
    const STUBS: &'static [Stub] = &[stub(&STUB32)];
    const TLS: Option<Tls> = Some(tls::TLS);
    const EQUAL_FLAGS: &'static [(u32, &'static str)] = EQUAL_FLAGS;
    const EQUAL_ATTRIBUTES: &'static [(u32, &'static str)] = attributes::EQUAL;
    const NO_GLOBAL_POINTER: u32 = attributes::OTHER_X3;

    fn build_attributes(file: &File<'_>) -> Result<BuildAttributes, Error> {
        attributes::of(file)
    }
}

impl Arch for Rv64 {
    const MACHINE: u16 = EM_RISCV;
    const ADDRESS_SIZE: u64 = 8;
    const KINDS: &'static [Kind] = KINDS;
    const STUBS: &'static [Stub] = &[stub(&STUB64)];
    const TLS: Option<Tls> = Some(tls::TLS);
    const EQUAL_FLAGS: &'static [(u32, &'static str)] = EQUAL_FLAGS;
    const EQUAL_ATTRIBUTES: &'static [(u32, &'static str)] = attributes::EQUAL;
    const NO_GLOBAL_POINTER: u32 = attributes::OTHER_X3;

    fn build_attributes(file: &File<'_>) -> Result<BuildAttributes, Error> {
        attributes::of(file)
    }
}

/// RVC and TSO of one object go together with objects without.
const EQUAL_FLAGS: &[(u32, &str)] = &[
    (EF_RISCV_FLOAT_ABI_QUAD, "the float ABI"),
    (EF_RISCV_RVE, "RVE"),
    (EF_RISCV_RV64ILP32, "RV64ILP32"),
    (EF_RISCV_RVY, "RVY"),
];

#[rustfmt::skip]
const STUB32: [u8; 16] = [
    0x17, 0x0e, 0x00, 0x00, // auipc t3, %got_pcrel_hi(symbol)
    0x03, 0x2e, 0x0e, 0x00, // lw    t3, %pcrel_lo(.)(t3)
    0x67, 0x00, 0x0e, 0x00, // jr    t3
    0x13, 0x00, 0x00, 0x00, // nop
];

#[rustfmt::skip]
const STUB64: [u8; 16] = [
    0x17, 0x0e, 0x00, 0x00, // auipc t3, %got_pcrel_hi(symbol)
    0x03, 0x3e, 0x0e, 0x00, // ld    t3, %pcrel_lo(.)(t3)
    0x67, 0x00, 0x0e, 0x00, // jr    t3
    0x13, 0x00, 0x00, 0x00, // nop
];

const fn stub(code: &'static [u8; 16]) -> Stub {
    Stub::new(code, 16, STUB_RELOCATIONS)
}

const STUB_RELOCATIONS: &[StubRelocation] = &[
    StubRelocation::new(0, R_RISCV_GOT_HI20, 0),
    StubRelocation::new(4, R_RISCV_PCREL_LO12_I, 0).with(0),
];

const S_A: Value = Value::of(Role::Address).plus_a();
const S_A_P: Value = S_A.minus(Role::Place);
const L_A_P: Value = Value::of(Role::Plt).plus_a().minus(Role::Place);
const G_A_P: Value = entry(Slot::Address);
const IE_A_P: Value = entry(Slot::TpOffset);
const GD_A_P: Value = entry(Slot::TlsGd);
const DESC_A_P: Value = entry(Slot::TlsDesc);
const DTP_A: Value = Value::of(Role::DtpOffset).plus_a();
const TP_A: Value = Value::of(Role::TpOffset).plus_a();
/// Of loaders.
const SYMBOL: Value = Value::of(Role::Address);
const B_A: Value = Value::of(Role::Base).plus_a();
const M: Value = Value::of(Role::TlsModule);
const INDIRECT: Value = Value::of(Role::Indirect);
const V_S_A: Value = S_A.plus_v();
const V_MINUS_S_A: Value = S_A.from_v();
/// X of the relocation with the upper part.
const X: Value = Value::of(Role::Partner);
const S_A_X: Value = S_A.minus(Role::Partner);

const fn entry(slot: Slot) -> Value {
    Value::of(Role::Got(slot)).plus_a().minus(Role::Place)
}

/// Of an upper part of 20 bits and a lower of 12.
const HIGH: Check = Check::SignedRounded { bits: 32, low: 12 };
/// Of an upper part of 6 bits.
const HIGH_6: Check = Check::SignedRounded { bits: 18, low: 12 };

const WORD6: Field = Field::data(1, &[bits(0, 6)]);
const WORD8: Field = Field::DATA8;
const WORD16: Field = Field::DATA16;
const WORD32: Field = Field::DATA32;
const WORD64: Field = Field::DATA64;
const ULEB: Field = Field::ULEB128;
const U: Field = instruction(&[bits(12, 20).nearest(12)]);
const I: Field = instruction(&[bits(20, 12)]);
const S: Field = instruction(&[bits(7, 5), bits(25, 7).shr(5)]);
/// U of `auipc`, and I of the `jalr` behind it.
const U_I: Field = Field::instruction(8, &[bits(12, 20).nearest(12), bits(52, 12)]);
const B: Field = instruction(&[
    bits(8, 4).scaled(1),
    bits(25, 6).shr(5),
    bits(7, 1).shr(11),
    bits(31, 1).shr(12),
]);
const J: Field = instruction(&[
    bits(21, 10).scaled(1),
    bits(20, 1).shr(11),
    bits(12, 8).shr(12),
    bits(31, 1).shr(20),
]);
const CB: Field = compressed(&[
    bits(3, 2).scaled(1),
    bits(10, 2).shr(3),
    bits(2, 1).shr(5),
    bits(5, 2).shr(6),
    bits(12, 1).shr(8),
]);
const CJ: Field = compressed(&[
    bits(3, 3).scaled(1),
    bits(11, 1).shr(4),
    bits(2, 1).shr(5),
    bits(7, 1).shr(6),
    bits(6, 1).shr(7),
    bits(9, 2).shr(8),
    bits(8, 1).shr(10),
    bits(12, 1).shr(11),
]);
const CI: Field = compressed(&[]).encoded(c_lui);

const fn instruction(parts: &'static [Bits]) -> Field {
    Field::instruction(4, parts)
}

const fn compressed(parts: &'static [Bits]) -> Field {
    Field::instruction(2, parts)
}

const fn bits(at: u8, width: u8) -> Bits {
    Bits::new(at, width)
}

/// Bits 17 and 16:12 of the rounded value; `c.li rd, 0` for 0.
#[expect(clippy::unnecessary_wraps, reason = "an encoder may fail")]
const fn c_lui(word: u64, value: i64, _: u8) -> Result<u64, Unencodable> {
    let high = value.wrapping_add(0x800).cast_unsigned() >> 12;
    Ok(match high {
        0 => word & 0x0f83 | 0x4000,
        _ => word & 0xef83 | (high & 0x1f) << 2 | (high >> 5 & 1) << 12,
    })
}

/// Numbers of what code that becomes shorter has.
enum Numbers {}

impl relax::Numbers for Numbers {
    const RELAX: u32 = R_RISCV_RELAX;
    const JAL: u32 = R_RISCV_JAL;
    const RVC_JUMP: u32 = R_RISCV_RVC_JUMP;
    const RVC_LUI: u32 = R_RISCV_RVC_LUI;
}

const CALL: Shrink = Shrink::new(8, relax::call::<Numbers>);
const HI: Shrink = Shrink::new(4, relax::high::<Numbers>);
const LO: Shrink = Shrink::new(0, relax::low::<Numbers>);
const PCREL_HI: Shrink = Shrink::new(4, relax::pcrel_high::<Numbers>).by_global_pointer();
const TPREL_HI: Shrink = Shrink::new(4, relax::tprel_high::<Numbers>);
const TPREL_LO: Shrink = Shrink::new(0, relax::tprel_low::<Numbers>);

/// The relocation at the label that the symbol is, which has the upper part: that of a descriptor, or another.
fn high_part(
    site: &Site<'_>,
    label: Option<u64>,
    of_descriptor: bool,
) -> Result<Pairing, ApplyErrorKind> {
    const UPPER: [u32; 5] = [
        R_RISCV_GOT_HI20,
        R_RISCV_TLS_GOT_HI20,
        R_RISCV_TLS_GD_HI20,
        R_RISCV_PCREL_HI20,
        R_RISCV_TLSDESC_HI20,
    ];
    // the ABI has no use for an addend, and linkers do not agree on one
    if let Some(addend) = site.record.addend
        && addend != 0
    {
        let value = addend.cast_unsigned();
        return Err(ApplyErrorKind::Overflow { value, check: Check::Unsigned(0) });
    }
    let found = label.and_then(|label| site.find(label, &UPPER));
    let fits = |high: &Record| (high.r#type == R_RISCV_TLSDESC_HI20) == of_descriptor;
    let pairing = found.filter(fits).map(Pairing::new).ok_or(ApplyErrorKind::Unpaired)?;
    Ok(match pairing.partner.r#type {
        R_RISCV_PCREL_HI20 => pairing.shorten(relax::pcrel_low::<Numbers>),
        _ => pairing,
    })
}

fn pcrel(site: &Site<'_>, label: Option<u64>) -> Result<Pairing, ApplyErrorKind> {
    high_part(site, label, false)
}

fn descriptor(
    site: &Site<'_>,
    label: Option<u64>,
    transition: Transition,
) -> Result<Pairing, ApplyErrorKind> {
    let pairing = high_part(site, label, true)?;
    Ok(pairing.transition(transition))
}

fn descriptor_load(site: &Site<'_>, label: Option<u64>) -> Result<Pairing, ApplyErrorKind> {
    descriptor(site, label, tls::of_load::<Numbers>())
}

fn descriptor_add(site: &Site<'_>, label: Option<u64>) -> Result<Pairing, ApplyErrorKind> {
    descriptor(site, label, tls::of_add::<Numbers>())
}

fn descriptor_call(site: &Site<'_>, label: Option<u64>) -> Result<Pairing, ApplyErrorKind> {
    descriptor(site, label, tls::CALL)
}

/// The other half of a difference: the next relocation, at the same offset.
fn difference(site: &Site<'_>, _: Option<u64>) -> Result<Pairing, ApplyErrorKind> {
    let Record { offset, .. } = *site.record;
    let next =
        site.next().filter(|next| next.r#type == R_RISCV_SUB_ULEB128 && next.offset == offset);
    next.map(|next| Pairing::new(next).taking_next()).ok_or(ApplyErrorKind::Unpaired)
}

elf_core::kinds! {
    R_RISCV_NONE              =   0: marker();
    R_RISCV_32                =   1: new(S_A,         Either(32), WORD32);
    R_RISCV_64                =   2: new(S_A,         Any,        WORD64);
    R_RISCV_RELATIVE          =   3: load(B_A);
    R_RISCV_COPY              =   4: copy();
    R_RISCV_JUMP_SLOT         =   5: load(SYMBOL);
    R_RISCV_TLS_DTPMOD32      =   6: load(M);
    R_RISCV_TLS_DTPMOD64      =   7: load(M);
    R_RISCV_TLS_DTPREL32      =   8: new(DTP_A,       Any,        WORD32);
    R_RISCV_TLS_DTPREL64      =   9: new(DTP_A,       Any,        WORD64);
    R_RISCV_TLS_TPREL32       =  10: load(TP_A);
    R_RISCV_TLS_TPREL64       =  11: load(TP_A);
    R_RISCV_TLSDESC           =  12: descriptor();
    R_RISCV_BRANCH            =  16: new(S_A_P,       Signed(13), B);
    R_RISCV_JAL               =  17: new(S_A_P,       Signed(21), J);
    R_RISCV_CALL              =  18: new(L_A_P,       HIGH,       U_I).shrink(CALL);
    R_RISCV_CALL_PLT          =  19: new(L_A_P,       HIGH,       U_I).shrink(CALL);
    R_RISCV_GOT_HI20          =  20: new(G_A_P,       HIGH,       U);
    R_RISCV_TLS_GOT_HI20      =  21: new(IE_A_P,      HIGH,       U);
    R_RISCV_TLS_GD_HI20       =  22: new(GD_A_P,      HIGH,       U);
    R_RISCV_PCREL_HI20        =  23: new(S_A_P,       HIGH,       U).shrink(PCREL_HI);
    R_RISCV_PCREL_LO12_I      =  24: new(X,           Any,        I).pair(pcrel);
    R_RISCV_PCREL_LO12_S      =  25: new(X,           Any,        S).pair(pcrel);
    R_RISCV_HI20              =  26: new(S_A,         HIGH,       U).shrink(HI);
    R_RISCV_LO12_I            =  27: new(S_A,         Any,        I).shrink(LO);
    R_RISCV_LO12_S            =  28: new(S_A,         Any,        S).shrink(LO);
    R_RISCV_TPREL_HI20        =  29: new(TP_A,        HIGH,       U).shrink(TPREL_HI);
    R_RISCV_TPREL_LO12_I      =  30: new(TP_A,        Any,        I).shrink(TPREL_LO);
    R_RISCV_TPREL_LO12_S      =  31: new(TP_A,        Any,        S).shrink(TPREL_LO);
    R_RISCV_TPREL_ADD         =  32: marker().shrink(TPREL_HI);
    R_RISCV_ADD8              =  33: new(V_S_A,       Any,        WORD8);
    R_RISCV_ADD16             =  34: new(V_S_A,       Any,        WORD16);
    R_RISCV_ADD32             =  35: new(V_S_A,       Any,        WORD32);
    R_RISCV_ADD64             =  36: new(V_S_A,       Any,        WORD64);
    R_RISCV_SUB8              =  37: new(V_MINUS_S_A, Any,        WORD8);
    R_RISCV_SUB16             =  38: new(V_MINUS_S_A, Any,        WORD16);
    R_RISCV_SUB32             =  39: new(V_MINUS_S_A, Any,        WORD32);
    R_RISCV_SUB64             =  40: new(V_MINUS_S_A, Any,        WORD64);
    R_RISCV_GOT32_PCREL       =  41: new(G_A_P,       Signed(32), WORD32);
    R_RISCV_ALIGN             =  43: marker().padding(relax::PADDING);
    R_RISCV_RVC_BRANCH        =  44: new(S_A_P,       Signed(9),  CB);
    R_RISCV_RVC_JUMP          =  45: new(S_A_P,       Signed(12), CJ);
    R_RISCV_RVC_LUI           =  46: new(S_A,         HIGH_6,     CI);
    R_RISCV_RELAX             =  51: marker();
    R_RISCV_SUB6              =  52: new(V_MINUS_S_A, Any,        WORD6);
    R_RISCV_SET6              =  53: new(S_A,         Any,        WORD6);
    R_RISCV_SET8              =  54: new(S_A,         Any,        WORD8);
    R_RISCV_SET16             =  55: new(S_A,         Any,        WORD16);
    R_RISCV_SET32             =  56: new(S_A,         Any,        WORD32);
    R_RISCV_32_PCREL          =  57: new(S_A_P,       Signed(32), WORD32);
    R_RISCV_IRELATIVE         =  58: load(INDIRECT);
    R_RISCV_PLT32             =  59: new(L_A_P,       Signed(32), WORD32);
    R_RISCV_SET_ULEB128       =  60: new(S_A_X,       Any,        ULEB).pair(difference);
    R_RISCV_SUB_ULEB128       =  61: new(S_A,         Any,        ULEB).second();
    R_RISCV_TLSDESC_HI20      =  62: new(DESC_A_P,    HIGH,       U).transition(tls::of_high::<Numbers>());
    R_RISCV_TLSDESC_LOAD_LO12 =  63: new(X,           Any,        I).pair(descriptor_load).going(4);
    R_RISCV_TLSDESC_ADD_LO12  =  64: new(X,           Any,        I).pair(descriptor_add).going(4);
    R_RISCV_TLSDESC_CALL      =  65: marker().pair(descriptor_call);
    R_RISCV_VENDOR            = 191: unsupported();
}
