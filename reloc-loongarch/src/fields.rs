//! Formulas, limits and fields of LoongArch.

use crate::code;
use elf_core::{Bits, Check, Field, Role, Slot, Value};

pub(crate) const S_A: Value = Value::of(Role::Address).plus_a();
pub(crate) const S_A_P: Value = S_A.minus(Role::Place);
pub(crate) const L_A_P: Value = Value::of(Role::Plt).plus_a().minus(Role::Place);
pub(crate) const V_S_A: Value = S_A.plus_v();
pub(crate) const V_MINUS_S_A: Value = S_A.from_v();
pub(crate) const TP_A: Value = Value::of(Role::TpOffset).plus_a();
pub(crate) const DTP_A: Value = Value::of(Role::DtpOffset).plus_a();
pub(crate) const G_A: Value = entry(Slot::Address);
pub(crate) const IE_A: Value = entry(Slot::TpOffset);
/// Of local dynamic code, too: it asks for the variable, as general dynamic code does.
pub(crate) const GD_A: Value = entry(Slot::TlsGd);
pub(crate) const DESC_A: Value = entry(Slot::TlsDesc);
/// Of dynamic loaders.
pub(crate) const SYMBOL: Value = Value::of(Role::Address);
pub(crate) const B_A: Value = Value::of(Role::Base).plus_a();
pub(crate) const MODULE: Value = Value::of(Role::TlsModule);
pub(crate) const INDIRECT: Value = Value::of(Role::Indirect);
/// X of the relocation with the upper part.
pub(crate) const X: Value = Value::of(Role::Partner);

const fn entry(slot: Slot) -> Value {
    Value::of(Role::Got(slot)).plus_a()
}

/// From the place.
pub(crate) const fn from(value: Value) -> Value {
    value.minus(Role::Place)
}

/// From the place by pages.
pub(crate) const fn pages(value: Value) -> Value {
    from(value).by_nearest_page()
}

/// The same above 32 bits, in the third instruction.
pub(crate) const fn third(value: Value) -> Value {
    from(value).by_upper_pages(8)
}

/// The same above 32 bits, in the fourth instruction.
pub(crate) const fn fourth(value: Value) -> Value {
    from(value).by_upper_pages(12)
}

/// Of an upper part of 20 bits and a lower of 12, which is added with its sign.
pub(crate) const HIGH: Check = Check::SignedRounded { bits: 32, low: 12 };
/// Of an upper part of 20 bits and a lower of 16 and two zeros.
pub(crate) const HIGH_38: Check = Check::SignedRounded { bits: 38, low: 18 };

pub(crate) const WORD6: Field = Field::data(1, &[bits(0, 6)]);
pub(crate) const WORD24: Field = Field::data(3, &[bits(0, 24)]);
pub(crate) const HI20: Field = instruction(&[bits(5, 20).shr(12)]);
/// With a lower part that has a sign, and is none of an address within a page.
pub(crate) const HI20_ROUNDED: Field = instruction(&[bits(5, 20).nearest(12)]);
pub(crate) const LO12: Field = instruction(&[bits(10, 12)]);
pub(crate) const LO20_64: Field = instruction(&[bits(5, 20).shr(32)]);
pub(crate) const HI12_64: Field = instruction(&[bits(10, 12).shr(52)]);
pub(crate) const B16: Field = instruction(&[bits(10, 16).scaled(2)]);
pub(crate) const B21: Field = instruction(&[bits(10, 16).scaled(2), bits(0, 5).shr(18)]);
pub(crate) const B26: Field = instruction(&[bits(10, 16).scaled(2), bits(0, 10).shr(18)]);
pub(crate) const PCREL20: Field = instruction(&[bits(5, 20).scaled(2)]);
/// `pcaddu18i`, and the `jirl` behind it.
pub(crate) const CALL36: Field =
    Field::instruction(8, &[bits(5, 20).nearest(18), bits(42, 16).scaled(2)]);
/// `pcaddu12i`, and the `jirl` behind it, which has more bits than are left for it.
pub(crate) const CALL30: Field =
    Field::instruction(8, &[bits(5, 20).shr(12), bits(42, 10).scaled(2)])
        .encoded(code::without_jirl_sign);
pub(crate) const JIRL: Field = instruction(&[bits(10, 10).scaled(2)]).encoded(code::jirl_sign);

const fn instruction(parts: &'static [Bits]) -> Field {
    Field::instruction(4, parts)
}

const fn bits(at: u8, width: u8) -> Bits {
    Bits::new(at, width)
}
