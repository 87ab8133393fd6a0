//! The words of relocation: a kind is one row of a table, an architecture is a table.
//!
//! The letters are those of the psABIs: S the symbol's address, A the addend, P the place, L a stub that jumps to S (PLT entry,
//! veneer), G a GOT entry, GOT the base of the GOT, Z the symbol's size.

use crate::apply::Query;
use crate::relax::{Reach, Rewrite, Site};
use crate::tls::Tls;
use core::fmt;

/// One kind of relocation: everything that [`apply`](crate::apply) needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// `r_type`.
    pub number: u32,
    /// The ABI's name.
    pub name: &'static str,
    /// What is computed.
    pub value: Value,
    /// Which values are allowed.
    pub check: Check,
    /// The bits that take it.
    pub field: Field,
    /// For the few whose formula depends on the instruction: the formula, by the bytes before the place.
    pub select: Option<fn(before: &[u8]) -> Value>,
    /// Who resolves it.
    pub stage: Stage,
    /// What the field is like, found out once.
    pub(crate) shape: Shape,
}

impl Kind {
    /// A row: number, name, formula, check, field.
    #[must_use]
    pub const fn new(
        number: u32,
        name: &'static str,
        value: Value,
        check: Check,
        field: Field,
    ) -> Self {
        Self {
            number,
            name,
            value,
            check,
            field,
            select: None,
            stage: Stage::Link,
            shape: match value.of {
                // nothing is asked of the symbol, as the short way does
                Role::Zero | Role::Place => field.shape().in_parts(),
                _ => field.shape(),
            },
        }
    }

    /// A row that says nothing but its name: no bits change.
    #[must_use]
    pub const fn marker(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Value::ZERO, Check::Any, Field::NONE)
    }

    /// A row of a kind that only a dynamic loader resolves; [`apply`](crate::apply) refuses it by name.
    #[must_use]
    pub const fn dynamic(number: u32, name: &'static str) -> Self {
        let row = Self::marker(number, name);
        Self { stage: Stage::Load, ..row }
    }

    /// A row of a kind that is known and not supported; [`apply`](crate::apply) refuses it by name.
    #[must_use]
    pub const fn unsupported(number: u32, name: &'static str) -> Self {
        let row = Self::marker(number, name);
        Self { stage: Stage::Unsupported, ..row }
    }

    /// The same with a formula that the instruction decides.
    #[must_use]
    pub const fn select(self, select: fn(before: &[u8]) -> Value) -> Self {
        Self { select: Some(select), shape: Shape::Parts, ..self }
    }
}

/// When a relocation is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// By a linker: what objects contain and hoist applies.
    Link,
    /// By a dynamic loader: what objects do not contain.
    Load,
    /// By nobody here.
    Unsupported,
}

/// A formula, `of + A - minus`, each side rounded down to 4 KiB as `page` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// What is asked of the symbol.
    pub of: Role,
    /// Whether the addend is added.
    pub addend: bool,
    /// What is subtracted.
    pub minus: Role,
    /// Which sides are rounded to pages.
    pub page: Page,
}

impl Value {
    /// 0.
    pub const ZERO: Self = Self::of(Role::Zero);

    /// Just this role, without addend.
    #[must_use]
    pub const fn of(of: Role) -> Self {
        Self { of, addend: false, minus: Role::Zero, page: Page::Neither }
    }

    /// ... + A.
    #[must_use]
    pub const fn plus_a(self) -> Self {
        Self { addend: true, ..self }
    }

    /// ... - `minus`.
    #[must_use]
    pub const fn minus(self, minus: Role) -> Self {
        Self { minus, ..self }
    }

    /// Page(...) - Page(`minus`).
    #[must_use]
    pub const fn by_page(self) -> Self {
        Self { page: Page::Both, ..self }
    }

    /// ... - Page(`minus`).
    #[must_use]
    pub const fn minus_page(self) -> Self {
        Self { page: Page::Minus, ..self }
    }
}

/// Which sides of a formula are rounded down to 4 KiB (`Page(x)` of AAELF64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// None.
    Neither,
    /// Only what is subtracted.
    Minus,
    /// Both.
    Both,
}

/// What a symbol is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Nothing: 0.
    Zero,
    /// P: the address of the place.
    Place,
    /// S: the symbol's address.
    Address,
    /// L: where a branch to the symbol goes: a stub where S may be out of reach, else S.
    Plt,
    /// G + GOT: the address of the symbol's GOT entry of this content.
    Got(Slot),
    /// GOT: the base of the GOT.
    GotBase,
    /// Z: the symbol's size in bytes.
    Size,
    /// The symbol's offset from the thread pointer.
    TpOffset,
    /// The symbol's offset in its module's block of thread-local storage.
    DtpOffset,
    /// On a GPU: the symbol's generic address.
    Generic,
    /// On a GPU: the address in unified memory.
    Unified,
    /// On a GPU: the function's descriptor.
    Descriptor,
    /// On a GPU: the number of the constant bank that holds the symbol.
    Bank,
    /// On a GPU: the slot of a texture, sampler or surface.
    TextureSlot,
    /// On a GPU: the index of a texture, sampler or surface header.
    HeaderIndex,
    /// On a GPU: a surface's hardware descriptor.
    SurfaceDescriptor,
    /// On a GPU: an instruction that the loader chooses.
    Instruction,
}

/// What a GOT entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// S, in one entry.
    Address,
    /// The symbol's offset from the thread pointer, in one entry.
    TpOffset,
    /// Module and offset, in two entries: general dynamic.
    TlsGd,
    /// Module and 0, in two entries, one pair for all symbols: local dynamic.
    TlsLd,
    /// A TLS descriptor, in two entries.
    TlsDesc,
}

impl Slot {
    /// Number of address-sized GOT entries.
    #[must_use]
    pub const fn entries(self) -> u64 {
        match self {
            Self::Address | Self::TpOffset => 1,
            Self::TlsGd | Self::TlsLd | Self::TlsDesc => 2,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zero => "value",
            Self::Place => "place",
            Self::Address => "address",
            Self::Plt => "branch target",
            Self::Got(Slot::Address) => "GOT entry",
            Self::Got(Slot::TpOffset) => "GOT entry of the thread pointer offset",
            Self::Got(Slot::TlsGd) => "GOT entries of module and offset",
            Self::Got(Slot::TlsLd) => "GOT entries of the module",
            Self::Got(Slot::TlsDesc) => "TLS descriptor",
            Self::GotBase => "GOT base",
            Self::Size => "size",
            Self::TpOffset => "thread pointer offset",
            Self::DtpOffset => "offset in the TLS block",
            Self::Generic => "generic address",
            Self::Unified => "unified address",
            Self::Descriptor => "function descriptor",
            Self::Bank => "constant bank",
            Self::TextureSlot => "texture slot",
            Self::HeaderIndex => "header index",
            Self::SurfaceDescriptor => "surface descriptor",
            Self::Instruction => "instruction",
        })
    }
}

/// Which values a field may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// All: what does not fit is cut off, as the ABI wants it.
    Any,
    /// Those of a signed integer of so many bits.
    Signed(u32),
    /// Those of an unsigned integer of so many bits.
    Unsigned(u32),
    /// Those of either: `-2^(n-1) <= X < 2^n`.
    Either(u32),
}

impl Check {
    /// Whether `value`, an address or a difference modulo 2^64, is allowed.
    #[must_use]
    #[inline]
    pub const fn holds(self, value: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Signed(bits) => Self::signed(value, bits),
            Self::Unsigned(bits) => Self::unsigned(value, bits),
            Self::Either(bits) => Self::signed(value, bits) || Self::unsigned(value, bits),
        }
    }

    const fn signed(value: u64, bits: u32) -> bool {
        // the value and its sign have all bits from the sign bit up alike
        let shift = bits.saturating_sub(1);
        let high = (value as i64).unbounded_shr(shift);
        high == 0 || high == -1
    }

    const fn unsigned(value: u64, bits: u32) -> bool {
        value.unbounded_shr(bits) == 0
    }

    /// The least and the greatest value allowed.
    #[must_use]
    pub const fn limits(self) -> (i128, i128) {
        const fn power(bits: u32) -> i128 {
            1i128.unbounded_shl(bits)
        }
        match self {
            Self::Any => (i64::MIN as i128, u64::MAX as i128),
            Self::Signed(bits) => {
                let half = power(bits.saturating_sub(1));
                (half.wrapping_neg(), half.wrapping_sub(1))
            }
            Self::Unsigned(bits) => (0, power(bits).wrapping_sub(1)),
            Self::Either(bits) => {
                (power(bits.saturating_sub(1)).wrapping_neg(), power(bits).wrapping_sub(1))
            }
        }
    }
}

/// Parts of a word of 0, 1, 2, 4, 8 or 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Size of the word; 0 changes nothing.
    pub bytes: usize,
    /// The bits that take the value.
    pub parts: &'static [Bits],
    /// Whose byte order the word has.
    pub order: Order,
    /// For the few that also change the opcode: the word with its parts filled, and the value, make the word.
    pub encode: Option<fn(word: u64, value: i64) -> u64>,
}

/// How a word is written: most are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Not at all.
    Nothing,
    /// The value is the four bytes.
    Whole4,
    /// The value is the eight bytes.
    Whole8,
    /// Piece by piece.
    Parts,
}

impl Shape {
    /// The same, but never whole.
    const fn in_parts(self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            _ => Self::Parts,
        }
    }
}

/// Whose byte order a word has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That of the file.
    Data,
    /// Little-endian: instructions.
    Little,
}

impl Field {
    /// No bits at all.
    pub const NONE: Self = Self { bytes: 0, parts: &[], order: Order::Data, encode: None };
    /// A byte.
    pub const DATA8: Self = Self::data(1, &[Bits::new(0, 8)]);
    /// Two bytes.
    pub const DATA16: Self = Self::data(2, &[Bits::new(0, 16)]);
    /// Four bytes.
    pub const DATA32: Self = Self::data(4, &[Bits::new(0, 32)]);
    /// Eight bytes.
    pub const DATA64: Self = Self::data(8, &[Bits::new(0, 64)]);

    /// A word of `bytes` bytes in the file's byte order.
    #[must_use]
    pub const fn data(bytes: usize, parts: &'static [Bits]) -> Self {
        Self { bytes, parts, order: Order::Data, encode: None }
    }

    /// An instruction of `bytes` bytes, little-endian.
    #[must_use]
    pub const fn instruction(bytes: usize, parts: &'static [Bits]) -> Self {
        Self { bytes, parts, order: Order::Little, encode: None }
    }

    /// The same with an encoder.
    #[must_use]
    pub const fn encoded(self, encode: fn(word: u64, value: i64) -> u64) -> Self {
        Self { encode: Some(encode), ..self }
    }

    /// Whether the field is the whole word and takes the value as it is.
    const fn is_whole(&self) -> bool {
        match self.parts {
            [Bits { at: 0, shift: 0, role: None, width, .. }] => {
                *width as usize == self.bytes.saturating_mul(8) && self.encode.is_none()
            }
            _ => false,
        }
    }

    /// How the word is written.
    pub(crate) const fn shape(&self) -> Shape {
        match self.bytes {
            0 => Shape::Nothing,
            4 if self.is_whole() => Shape::Whole4,
            8 if self.is_whole() => Shape::Whole8,
            _ => Shape::Parts,
        }
    }
}

/// Bits `at..at + width` of a word take `value >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Lowest bit.
    pub at: u32,
    /// Number of bits.
    pub width: u32,
    /// Bits of the value that are dropped below.
    pub shift: u32,
    /// Whether the dropped bits must be 0.
    pub exact: bool,
    /// Takes the value of this role instead, which must fit.
    pub role: Option<Role>,
}

impl Bits {
    /// `width` bits at bit `at`.
    #[must_use]
    pub const fn new(at: u32, width: u32) -> Self {
        Self { at, width, shift: 0, exact: false, role: None }
    }

    /// They take the value from bit `shift` on, whatever is below.
    #[must_use]
    pub const fn shr(self, shift: u32) -> Self {
        Self { shift, ..self }
    }

    /// They take the value from bit `shift` on; the bits below must be 0.
    #[must_use]
    pub const fn scaled(self, shift: u32) -> Self {
        Self { shift, exact: true, ..self }
    }

    /// They take the value of `role`.
    #[must_use]
    pub const fn of(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }
}

/// An architecture: its relocation kinds and what a linker adds on its behalf.
pub trait Arch {
    /// `e_machine`.
    const MACHINE: u16;
    /// Size of an address and of a GOT entry in bytes: 4 or 8. Values are computed modulo that size.
    const ADDRESS_SIZE: u64;
    /// All kinds, by rising number.
    const KINDS: &'static [Kind];
    /// Code that jumps to a symbol through its GOT entry, if the architecture needs any.
    const STUB: Option<Stub>;
    /// Thread-local storage, if the architecture has any.
    const TLS: Option<Tls> = None;
    /// Whether the GOT entry of a symbol may be done without only if nobody uses it any more: what is loaded for one use may serve
    /// another that does not say so.
    const RELAXES_ALL_OR_NONE: bool = false;

    /// What a relocation that counts from its place takes for the address of a weak symbol that nobody defines: 0 unless the ABI says
    /// otherwise.
    #[must_use]
    fn undefined_weak(query: &Query) -> Option<u64> {
        let _ = query;
        None
    }

    /// Simpler instructions that do the same without a GOT entry, where the ABI allows it and there are any.
    #[must_use]
    fn relax(site: &Site<'_>, reach: Reach) -> Option<Rewrite> {
        let _ = (site, reach);
        None
    }
}

/// Code that a linker adds: a PLT entry or veneer.
#[derive(Clone, Copy, Debug)]
pub struct Stub {
    /// The instructions.
    pub code: &'static [u8],
    /// Their alignment in bytes.
    pub alignment: u64,
    /// Offset in the code, type and addend of the relocations against the symbol.
    pub relocations: &'static [(u64, u32, i64)],
    /// How far branches reach that may go by way of the code, in bytes either way; `None` where that is as far as the code's own
    /// distance to the GOT.
    pub reach: Option<u64>,
}

/// The row of this number.
#[must_use]
#[inline]
pub fn find(kinds: &'static [Kind], number: u32) -> Option<&'static Kind> {
    // dense tables hold most numbers at their own index
    let direct = usize::try_from(number).ok().and_then(|index| kinds.get(index));
    if let Some(kind) = direct.filter(|kind| kind.number == number) {
        return Some(kind);
    }
    kinds.binary_search_by_key(&number, |kind| kind.number).ok().and_then(|index| kinds.get(index))
}

/// Whether a table is right in itself: numbers rise, words have a size that exists, parts lie inside their word and apart.
#[must_use]
pub const fn well_formed(kinds: &[Kind]) -> bool {
    let mut rest = kinds;
    let mut least = 0;
    while let [kind, tail @ ..] = rest {
        if (kind.number as u64) < least || !field_well_formed(&kind.field) {
            return false;
        }
        least = kind.number as u64 + 1;
        rest = tail;
    }
    true
}

const fn field_well_formed(field: &Field) -> bool {
    if !matches!(field.bytes, 0 | 1 | 2 | 4 | 8 | 16) || (field.encode.is_some() && field.bytes > 8)
    {
        return false;
    }
    let mut rest = field.parts;
    let mut used = 0u128;
    while let [bits, tail @ ..] = rest {
        if bits.width == 0
            || bits.width > 64
            || bits.at.saturating_add(bits.width) > field.bytes as u32 * 8
        {
            return false;
        }
        let mask = (bits.mask() as u128).unbounded_shl(bits.at);
        if used & mask != 0 {
            return false;
        }
        used |= mask;
        rest = tail;
    }
    true
}
