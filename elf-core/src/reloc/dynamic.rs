//! What dynamic loaders do: the relocations that linked files hold.

use super::apply::{SectionMut, apply};
use super::arch::Arch;
use super::error::{ApplyError, ApplyErrorKind};
use super::kind::{Kind, Special, Stage, find};
use super::query::{Query, Resolve};
use super::value::{Contents, Role, Value};
use crate::views::record::Record;

/// Applies a record of a linked file to its image, which `image` is. The record's offset is that of the place in the image. On error
/// the image is as it was.
///
/// Rows that are for loaders only ([`Kind::load`]) fill a word of the size of an address; the others are those of objects.
///
/// # Errors
/// Every [`ApplyErrorKind`]. Copies ([`Special::Copy`]), which are no words, are [`ApplyErrorKind::Dynamic`].
#[inline]
pub fn apply_dynamic<A: Arch>(
    record: &Record,
    image: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    match find(A::KINDS, record.r#type) {
        Some(kind) if kind.stage == Stage::Load => apply_load::<A>(kind, record, image, symbols),
        _ => apply::<A>(record, image, symbols),
    }
}

/// The same of a record whose type is `kind`, which is for loaders only ([`Kind::load`]).
///
/// # Errors
/// As [`apply_dynamic`]; kinds that objects have, too, are [`ApplyErrorKind::Dynamic`].
#[inline]
pub fn apply_load<A: Arch>(
    kind: &'static Kind,
    record: &Record,
    image: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    let fail = |error| ApplyError::new(record, Some(kind.name), error);
    let outside = |size: usize| fail(ApplyErrorKind::OutsideSection { size: size as u64 });
    let is_word = kind.stage == Stage::Load && kind.value != Value::ZERO;
    if !is_word || matches!(kind.special, Special::Copy) {
        return Err(fail(ApplyErrorKind::Dynamic));
    }
    let (address, big_endian, size) = (image.address, image.big_endian, image.bytes.len());
    // most of them; a machine of 32 bits is small: it has one way for all
    if cfg!(target_pointer_width = "64")
        && A::ADDRESS_SIZE == 8
        && matches!(kind.special, Special::None)
        && kind.value.is_sum()
        && let Some(word) = word::<A>(image.bytes, record.offset)
    {
        let addend = match record.addend {
            Some(addend) => addend,
            None => number(word, big_endian).cast_signed(),
        };
        let place = address.wrapping_add(record.offset);
        let query = Query { role: kind.value.of, symbol: record.symbol, place, addend, kind };
        if let Some(value) = symbols.resolve(&query) {
            let addend = if kind.value.addend { addend } else { 0 };
            store(word, value.wrapping_add_signed(addend), big_endian);
            return Ok(());
        }
    }
    let value = |formula: &Value, held: u64| {
        // the place holds what the record does not
        let addend = record.addend.unwrap_or(held.cast_signed());
        let ask = |role| match role {
            Role::Zero => Ok(0),
            role => {
                let place = address.wrapping_add(record.offset);
                let query = Query { role, symbol: record.symbol, place, addend, kind };
                symbols.resolve(&query).ok_or_else(|| fail(ApplyErrorKind::Unresolved(role)))
            }
        };
        let mut value = ask(formula.of)?;
        if formula.addend {
            value = value.wrapping_add_signed(addend);
        }
        if formula.thumb {
            let place = address.wrapping_add(record.offset);
            let query = Query { role: formula.of, symbol: record.symbol, place, addend, kind };
            value |= u64::from(symbols.attributes(&query).is_thumb);
        }
        value = value.wrapping_sub(ask(formula.minus)?);
        Ok(match formula.contents {
            Contents::Ignored => value,
            Contents::Plus => held.wrapping_add(value),
            Contents::Minus => held.wrapping_sub(value),
        })
    };
    let first = word::<A>(image.bytes, record.offset).ok_or_else(|| outside(size))?;
    let held = number(first, big_endian);
    if let Special::Descriptor { argument_first } = kind.special {
        let next = record.offset.wrapping_add(A::ADDRESS_SIZE);
        let second = word::<A>(image.bytes, next).ok_or_else(|| outside(size))?;
        let other = number(second, big_endian);
        let (before, after) = if argument_first { (other, held) } else { (held, other) };
        // what is there beside a symbol is for lazy binding (Arm), which glibc has no more
        let after = if argument_first && record.symbol != 0 { 0 } else { after };
        let function = value(&kind.value, before)?;
        let argument = value(&Value::of(Role::TlsDescArgument), after)?;
        let (one, two) = if argument_first { (argument, function) } else { (function, argument) };
        store(second, two, big_endian);
        if let Some(first) = word::<A>(image.bytes, record.offset) {
            store(first, one, big_endian);
        }
        return Ok(());
    }
    let value = value(&kind.value, held)?;
    store(first, value, big_endian);
    Ok(())
}

/// The word of an address's size at `offset`.
#[inline]
fn word<A: Arch>(bytes: &mut [u8], offset: u64) -> Option<&mut [u8]> {
    let rest = bytes.get_mut(usize::try_from(offset).ok()?..)?;
    rest.get_mut(..if A::ADDRESS_SIZE == 4 { 4 } else { 8 })
}

/// What a word holds; one of 4 bytes is signed.
#[inline]
fn number(word: &[u8], big_endian: bool) -> u64 {
    if let Some(word) = word.first_chunk::<8>() {
        return if big_endian { u64::from_be_bytes(*word) } else { u64::from_le_bytes(*word) };
    }
    let word = word.first_chunk::<4>().copied().unwrap_or_default();
    let value = if big_endian { i32::from_be_bytes(word) } else { i32::from_le_bytes(word) };
    i64::from(value).cast_unsigned()
}

/// Fills a word with the value modulo its size.
#[inline]
fn store(word: &mut [u8], value: u64, big_endian: bool) {
    if let Some(word) = word.first_chunk_mut::<8>() {
        *word = if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    } else if let Some(word) = word.first_chunk_mut::<4>() {
        let value = value as u32;
        *word = if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    }
}
