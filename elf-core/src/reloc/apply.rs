//! The one verb: value, check, bits.

use super::arch::{Arch, find_of};
use super::bits::{self, Sequence, Word};
use super::check::Check;
use super::error::{ApplyError, ApplyErrorKind};
use super::field::{Bits, Field, Order, Shape, Unencodable};
use super::kind::{Kind, Special, Stage, Uses, Usual};
use super::query::{Query, Resolve};
use super::rewrite::{GotLoad, Rewrite};
use super::shrink::Padding;
use super::value::{Contents, Page, Role, Slot, Value};
use crate::views::record::Record;
use core::marker::PhantomData;

/// A section while it is relocated: the memory written and the address computed with are two things.
#[derive(Debug)]
pub struct SectionMut<'m> {
    /// The section's bytes, wherever they are now.
    pub bytes: &'m mut [u8],
    /// The address at which the first of them is, or will be, when the code runs.
    pub address: u64,
    /// Whether data are big-endian; without the feature `big-endian` that is [not supported](ApplyErrorKind::Unsupported).
    pub big_endian: bool,
}

/// Applies `record` to `section`. On error the section is as it was.
///
/// # Errors
/// Every [`ApplyErrorKind`]: the type is unknown or not for linkers, the place is outside the section, the symbol has no such
/// value, the value does not fit; [`ApplyErrorKind::Unpaired`] if it belongs with another, which [`apply_all`](crate::apply_all) finds.
// a part of the caller's loop where there is room for code, else shared by all callers
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub fn apply<A: Arch>(
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    match find_of::<A>(record.r#type) {
        Some(Kind { special: Special::Pair(_) | Special::Second, name, .. }) => {
            Err(ApplyError::new(record, Some(name), ApplyErrorKind::Unpaired))
        }
        Some(kind) => apply_kind::<A>(kind, record, None, section, symbols),
        None => Err(ApplyError::new(record, None, ApplyErrorKind::UnknownType)),
    }
}

/// Writes instructions and relocates them. On error they may be written already.
///
/// # Errors
/// As [`apply`]; nothing is written where they do not fit the section.
// a part of every loop over records where there is room for code
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub fn apply_rewrite<A: Arch>(
    rewrite: &Rewrite,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    let start = usize::try_from(rewrite.offset).unwrap_or(usize::MAX);
    let rest = section.bytes.get_mut(start..).unwrap_or_default();
    // a word at once, if there is one, where there is room for code
    match rest.first_chunk_mut::<8>() {
        Some(word) if cfg!(target_pointer_width = "64") => {
            let kept = u64::MAX.unbounded_shl((rewrite.size as u32).wrapping_mul(8));
            *word = (u64::from_le_bytes(*word) & kept | rewrite.code & !kept).to_le_bytes();
        }
        _ => {
            let mut code = rewrite.code;
            for byte in rest.get_mut(..rewrite.size).unwrap_or_default() {
                *byte = code as u8;
                code >>= 8;
            }
        }
    }
    for record in &rewrite.records {
        let Some(record) = record else { break };
        apply::<A>(record, section, symbols)?;
    }
    Ok(())
}

/// Writes the opcode that stands for a load at the place of `record`, and relocates it. On error it may be written already.
///
/// # Errors
/// As [`apply`].
#[inline(always)]
pub fn apply_got_load<A: Arch>(
    load: &GotLoad,
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    let is_written = find_of::<A>(load.becomes)
        .and_then(|kind| usual::<A>(kind, record, section, symbols))
        .and_then(|()| place::<1>(section.bytes, record.offset.checked_sub(2)?));
    match is_written {
        Some(opcode) => *opcode = [load.opcode],
        None => apply_rewrite::<A>(&load.rewrite(record), section, symbols)?,
    }
    Ok(())
}

/// Applies `record`, whose type is `kind` and which belongs with `partner`, if with any.
///
/// # Errors
/// As [`apply`], but for [`ApplyErrorKind::UnknownType`].
// a part of every loop over records where there is room for code, else one function for all of them
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub fn apply_kind<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    partner: Option<&Record>,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    // a machine of 32 bits is small: it has one way for all
    if cfg!(target_pointer_width = "64") {
        if usual::<A>(kind, record, section, symbols).is_some() {
            return Ok(());
        }
        // the caller's may not be in memory
        let (record, partner) = (*record, partner.copied());
        if pieces::<A>(kind, &record, partner.as_ref(), section, symbols).is_some() {
            return Ok(());
        }
        return apply_any::<A>(kind, &record, partner.as_ref(), section, symbols);
    }
    apply_any::<A>(kind, record, partner, section, symbols)
}

/// Applies what most relocations are; `None` where there is an error to tell, or it is a rare one.
#[inline(always)]
fn usual<A: Arch>(
    kind: &Kind,
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Option<()> {
    if A::ADDRESS_SIZE != 8 || section.big_endian {
        return None;
    }
    let addend = record.addend?;
    let symbol = match kind.usual {
        Usual::Relative32 | Usual::Absolute64 => symbols.symbol_address(record.symbol)?,
        Usual::GotRelative32 => symbols.got_address(record.symbol)?,
        Usual::Other => return None,
    };
    let value = symbol.wrapping_add_signed(addend);
    if let Usual::Absolute64 = kind.usual {
        *place::<8>(section.bytes, record.offset)? = value.to_le_bytes();
        return Some(());
    }
    let value = value.wrapping_sub(section.address.wrapping_add(record.offset));
    let low = i32::try_from(value.cast_signed()).ok()?;
    *place::<4>(section.bytes, record.offset)? = low.to_le_bytes();
    Some(())
}

/// Applies what fills parts of an instruction by a plain formula; `None` where there is an error to tell, or it is another one.
#[inline(never)]
fn pieces<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    partner: Option<&Record>,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Option<()> {
    if A::ADDRESS_SIZE != 8 || kind.shape != Shape::Pieces {
        return None;
    }
    let value = match kind.value.of {
        Role::Partner => {
            let record = partner?;
            let kind = find_of::<A>(record.r#type).filter(|kind| kind.value.is_plain())?;
            plain_value(kind, record, record.addend?, section.address, symbols)?
        }
        _ => plain_value(kind, record, record.addend?, section.address, symbols)?,
    };
    if !kind.check.holds(value) {
        return None;
    }
    let field = &kind.field;
    match field.bytes() {
        2 => {
            let place = place::<2>(section.bytes, record.offset)?;
            *place =
                (put_all(field, u16::from_le_bytes(*place).into(), value)? as u16).to_le_bytes();
        }
        4 => {
            let place = place::<4>(section.bytes, record.offset)?;
            *place =
                (put_all(field, u32::from_le_bytes(*place).into(), value)? as u32).to_le_bytes();
        }
        _ => {
            let place = place::<8>(section.bytes, record.offset)?;
            *place = put_all(field, u64::from_le_bytes(*place), value)?.to_le_bytes();
        }
    }
    Some(())
}

/// The word with all parts of the field taken from the value; `None` where one does not take it.
#[inline]
fn put_all(field: &Field, word: u64, value: u64) -> Option<u64> {
    let mut parts = field.parts.iter();
    parts.try_fold(word, |word, bits| bits::put(bits, word, value).ok())
}

/// The value of a plain formula, whatever its size; `None` where it is not known.
#[inline]
fn plain_value(
    kind: &'static Kind,
    record: &Record,
    addend: i64,
    address: u64,
    symbols: &impl Resolve,
) -> Option<u64> {
    let Value { of, minus, .. } = kind.value;
    let place = address.wrapping_add(record.offset);
    let known = match of {
        Role::Address | Role::Plt => symbols.symbol_address(record.symbol),
        Role::Got(Slot::Address) => symbols.got_address(record.symbol),
        _ => None,
    };
    let query = || Query { role: of, symbol: record.symbol, place, addend, kind };
    let value = known.or_else(|| symbols.resolve(&query()))?.wrapping_add_signed(addend);
    Some(if let Role::Place = minus { value.wrapping_sub(place) } else { value })
}

/// Applies any record by what its row says.
// out of the loop that it is seldom reached from where there is room for code; else it has one caller
#[cfg_attr(target_pointer_width = "64", inline(never))]
#[cfg_attr(not(target_pointer_width = "64"), inline(always))]
fn apply_any<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    partner: Option<&Record>,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    // a shorter way for most of them, where there is room for code
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
    let place = Place::<A, _> {
        kind,
        record,
        partner,
        address: section.address,
        symbols,
        arch: PhantomData,
    };
    let applied = match const { Uses::of(A::KINDS).bytes } {
        ..=4 => place.apply::<u32>(section),
        5..=8 => place.apply::<u64>(section),
        _ => place.apply::<u128>(section),
    };
    applied.map_err(|error| ApplyError::new(record, Some(kind.name), error))
}

/// The value of whole words; `None` where there is an error to tell, or the formula is a rare one.
#[inline]
fn whole_value<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    addend: i64,
    address: u64,
    symbols: &impl Resolve,
) -> Option<u64> {
    // the shape says that the formula is plain
    let value = plain_value(kind, record, addend, address, symbols)?;
    let value = modulo::<A>(value, kind);
    kind.check.holds(value).then_some(value)
}

/// The value as an address of the architecture has it. One of 4 bytes is signed, but where it fills 8 of them.
#[inline]
const fn modulo<A: Arch>(value: u64, kind: &Kind) -> u64 {
    match A::ADDRESS_SIZE {
        4 if const { Uses::of(A::KINDS).whole8 } && matches!(kind.shape, Shape::Whole8) => {
            value & u32::MAX as u64
        }
        4 => (value as i32 as i64).cast_unsigned(),
        _ => value,
    }
}

/// The bytes at `offset`.
#[inline]
fn place<const N: usize>(bytes: &mut [u8], offset: u64) -> Option<&mut [u8; N]> {
    bytes.get_mut(usize::try_from(offset).ok()?..)?.first_chunk_mut::<N>()
}

/// A place and all that its value depends on, for every shape of field, form of addend and formula.
struct Place<'p, A, S> {
    kind: &'static Kind,
    record: &'p Record,
    partner: Option<&'p Record>,
    /// Of the section.
    address: u64,
    symbols: &'p S,
    arch: PhantomData<A>,
}

impl<A: Arch, S: Resolve> Place<'_, A, S> {
    const USES: Uses = Uses::of(A::KINDS);

    /// Applies the relocation to a word that fits `W`.
    // out of the loop where that is one with room for code; else it has one caller
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(always))]
    fn apply<W: Word>(&self, section: &mut SectionMut<'_>) -> Result<(), ApplyErrorKind> {
        match self.kind.stage {
            Stage::Link if section.big_endian && !cfg!(feature = "big-endian") => {
                return Err(ApplyErrorKind::Unsupported);
            }
            Stage::Link => {}
            Stage::Load => return Err(ApplyErrorKind::Dynamic),
            Stage::Unsupported => return Err(ApplyErrorKind::Unsupported),
        }
        let field = &self.kind.field;
        let size = section.bytes.len() as u64;
        if field.bytes() == 0 {
            return match self.kind.special {
                Special::Padding(padding) if Self::USES.padding => {
                    self.check_padding(&padding, size)
                }
                _ => Ok(()),
            };
        }
        let start = usize::try_from(self.record.offset).ok();
        let halves = start.and_then(|start| section.bytes.split_at_mut_checked(start));
        let is_uleb128 = Self::USES.uleb128 && field.is_uleb128;
        let length = |rest: &[u8]| if is_uleb128 { length(rest) } else { field.bytes() };
        let found = halves.and_then(|(before, rest)| {
            let length = length(rest);
            rest.get_mut(..length).map(|place| (&*before, place))
        });
        let Some((before, place)) = found else {
            return Err(ApplyErrorKind::OutsideSection { size });
        };
        let order = match Sequence::of(field.order, section.big_endian) {
            Sequence::LittleHalves if !Self::USES.halfwords => Sequence::Little,
            order => order,
        };
        let mut word = match is_uleb128 {
            true => W::of(uleb128(place)),
            false => W::load(place, order),
        };
        let formula = match self.kind.select {
            Some(select) if Self::USES.select => select(before),
            _ => self.kind.value,
        };
        let addend = self.addend(field, &formula, word)?;
        let value = self.value(&formula, addend, word)?;
        if is_uleb128 {
            return self.store_uleb128(place, value);
        }
        for bits in field.parts {
            let role = bits.role.filter(|_| Self::USES.roles);
            let part = match role {
                None => value,
                Some(role) => self.ask(role, addend).map_err(unanswered)?,
            };
            let rounded = bits.rounded && Self::USES.rounded;
            word = bits::put(&Bits { role, rounded, ..*bits }, word, part)?;
        }
        if Self::USES.coded
            && let Some(encode) = field.encode
        {
            let encoded = encode(word.low(0), value.cast_signed(), field.argument);
            word = W::of(encoded.map_err(|error| unencodable(error, value))?);
        }
        if Self::USES.branches
            && let Some(branch) = self.kind.branch
        {
            let target = self.symbols.attributes(&self.query(formula.of, addend));
            let encoded = branch(word.low(0), value.cast_signed(), target);
            word = W::of(encoded.map_err(|error| unencodable(error, value))?);
        }
        word.store(place, order);
        Ok(())
    }

    /// Stores a number of variable length, whose bytes are `place`: it keeps its length.
    fn store_uleb128(&self, place: &mut [u8], value: u64) -> Result<(), ApplyErrorKind> {
        // a sum is complete only with the relocations that follow, and so is computed modulo what fits, at most 64 bits
        let is_sum = Self::USES.contents && self.kind.value.contents != Contents::Ignored;
        let check = Check::Unsigned(u8::try_from(place.len()).unwrap_or(u8::MAX).saturating_mul(7));
        if !is_sum && !check.holds(value) {
            return Err(ApplyErrorKind::Overflow { value, check });
        }
        let (mut rest, mut known) = (value, u64::MAX);
        for byte in place {
            let mask = known as u8 & 0x7f;
            *byte = *byte & !mask | rest as u8 & mask;
            rest >>= 7;
            known = if is_sum { known >> 7 } else { known };
        }
        Ok(())
    }

    /// Whether the padding, of which all stays, ends where what is behind it shall be.
    fn check_padding(&self, padding: &Padding, size: u64) -> Result<(), ApplyErrorKind> {
        let wanted = (padding.alignment)(self.record);
        let end = self.record.offset.checked_add(wanted.padding).filter(|end| *end <= size);
        let Some(end) = end else {
            return Err(ApplyErrorKind::OutsideSection { size });
        };
        let value = self.address.wrapping_add(end);
        if wanted.is_met_by_all(value) {
            return Ok(());
        }
        Err(ApplyErrorKind::Misaligned { value, alignment: wanted.alignment })
    }

    /// A: the record's, or what the place holds unless that is V.
    fn addend(
        &self,
        field: &Field,
        formula: &Value,
        word: impl Word,
    ) -> Result<i64, ApplyErrorKind> {
        match (self.record.addend, formula.contents) {
            (Some(addend), _) => Ok(addend),
            (None, Contents::Ignored) => {
                // a number of variable length has no parts
                if !Self::USES.coded {
                    return Ok(bits::held(field, word));
                }
                bits::addend(field, word).ok_or(ApplyErrorKind::Sequence)
            }
            (None, _) => Ok(0),
        }
    }

    /// The value of the formula for a place that holds `word`, checked.
    fn value(&self, formula: &Value, addend: i64, word: impl Word) -> Result<u64, ApplyErrorKind> {
        let mut value = self.unchecked(formula, addend).map_err(unanswered)?;
        let contents = match formula.contents {
            Contents::Ignored => None,
            _ if !Self::USES.contents => None,
            _ if self.kind.field.is_uleb128 => Some(word.low(0)),
            _ => Some(bits::held(&self.kind.field, word).cast_unsigned()),
        };
        if let Some(contents) = contents {
            value = match formula.contents {
                Contents::Minus => contents.wrapping_sub(value),
                _ => contents.wrapping_add(value),
            };
        }
        if contents.is_none() {
            value = modulo::<A>(value, self.kind);
        }
        let check = self.kind.check.modulo(A::ADDRESS_SIZE);
        if check.holds(value) { Ok(value) } else { Err(ApplyErrorKind::Overflow { value, check }) }
    }

    /// The value of the formula without V.
    fn unchecked(&self, formula: &Value, addend: i64) -> Result<u64, Role> {
        let mut value = self.ask(formula.of, addend)?;
        if formula.addend {
            value = value.wrapping_add_signed(addend);
        }
        if Self::USES.thumb && formula.thumb {
            let query = self.query(formula.of, addend);
            value |= u64::from(self.symbols.attributes(&query).is_thumb);
        }
        let minus = self.ask(formula.minus, addend)?;
        let page = |value: u64| value & !0xfff;
        let is_used = |page: Page| Self::USES.pages & page.bit() != 0;
        Ok(match formula.page {
            Page::Minus if is_used(Page::Minus) => value.wrapping_sub(page(minus)),
            Page::MinusWord if is_used(Page::MinusWord) => value.wrapping_sub(minus & !3),
            Page::Both if is_used(Page::Both) => page(value).wrapping_sub(page(minus)),
            Page::Nearest if is_used(Page::Nearest) => {
                page(value.wrapping_add(0x800)).wrapping_sub(page(minus))
            }
            Page::Upper { back } if is_used(Page::Upper { back: 0 }) => {
                let from = page(minus.wrapping_sub(back.into()));
                let lower = page(value.wrapping_add(0x800)).wrapping_sub(from);
                lower.wrapping_add(1 << 31).wrapping_sub((value & 0x800) << 21)
            }
            _ => value.wrapping_sub(minus),
        })
    }

    /// What the symbol, the place or the partner has for a role.
    fn ask(&self, role: Role, addend: i64) -> Result<u64, Role> {
        match role {
            Role::Zero => Ok(0),
            Role::Place => Ok(self.address.wrapping_add(self.record.offset)),
            Role::Partner if Self::USES.partners => self.ask_partner(),
            role => self.symbols.resolve(&self.query(role, addend)).ok_or(role),
        }
    }

    /// The value of the partner, which has none itself.
    fn ask_partner(&self) -> Result<u64, Role> {
        let unpaired = Role::Partner;
        let record = self.partner.ok_or(unpaired)?;
        let kind = find_of::<A>(record.r#type).ok_or(unpaired)?;
        let addend = record.addend.ok_or(unpaired)?;
        let Self { address, symbols, arch, .. } = *self;
        let partner = Place::<A, S> { kind, record, partner: None, address, symbols, arch };
        partner.unchecked(&kind.value, addend)
    }

    fn query(&self, role: Role, addend: i64) -> Query {
        let place = self.address.wrapping_add(self.record.offset);
        Query { role, symbol: self.record.symbol, place, addend, kind: self.kind }
    }
}

/// Nobody has an answer for a role: what is asked for by that name only, an error being much to move.
#[cold]
const fn unanswered(role: Role) -> ApplyErrorKind {
    match role {
        Role::Partner => ApplyErrorKind::Unpaired,
        role => ApplyErrorKind::Unresolved(role),
    }
}

#[cold]
fn unencodable(error: Unencodable, value: u64) -> ApplyErrorKind {
    match error {
        Unencodable::Value => ApplyErrorKind::Unencodable { value },
        Unencodable::Instruction => ApplyErrorKind::Sequence,
    }
}

/// The number of variable length whose bytes these are.
fn uleb128(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// Bytes of the number of variable length that `bytes` begin with; more than they are if it does not end.
fn length(bytes: &[u8]) -> usize {
    // `position` would check its count for overflow, and panic
    let mut length = 0usize;
    for byte in bytes.iter().take(10) {
        length = length.wrapping_add(1);
        if byte & 0x80 == 0 {
            return length;
        }
    }
    usize::MAX
}
