//! Relocations of LoongArch64 (LoongArch ELF psABI, "Relocations").
//!
//! Peculiarities:
//!
//! - Upper parts of addresses count pages: 20 bits of Page(X + 0x800) - Page(P), since the lower 12 are added with a sign. Those
//!   of numbers that `ori` completes (absolute addresses, offsets of local exec) are not rounded.
//! - Four instructions that stand together make 64 bits. The third and the fourth count from the place of the first; what both signs
//!   took away is given back to them. Without them, an upper part has to fit: the linkers cut it off.
//! - The lower part of a general or local dynamic variable's entry is `GOT_PC_LO12`, as that of an address's entry: the symbol decides.
//!   Local dynamic code asks for the variable as general dynamic code does.
//! - `PCALA_LO12` may be that of a `jirl`, as in glibc 2.37: bits 11 to 2 with their sign.
//! - `PCADD_LO12` and its like name the label of the instruction with the upper part, as RISC-V's lower parts do.
//! - `ADD` and `SUB` count from what the place holds, numbers of variable length too: each stands for itself.
//! - `CALL36` is rounded by half of what `jirl` reaches, which the ABI's text leaves out. `CALL30` is not: its lower part is a positive number
//!   of 12 bits (lld 22).
//! - `32` must fit, signed or not: the linkers cut it off.
//! - `RELAX` says of the record before it that its code may become shorter (`relax.rs`). Of the padding of `ALIGN` what is too much goes where
//!   a layout has room for edits; else all stays, and what follows must be aligned with it.
//! - The stack machine of the first ABI (22 to 46) is refused by name.

use crate::code;
use crate::fields::*;
use crate::{relax, tls};
use elf_core::Check::{Any, Either, Signed};
use elf_core::names::EM_LOONGARCH;
use elf_core::tls::{Tls, Transition};
use elf_core::{
    Alignment, ApplyErrorKind, Arch, Check, Field, Kind, Padding, Pairing, Record, Shrink, Site,
    Stub, StubRelocation, find,
};

/// LoongArch with addresses of 8 bytes (`EM_LOONGARCH`, `ELFCLASS64`).
#[derive(Clone, Copy, Debug)]
pub enum LoongArch64 {}

impl Arch for LoongArch64 {
    const MACHINE: u16 = EM_LOONGARCH;
    const ADDRESS_SIZE: u64 = 8;
    const KINDS: &'static [Kind] = KINDS;
    const STUBS: &'static [Stub] = &[Stub::new(&STUB, 16, STUB_RELOCATIONS)];
    const TLS: Option<Tls> = Some(tls::TLS);
    const EQUAL_FLAGS: &'static [(u32, &'static str)] =
        &[(0x7, "the float ABI"), (0xc0, "the version of the object ABI")];
}

/// Through `t8`, which is free where functions are called.
#[rustfmt::skip]
const STUB: [u8; 16] = [
    0x14, 0x00, 0x00, 0x1a, // pcalau12i t8, %got_pc_hi20(symbol)
    0x94, 0x02, 0xc0, 0x28, // ld.d      t8, t8, %got_pc_lo12(symbol)
    0x80, 0x02, 0x00, 0x4c, // jr        t8
    0x00, 0x00, 0x40, 0x03, // nop
];

const STUB_RELOCATIONS: &[StubRelocation] = &[
    StubRelocation::new(0, R_LARCH_GOT_PC_HI20, 0),
    StubRelocation::new(4, R_LARCH_GOT_PC_LO12, 0),
];

const PADDING: Padding = Padding::new(alignment, &[&[0x00, 0x00, 0x40, 0x03]]);

const CALL: Shrink = Shrink::new(8, relax::call::<R_LARCH_RELAX, R_LARCH_B26>);
const ADDRESS: Shrink =
    Shrink::new(8, relax::address::<R_LARCH_RELAX, R_LARCH_PCALA_LO12, R_LARCH_PCREL20_S2>);
const ENTRY: Shrink =
    Shrink::new(8, relax::entry::<R_LARCH_RELAX, R_LARCH_GOT_PC_LO12, R_LARCH_PCREL20_S2>);
const DESCRIPTOR: Transition = tls::marked_address::<R_LARCH_RELAX>();
const DESCRIPTOR_LOAD: Transition = tls::marked_load::<R_LARCH_RELAX>();
const INITIAL_EXEC_HIGH: Transition = tls::initial_exec_high::<R_LARCH_RELAX>();
const GENERAL_DYNAMIC: Shrink =
    Shrink::new(8, relax::dynamic::<R_LARCH_RELAX, R_LARCH_GOT_PC_LO12, R_LARCH_TLS_GD_PCREL20_S2>);
const LOCAL_DYNAMIC: Shrink =
    Shrink::new(8, relax::dynamic::<R_LARCH_RELAX, R_LARCH_GOT_PC_LO12, R_LARCH_TLS_LD_PCREL20_S2>);
const LOCAL_EXEC_HIGH: Shrink = Shrink::new(4, relax::local_exec_high::<R_LARCH_RELAX>);
const LOCAL_EXEC_LOW: Shrink = Shrink::new(0, relax::local_exec_low::<R_LARCH_RELAX>);

/// Bytes of the NOPs of an `ALIGN`: A, behind which is a multiple of the least power of two above; with a symbol, 4 less than the
/// alignment, whose logarithm is A's low byte. What is above that, if anything, is how many may be kept at most.
fn alignment(record: &Record) -> Alignment {
    let addend = record.addend.unwrap_or(0).cast_unsigned();
    if record.symbol == 0 {
        // all ones from the highest bit of A down
        let low = u64::MAX.unbounded_shr(addend.leading_zeros());
        return Alignment { padding: addend, alignment: low.wrapping_add(1), most: u64::MAX };
    }
    let alignment = 1u64.unbounded_shl(addend as u32 & 0xff);
    let most = match addend >> 8 {
        0 => u64::MAX,
        most => most,
    };
    Alignment { padding: alignment.wrapping_sub(4), alignment, most }
}

/// The row of an upper part that may have any value, since the parts above it follow.
fn upper(site: &Site<'_>, _: bool) -> Option<&'static Kind> {
    if code::makes_64_bits(site) { find(UPPER, site.record.r#type) } else { None }
}

/// The same of an address, or of an entry's, which may be in reach of one instruction.
fn address(site: &Site<'_>, _: bool) -> Option<&'static Kind> {
    let rows = if code::makes_64_bits(site) { UPPER } else { ADDRESSES };
    find(rows, site.record.r#type)
}

/// The same of a descriptor or an entry of initial exec: a descriptor may become local exec code either way.
fn descriptor(site: &Site<'_>, _: bool) -> Option<&'static Kind> {
    let rows = if code::makes_64_bits(site) { UPPER } else { DESCRIPTORS };
    find(rows, site.record.r#type)
}

/// The row of the lower part of an entry of initial exec, which may become local exec code if it is the last.
fn initial_exec_low(site: &Site<'_>, _: bool) -> Option<&'static Kind> {
    const ROW: &Kind =
        &Kind::new(R_LARCH_TLS_IE_PC_LO12, "R_LARCH_TLS_IE_PC_LO12", IE_A, Any, LO12)
            .transition(tls::INITIAL_EXEC_LOW);
    (!code::is_in_64_bits(site)).then_some(ROW)
}

/// The row of a part of a thread-local variable's entry.
fn variable(site: &Site<'_>, is_thread_local: bool) -> Option<&'static Kind> {
    if is_thread_local { find(VARIABLES, site.record.r#type) } else { None }
}

/// The row of the lower part of a function's address.
fn jirl(site: &Site<'_>, _: bool) -> Option<&'static Kind> {
    const ROW: &Kind = &Kind::new(R_LARCH_PCALA_LO12, "R_LARCH_PCALA_LO12", S_A, Any, JIRL);
    code::is_jirl(site).then_some(ROW)
}

macro_rules! rows {
    ($($name:ident: $value:expr, $check:expr, $field:expr $(, $with:ident($argument:expr))?;)*) => {
        &[$(Kind::new($name, stringify!($name), $value, $check, $field)$(.$with($argument))?,)*]
    };
}

/// Upper parts that are not the uppermost ones.
const UPPER: &[Kind] = rows! {
    R_LARCH_ABS_HI20:         S_A,           Any, HI20;
    R_LARCH_PCALA_HI20:       pages(S_A),    Any, HI20;
    R_LARCH_GOT_PC_HI20:      pages(G_A),    Any, HI20;
    R_LARCH_GOT_HI20:         G_A,           Any, HI20;
    R_LARCH_TLS_LE_HI20:      TP_A,          Any, HI20;
    R_LARCH_TLS_IE_PC_HI20:   pages(IE_A),   Any, HI20;
    R_LARCH_TLS_IE_HI20:      IE_A,          Any, HI20;
    R_LARCH_TLS_LD_PC_HI20:   pages(GD_A),   Any, HI20;
    R_LARCH_TLS_LD_HI20:      GD_A,          Any, HI20;
    R_LARCH_TLS_GD_PC_HI20:   pages(GD_A),   Any, HI20;
    R_LARCH_TLS_GD_HI20:      GD_A,          Any, HI20;
    R_LARCH_TLS_DESC_PC_HI20: pages(DESC_A), Any, HI20, transition(tls::ADDRESS);
    R_LARCH_TLS_DESC_HI20:    DESC_A,        Any, HI20, transition(tls::ADDRESS);
};

/// Upper parts of addresses that are the uppermost ones.
const ADDRESSES: &[Kind] = rows! {
    R_LARCH_PCALA_HI20:       pages(S_A),    Signed(32), HI20, shrink(ADDRESS);
    R_LARCH_GOT_PC_HI20:      pages(G_A),    Signed(32), HI20, shrink(ENTRY);
    R_LARCH_TLS_LD_PC_HI20:   pages(GD_A),   Signed(32), HI20, shrink(LOCAL_DYNAMIC);
    R_LARCH_TLS_GD_PC_HI20:   pages(GD_A),   Signed(32), HI20, shrink(GENERAL_DYNAMIC);
};

/// The same of descriptors, and of entries of initial exec.
const DESCRIPTORS: &[Kind] = rows! {
    R_LARCH_TLS_IE_PC_HI20:   pages(IE_A),   Signed(32), HI20, transition(INITIAL_EXEC_HIGH);
    R_LARCH_TLS_DESC_PC_HI20: pages(DESC_A), Signed(32), HI20, transition(DESCRIPTOR);
    R_LARCH_TLS_DESC_HI20:    DESC_A,        Signed(32), HI20, transition(tls::ADDRESS);
};

/// What general and local dynamic code shares with code that loads an address.
const VARIABLES: &[Kind] = rows! {
    R_LARCH_GOT_PC_LO12:   GD_A,         Any, LO12;
    R_LARCH_GOT64_PC_LO20: third(GD_A),  Any, LO20_64;
    R_LARCH_GOT64_PC_HI12: fourth(GD_A), Any, HI12_64;
    R_LARCH_GOT_LO12:      GD_A,         Any, LO12;
    R_LARCH_GOT64_LO20:    GD_A,         Any, LO20_64;
    R_LARCH_GOT64_HI12:    GD_A,         Any, HI12_64;
};

/// The relocation at the label that the symbol is, which has the upper part: each kind has its own, by the number before.
fn lower(site: &Site<'_>, label: Option<u64>) -> Result<Pairing, ApplyErrorKind> {
    // the label says all, and linkers do not agree on an addend
    if let Some(addend) = site.record.addend
        && addend != 0
    {
        let value = addend.cast_unsigned();
        return Err(ApplyErrorKind::Overflow { value, check: Check::Unsigned(0) });
    }
    let upper = site.record.r#type.wrapping_sub(1);
    let found = label.and_then(|label| site.find(label, &[upper]));
    found.map(Pairing::new).ok_or(ApplyErrorKind::Unpaired)
}

fn descriptor_part(site: &Site<'_>, label: Option<u64>) -> Result<Pairing, ApplyErrorKind> {
    Ok(lower(site, label)?.transition(tls::ADDRESS))
}

elf_core::kinds! {
    R_LARCH_NONE                       =   0: marker();
    R_LARCH_32                         =   1: new(S_A,             Either(32), Field::DATA32);
    R_LARCH_64                         =   2: new(S_A,             Any,        Field::DATA64);
    R_LARCH_RELATIVE                   =   3: load(B_A);
    R_LARCH_COPY                       =   4: copy();
    R_LARCH_JUMP_SLOT                  =   5: load(SYMBOL);
    R_LARCH_TLS_DTPMOD32               =   6: load(MODULE);
    R_LARCH_TLS_DTPMOD64               =   7: load(MODULE);
    R_LARCH_TLS_DTPREL32               =   8: new(DTP_A,           Any,        Field::DATA32);
    R_LARCH_TLS_DTPREL64               =   9: new(DTP_A,           Any,        Field::DATA64);
    R_LARCH_TLS_TPREL32                =  10: load(TP_A);
    R_LARCH_TLS_TPREL64                =  11: load(TP_A);
    R_LARCH_IRELATIVE                  =  12: load(INDIRECT);
    R_LARCH_TLS_DESC32                 =  13: descriptor();
    R_LARCH_TLS_DESC64                 =  14: descriptor();
    R_LARCH_MARK_LA                    =  20: marker();
    R_LARCH_MARK_PCREL                 =  21: marker();
    R_LARCH_SOP_PUSH_PCREL             =  22: unsupported();
    R_LARCH_SOP_PUSH_ABSOLUTE          =  23: unsupported();
    R_LARCH_SOP_PUSH_DUP               =  24: unsupported();
    R_LARCH_SOP_PUSH_GPREL             =  25: unsupported();
    R_LARCH_SOP_PUSH_TLS_TPREL         =  26: unsupported();
    R_LARCH_SOP_PUSH_TLS_GOT           =  27: unsupported();
    R_LARCH_SOP_PUSH_TLS_GD            =  28: unsupported();
    R_LARCH_SOP_PUSH_PLT_PCREL         =  29: unsupported();
    R_LARCH_SOP_ASSERT                 =  30: unsupported();
    R_LARCH_SOP_NOT                    =  31: unsupported();
    R_LARCH_SOP_SUB                    =  32: unsupported();
    R_LARCH_SOP_SL                     =  33: unsupported();
    R_LARCH_SOP_SR                     =  34: unsupported();
    R_LARCH_SOP_ADD                    =  35: unsupported();
    R_LARCH_SOP_AND                    =  36: unsupported();
    R_LARCH_SOP_IF_ELSE                =  37: unsupported();
    R_LARCH_SOP_POP_32_S_10_5          =  38: unsupported();
    R_LARCH_SOP_POP_32_U_10_12         =  39: unsupported();
    R_LARCH_SOP_POP_32_S_10_12         =  40: unsupported();
    R_LARCH_SOP_POP_32_S_10_16         =  41: unsupported();
    R_LARCH_SOP_POP_32_S_10_16_S2      =  42: unsupported();
    R_LARCH_SOP_POP_32_S_5_20          =  43: unsupported();
    R_LARCH_SOP_POP_32_S_0_5_10_16_S2  =  44: unsupported();
    R_LARCH_SOP_POP_32_S_0_10_10_16_S2 =  45: unsupported();
    R_LARCH_SOP_POP_32_U               =  46: unsupported();
    R_LARCH_ADD8                       =  47: new(V_S_A,           Any,        Field::DATA8);
    R_LARCH_ADD16                      =  48: new(V_S_A,           Any,        Field::DATA16);
    R_LARCH_ADD24                      =  49: new(V_S_A,           Any,        WORD24);
    R_LARCH_ADD32                      =  50: new(V_S_A,           Any,        Field::DATA32);
    R_LARCH_ADD64                      =  51: new(V_S_A,           Any,        Field::DATA64);
    R_LARCH_SUB8                       =  52: new(V_MINUS_S_A,     Any,        Field::DATA8);
    R_LARCH_SUB16                      =  53: new(V_MINUS_S_A,     Any,        Field::DATA16);
    R_LARCH_SUB24                      =  54: new(V_MINUS_S_A,     Any,        WORD24);
    R_LARCH_SUB32                      =  55: new(V_MINUS_S_A,     Any,        Field::DATA32);
    R_LARCH_SUB64                      =  56: new(V_MINUS_S_A,     Any,        Field::DATA64);
    R_LARCH_GNU_VTINHERIT              =  57: marker();
    R_LARCH_GNU_VTENTRY                =  58: marker();
    R_LARCH_B16                        =  64: new(S_A_P,           Signed(18), B16);
    R_LARCH_B21                        =  65: new(S_A_P,           Signed(23), B21);
    R_LARCH_B26                        =  66: new(L_A_P,           Signed(28), B26);
    R_LARCH_ABS_HI20                   =  67: new(S_A,             Signed(32), HI20).alternative(upper);
    R_LARCH_ABS_LO12                   =  68: new(S_A,             Any,        LO12);
    R_LARCH_ABS64_LO20                 =  69: new(S_A,             Any,        LO20_64);
    R_LARCH_ABS64_HI12                 =  70: new(S_A,             Any,        HI12_64);
    R_LARCH_PCALA_HI20                 =  71: new(pages(S_A),      Signed(32), HI20).alternative(address).going(8);
    R_LARCH_PCALA_LO12                 =  72: new(S_A,             Any,        LO12).alternative(jirl);
    R_LARCH_PCALA64_LO20               =  73: new(third(S_A),      Any,        LO20_64);
    R_LARCH_PCALA64_HI12               =  74: new(fourth(S_A),     Any,        HI12_64);
    R_LARCH_GOT_PC_HI20                =  75: new(pages(G_A),      Signed(32), HI20).alternative(address).going(8);
    R_LARCH_GOT_PC_LO12                =  76: new(G_A,             Any,        LO12).alternative(variable);
    R_LARCH_GOT64_PC_LO20              =  77: new(third(G_A),      Any,        LO20_64).alternative(variable);
    R_LARCH_GOT64_PC_HI12              =  78: new(fourth(G_A),     Any,        HI12_64).alternative(variable);
    R_LARCH_GOT_HI20                   =  79: new(G_A,             Signed(32), HI20).alternative(upper);
    R_LARCH_GOT_LO12                   =  80: new(G_A,             Any,        LO12).alternative(variable);
    R_LARCH_GOT64_LO20                 =  81: new(G_A,             Any,        LO20_64).alternative(variable);
    R_LARCH_GOT64_HI12                 =  82: new(G_A,             Any,        HI12_64).alternative(variable);
    R_LARCH_TLS_LE_HI20                =  83: new(TP_A,            Signed(32), HI20).alternative(upper);
    R_LARCH_TLS_LE_LO12                =  84: new(TP_A,            Any,        LO12);
    R_LARCH_TLS_LE64_LO20              =  85: new(TP_A,            Any,        LO20_64);
    R_LARCH_TLS_LE64_HI12              =  86: new(TP_A,            Any,        HI12_64);
    R_LARCH_TLS_IE_PC_HI20             =  87: new(pages(IE_A),     Signed(32), HI20).alternative(descriptor).going(4);
    R_LARCH_TLS_IE_PC_LO12             =  88: new(IE_A,            Any,        LO12).alternative(initial_exec_low);
    R_LARCH_TLS_IE64_PC_LO20           =  89: new(third(IE_A),     Any,        LO20_64);
    R_LARCH_TLS_IE64_PC_HI12           =  90: new(fourth(IE_A),    Any,        HI12_64);
    R_LARCH_TLS_IE_HI20                =  91: new(IE_A,            Signed(32), HI20).alternative(upper);
    R_LARCH_TLS_IE_LO12                =  92: new(IE_A,            Any,        LO12);
    R_LARCH_TLS_IE64_LO20              =  93: new(IE_A,            Any,        LO20_64);
    R_LARCH_TLS_IE64_HI12              =  94: new(IE_A,            Any,        HI12_64);
    R_LARCH_TLS_LD_PC_HI20             =  95: new(pages(GD_A),     Signed(32), HI20).alternative(address).going(8);
    R_LARCH_TLS_LD_HI20                =  96: new(GD_A,            Signed(32), HI20).alternative(upper);
    R_LARCH_TLS_GD_PC_HI20             =  97: new(pages(GD_A),     Signed(32), HI20).alternative(address).going(8);
    R_LARCH_TLS_GD_HI20                =  98: new(GD_A,            Signed(32), HI20).alternative(upper);
    R_LARCH_32_PCREL                   =  99: new(S_A_P,           Signed(32), Field::DATA32);
    R_LARCH_RELAX                      = 100: marker();
    R_LARCH_ALIGN                      = 102: marker().padding(PADDING);
    R_LARCH_PCREL20_S2                 = 103: new(S_A_P,           Signed(22), PCREL20);
    R_LARCH_ADD6                       = 105: new(V_S_A,           Any,        WORD6);
    R_LARCH_SUB6                       = 106: new(V_MINUS_S_A,     Any,        WORD6);
    R_LARCH_ADD_ULEB128                = 107: new(V_S_A,           Any,        Field::ULEB128);
    R_LARCH_SUB_ULEB128                = 108: new(V_MINUS_S_A,     Any,        Field::ULEB128);
    R_LARCH_64_PCREL                   = 109: new(S_A_P,           Any,        Field::DATA64);
    R_LARCH_CALL36                     = 110: new(L_A_P,           HIGH_38,    CALL36).shrink(CALL);
    R_LARCH_TLS_DESC_PC_HI20           = 111: new(pages(DESC_A),   Signed(32), HI20).alternative(descriptor).going(4);
    R_LARCH_TLS_DESC_PC_LO12           = 112: new(DESC_A,          Any,        LO12).transition(DESCRIPTOR);
    R_LARCH_TLS_DESC64_PC_LO20         = 113: new(third(DESC_A),   Any,        LO20_64).transition(tls::ADDRESS);
    R_LARCH_TLS_DESC64_PC_HI12         = 114: new(fourth(DESC_A),  Any,        HI12_64).transition(tls::ADDRESS);
    R_LARCH_TLS_DESC_HI20              = 115: new(DESC_A,          Signed(32), HI20).alternative(descriptor);
    R_LARCH_TLS_DESC_LO12              = 116: new(DESC_A,          Any,        LO12).transition(tls::ADDRESS);
    R_LARCH_TLS_DESC64_LO20            = 117: new(DESC_A,          Any,        LO20_64).transition(tls::ADDRESS);
    R_LARCH_TLS_DESC64_HI12            = 118: new(DESC_A,          Any,        HI12_64).transition(tls::ADDRESS);
    R_LARCH_TLS_DESC_LD                = 119: marker().transition(DESCRIPTOR_LOAD);
    R_LARCH_TLS_DESC_CALL              = 120: marker().transition(tls::CALL);
    R_LARCH_TLS_LE_HI20_R              = 121: new(TP_A,            HIGH,       HI20_ROUNDED).shrink(LOCAL_EXEC_HIGH);
    R_LARCH_TLS_LE_ADD_R               = 122: marker().shrink(LOCAL_EXEC_HIGH);
    R_LARCH_TLS_LE_LO12_R              = 123: new(TP_A,            Any,        LO12).shrink(LOCAL_EXEC_LOW);
    R_LARCH_TLS_LD_PCREL20_S2          = 124: new(from(GD_A),      Signed(22), PCREL20);
    R_LARCH_TLS_GD_PCREL20_S2          = 125: new(from(GD_A),      Signed(22), PCREL20);
    R_LARCH_TLS_DESC_PCREL20_S2        = 126: new(from(DESC_A),    Signed(22), PCREL20).transition(tls::ADDRESS);
    R_LARCH_CALL30                     = 127: new(L_A_P,           Signed(32), CALL30);
    R_LARCH_PCADD_HI20                 = 128: new(from(S_A),       HIGH,       HI20_ROUNDED);
    R_LARCH_PCADD_LO12                 = 129: new(X,               Any,        LO12).pair(lower);
    R_LARCH_GOT_PCADD_HI20             = 130: new(from(G_A),       HIGH,       HI20_ROUNDED);
    R_LARCH_GOT_PCADD_LO12             = 131: new(X,               Any,        LO12).pair(lower);
    R_LARCH_TLS_IE_PCADD_HI20          = 132: new(from(IE_A),      HIGH,       HI20_ROUNDED);
    R_LARCH_TLS_IE_PCADD_LO12          = 133: new(X,               Any,        LO12).pair(lower);
    R_LARCH_TLS_LD_PCADD_HI20          = 134: new(from(GD_A),      HIGH,       HI20_ROUNDED);
    R_LARCH_TLS_LD_PCADD_LO12          = 135: new(X,               Any,        LO12).pair(lower);
    R_LARCH_TLS_GD_PCADD_HI20          = 136: new(from(GD_A),      HIGH,       HI20_ROUNDED);
    R_LARCH_TLS_GD_PCADD_LO12          = 137: new(X,               Any,        LO12).pair(lower);
    R_LARCH_TLS_DESC_PCADD_HI20        = 138: new(from(DESC_A),    HIGH,       HI20_ROUNDED).transition(tls::ADDRESS);
    R_LARCH_TLS_DESC_PCADD_LO12        = 139: new(X,               Any,        LO12).pair(descriptor_part);
}
