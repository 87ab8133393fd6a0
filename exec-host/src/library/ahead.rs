//! What relocations of symbols store, found before anything is written.

use super::definition::Definition;
use super::later::Later;
use super::resolve::Resolver;
use crate::Host;
use crate::machine;
use crate::mapped_image::open_words;
use core::ops::Range;
use elf_core::{Arch as _, Kind, Query, Record, Relocations, Resolve as _, Role, Value, find};
use elf_image::Image;

/// A word of an image: its offset there, in bytes, and what it is to hold.
pub(crate) type Word = (u64, u64);

/// What a kind of relocation asks for.
#[derive(Clone, Copy)]
enum Asked {
    /// The address of a symbol, to which the addend is added or not.
    Symbol { plus_addend: bool },
    /// B + A.
    Relative,
    /// Something else, which may be for later.
    Other,
}

impl Asked {
    fn by(kind: &Kind) -> Self {
        let number = kind.number.into();
        if number == machine::JUMP_SLOT || machine::ADDRESSES.contains(&number) {
            Self::Symbol { plus_addend: kind.value.addend }
        } else if kind.value == Value::of(Role::Base).plus_a() {
            Self::Relative
        } else {
            Self::Other
        }
    }
}

/// The words that all relocations fill but those for `later` and so many relative ones at the start of their table, in order. `None` if there
/// are others than such that have addends and fill words at places that are `open`, or one fails.
pub(super) fn words(
    image: &Image<'_>,
    resolver: &Resolver<'_, '_>,
    (bias, mut done): (u64, usize),
    open: Option<&[Range<u64>]>,
    later: &mut Later,
) -> Option<Vec<Word>> {
    if Host::ADDRESS_SIZE != 8 {
        return None;
    }
    let (start, open) = (image.start(), open_words(open));
    let mut words = Vec::new();
    let mut last: Option<(&'static Kind, Asked)> = None;
    for table in image.relocations() {
        let Ok(Relocations::Rela(rows)) = table else { return None };
        // the first table is that of `DT_RELA`
        let rows = rows.slice(core::mem::take(&mut done), rows.len())?;
        words.reserve_exact(rows.len());
        let each = |record: Record| {
            let (kind, asked) = match last {
                Some(last) if last.0.number == record.r#type => last,
                _ => {
                    let kind = find(Host::KINDS, record.r#type).ok_or(())?;
                    *last.insert((kind, Asked::by(kind)))
                }
            };
            let place = record.offset.wrapping_sub(start);
            let in_image = Record { offset: place, ..record };
            let addend = record.addend.ok_or(())?;
            let value = match asked {
                Asked::Symbol { plus_addend } => {
                    let address = match resolver.definition(record.symbol, false) {
                        _ if record.symbol == 0 => 0,
                        Some(Definition::Address(address)) => address,
                        Some(Definition::Indirect(_)) => {
                            later.takes(&in_image, kind, || true);
                            return Ok(());
                        }
                        _ => {
                            let (role, symbol) = (kind.value.of, record.symbol);
                            let query = Query { role, symbol, place, addend, kind };
                            resolver.resolve(&query).ok_or(())?
                        }
                    };
                    address.wrapping_add_signed(if plus_addend { addend } else { 0 })
                }
                Asked::Relative => bias.wrapping_add_signed(addend),
                Asked::Other if later.takes(&in_image, kind, || false) => return Ok(()),
                Asked::Other => return Err(()),
            };
            if !open.contains(&place) {
                return Err(());
            }
            words.push((place, value));
            Ok(())
        };
        rows.try_for_each(each).ok()?;
    }
    Some(words)
}
