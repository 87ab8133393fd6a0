//! The one verb: value, check, bits.

use crate::bits::{self, Word};
use crate::record::Record;
use crate::reloc::{Arch, Check, Kind, Order, Page, Role, Shape, Stage, Value, find};
use crate::relocations::Relocations;
use core::fmt;

/// A section while it is relocated: the memory written and the address computed with are two things.
#[derive(Debug)]
pub struct SectionMut<'m> {
    /// The section's bytes, wherever they are now.
    pub bytes: &'m mut [u8],
    /// The address at which the first of them is, or will be, when the code runs.
    pub address: u64,
    /// Whether data are big-endian.
    pub big_endian: bool,
}

/// What is asked of a symbol, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// What to answer.
    pub role: Role,
    /// Index of the symbol in the table that the relocation section links to.
    pub symbol: u32,
    /// P: the address of the place.
    pub place: u64,
    /// A: the addend.
    pub addend: i64,
    /// The kind of relocation that asks.
    pub kind: &'static Kind,
}

/// What is known of symbols: by a layout, by an executor, by a test.
pub trait Resolve {
    /// The value asked for, or `None` if it cannot be known.
    fn resolve(&self, query: &Query) -> Option<u64>;
}

impl<F: Fn(&Query) -> Option<u64>> Resolve for F {
    fn resolve(&self, query: &Query) -> Option<u64> {
        self(query)
    }
}

/// Why a relocation was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplyError {
    /// `r_offset`: bytes from the start of the section.
    pub offset: u64,
    /// `r_type`.
    pub r#type: u32,
    /// Name of the type, if there is such a type.
    pub name: Option<&'static str>,
    /// Index of the symbol.
    pub symbol: u32,
    /// What went wrong.
    pub kind: ApplyErrorKind,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyErrorKind {
    /// The architecture has no type of this number.
    UnknownType,
    /// The type is one that only a dynamic loader resolves.
    Dynamic,
    /// The type is known, and not supported.
    Unsupported,
    /// The place is not inside the section of so many bytes.
    OutsideSection {
        /// Size of the section.
        size: u64,
    },
    /// Nobody knows this of the symbol.
    Unresolved(Role),
    /// The value is outside the type's limits.
    Overflow {
        /// The value, modulo 2^64.
        value: u64,
        /// The limits.
        check: Check,
    },
    /// The instructions are not those that the ABI wants at such a place, and so were not rewritten.
    Sequence,
    /// The value is no multiple of the alignment that the instruction needs.
    Misaligned {
        /// The value, modulo 2^64.
        value: u64,
        /// The alignment in bytes.
        alignment: u64,
    },
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{name}")?,
            None => write!(f, "relocation type {}", self.r#type)?,
        }
        write!(f, " at offset {:#x}: ", self.offset)?;
        match self.kind {
            ApplyErrorKind::UnknownType => write!(f, "unknown type"),
            ApplyErrorKind::Dynamic => write!(f, "only a dynamic loader resolves this type"),
            ApplyErrorKind::Unsupported => write!(f, "this type is not supported"),
            ApplyErrorKind::OutsideSection { size } => {
                write!(f, "outside the section of {size:#x} bytes")
            }
            ApplyErrorKind::Unresolved(role) => write!(f, "no {role} for symbol {}", self.symbol),
            ApplyErrorKind::Overflow { value, check } => {
                // every limit is one of these, and they take less code to show than 128 bits
                let (least, most) = check.limits();
                let (least, most) = (least as i64, most as u64);
                let value = value.cast_signed();
                write!(f, "value {} ({value:#x}) is not in {least}..={most}", Shown(value, check))
            }
            ApplyErrorKind::Sequence => {
                write!(f, "the instructions are not those that the ABI has for it")
            }
            ApplyErrorKind::Misaligned { value, alignment } => {
                write!(f, "value {value:#x} is no multiple of {alignment}")
            }
        }
    }
}

/// A value as its check sees it: negative only where negative values are allowed.
struct Shown(i64, Check);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Check::Unsigned(_) => fmt::Display::fmt(&self.0.cast_unsigned(), f),
            _ => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl core::error::Error for ApplyError {}

/// Applies `record` to `section`. On error the section is as it was.
///
/// # Errors
/// Every [`ApplyErrorKind`]: the type is unknown or not for linkers, the place is outside the section, the symbol has no such
/// value, the value does not fit.
#[inline]
pub fn apply<A: Arch>(
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    match find(A::KINDS, record.r#type) {
        Some(kind) => apply_kind::<A>(kind, record, section, symbols),
        None => Err(fail(record, None, ApplyErrorKind::UnknownType)),
    }
}

/// Applies `records` to `section`, one after the other, up to the first that fails: what came before it is done.
///
/// # Errors
/// As [`apply`].
pub fn apply_all<A: Arch>(
    records: Relocations<'_>,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    let Some(mut kind) = A::KINDS.first() else { return Ok(()) };
    let apply = |record: Record| {
        // neighbours are often alike
        if kind.number != record.r#type {
            kind = match find(A::KINDS, record.r#type) {
                Some(kind) => kind,
                None => return Err(fail(&record, None, ApplyErrorKind::UnknownType)),
            };
        }
        apply_kind::<A>(kind, &record, section, symbols)
    };
    records.try_for_each(apply)
}

/// Applies `record`, whose type is `kind`.
///
/// # Errors
/// As [`apply`], but for [`ApplyErrorKind::UnknownType`].
#[inline(always)]
pub fn apply_kind<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    // a machine of 32 bits is small: it has one way for all
    if cfg!(target_pointer_width = "64")
        && let Some(addend) = record.addend
        && matches!(kind.shape, Shape::Whole4 | Shape::Whole8)
        && let Some(value) = whole_value::<A>(kind, record, addend, section.address, symbols)
    {
        let big = section.big_endian && kind.field.order == Order::Data;
        let value = if big { value.swap_bytes() } else { value };
        if kind.shape == Shape::Whole8 {
            if let Some(place) = place::<8>(section.bytes, record.offset) {
                *place = value.to_le_bytes();
                return Ok(());
            }
        } else if let Some(place) = place::<4>(section.bytes, record.offset) {
            let low = if big { value >> 32 } else { value };
            *place = (low as u32).to_le_bytes();
            return Ok(());
        }
    }
    apply_parts::<A>(kind, record, section, symbols)
}

/// The value of most relocations; `None` where there is an error to tell, or the formula is a rare one.
#[inline(always)]
fn whole_value<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    addend: i64,
    address: u64,
    symbols: &impl Resolve,
) -> Option<u64> {
    let Value { of, addend: true, minus, page: Page::Neither } = kind.value else { return None };
    let place = address.wrapping_add(record.offset);
    let query = Query { role: of, symbol: record.symbol, place, addend, kind };
    let value = symbols.resolve(&query)?.wrapping_add_signed(addend);
    let value = match minus {
        Role::Zero => value,
        Role::Place => value.wrapping_sub(place),
        _ => return None,
    };
    let value = if A::ADDRESS_SIZE == 4 { i64::from(value as i32).cast_unsigned() } else { value };
    kind.check.holds(value).then_some(value)
}

/// The bytes at `offset`.
#[inline]
fn place<const N: usize>(bytes: &mut [u8], offset: u64) -> Option<&mut [u8; N]> {
    bytes.get_mut(usize::try_from(offset).ok()?..)?.first_chunk_mut::<N>()
}

/// The same for every shape of field, form of addend and formula.
fn apply_parts<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    if const { bits::is_wide(A::KINDS) } {
        apply_word::<A, u128>(kind, record, section, symbols)
    } else {
        apply_word::<A, u64>(kind, record, section, symbols)
    }
}

/// The same for an architecture whose words fit `W`.
#[inline(never)]
fn apply_word<A: Arch, W: Word>(
    kind: &'static Kind,
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    let fail = |error| fail(record, Some(kind), error);
    match kind.stage {
        Stage::Link => {}
        Stage::Load => return Err(fail(ApplyErrorKind::Dynamic)),
        Stage::Unsupported => return Err(fail(ApplyErrorKind::Unsupported)),
    }
    let field = &kind.field;
    if field.bytes == 0 {
        return Ok(());
    }
    let address = section.address;
    let size = section.bytes.len() as u64;
    let start = usize::try_from(record.offset).ok();
    let halves = start.and_then(|start| section.bytes.split_at_mut_checked(start));
    let found = halves
        .and_then(|(before, rest)| rest.get_mut(..field.bytes).map(|place| (&*before, place)));
    let Some((before, place)) = found else {
        return Err(fail(ApplyErrorKind::OutsideSection { size }));
    };
    let big = section.big_endian && field.order == Order::Data;

    let mut word = W::load(place, big);
    let addend = record.addend.unwrap_or_else(|| bits::addend(field, word));
    let formula = match kind.select {
        None => kind.value,
        Some(select) => select(before),
    };
    let value = value::<A>(kind, &formula, record, addend, address, symbols)?;
    for bits in field.parts {
        let part = match bits.role {
            None => value,
            Some(role) => {
                ask(role, kind, record, addend, address.wrapping_add(record.offset), symbols)?
            }
        };
        word = bits::put(bits, word, part).map_err(fail)?;
    }
    if let Some(encode) = field.encode {
        word = W::from(encode(word.low(0), value.cast_signed()));
    }
    word.store(place, big);
    Ok(())
}

/// The value of a formula, checked.
fn value<A: Arch>(
    kind: &'static Kind,
    formula: &Value,
    record: &Record,
    addend: i64,
    address: u64,
    symbols: &impl Resolve,
) -> Result<u64, ApplyError> {
    let place = address.wrapping_add(record.offset);
    let mut value = ask(formula.of, kind, record, addend, place, symbols)?;
    if formula.addend {
        value = value.wrapping_add_signed(addend);
    }
    let minus = match formula.minus {
        Role::Zero => 0,
        Role::Place => place,
        role => ask(role, kind, record, addend, place, symbols)?,
    };
    let page = |value: u64| value & !0xfff;
    value = match formula.page {
        Page::Neither => value.wrapping_sub(minus),
        Page::Minus => value.wrapping_sub(page(minus)),
        Page::Both => page(value).wrapping_sub(page(minus)),
    };
    if A::ADDRESS_SIZE == 4 {
        value = i64::from(value as i32).cast_unsigned();
    }
    if kind.check.holds(value) {
        Ok(value)
    } else {
        Err(fail(record, Some(kind), ApplyErrorKind::Overflow { value, check: kind.check }))
    }
}

/// What the symbol, or the place, has for a role.
fn ask(
    role: Role,
    kind: &'static Kind,
    record: &Record,
    addend: i64,
    place: u64,
    symbols: &impl Resolve,
) -> Result<u64, ApplyError> {
    match role {
        Role::Zero => Ok(0),
        Role::Place => Ok(place),
        role => {
            let query = Query { role, symbol: record.symbol, place, addend, kind };
            symbols
                .resolve(&query)
                .ok_or_else(|| fail(record, Some(kind), ApplyErrorKind::Unresolved(role)))
        }
    }
}

#[cold]
fn fail(record: &Record, kind: Option<&Kind>, error: ApplyErrorKind) -> ApplyError {
    let Record { offset, symbol, r#type, .. } = *record;
    ApplyError { offset, r#type, name: kind.map(|kind| kind.name), symbol, kind: error }
}
