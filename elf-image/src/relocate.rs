//! The relocations of an image, all of them or those that the caller wants.

use crate::error::{Error, ErrorKind};
use crate::image::Image;
use core::ops::Range;
use elf_core::names::{
    DT_AARCH64_AUTH_RELR, DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_CREL, DT_JMPREL,
    DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELR, DT_RELSZ,
};
use elf_core::{
    ApplyError, ApplyErrorKind, Arch, DynamicSection, Kind, Query, Record, Relocations, Resolve,
    Role, SectionMut, Special, Stage, Value, apply, apply_load, find, relative_type,
};

/// What is known of the symbols that relocations name, by their index in the dynamic symbol table: to [`Resolve`] it, and to copy.
pub trait ImageSymbols: Resolve {
    /// Copies the variable that another component has of this symbol, for a copy relocation; whether it did. `to` has the size that
    /// the image's own symbol says.
    fn copy(&self, symbol: u32, to: &mut [u8]) -> bool {
        let _ = (symbol, to);
        false
    }
}

impl<F: Fn(&Query) -> Option<u64>> ImageSymbols for F {}

/// The tags of tables, in the order in which they are applied.
const TABLES: [u64; 9] = [
    DT_RELR,
    DT_ANDROID_RELR,
    DT_AARCH64_AUTH_RELR,
    DT_REL,
    DT_RELA,
    DT_ANDROID_REL,
    DT_ANDROID_RELA,
    DT_CREL,
    DT_JMPREL,
];

/// Whether the relocations of the PLT are among the others, all of them: some linkers count them so.
pub(crate) fn is_plt_inside(dynamic: &DynamicSection<'_>) -> bool {
    [(DT_RELA, DT_RELASZ), (DT_REL, DT_RELSZ)].into_iter().any(|(tag, size)| {
        let at = dynamic.value(DT_JMPREL).zip(dynamic.value(tag));
        let at = at.map(|(plt, start)| plt.wrapping_sub(start));
        let end = at.zip(dynamic.value(DT_PLTRELSZ)).and_then(|(at, size)| at.checked_add(size));
        end.zip(dynamic.value(size)).is_some_and(|(end, size)| end <= size)
    })
}

impl<'a> Image<'a> {
    /// The tables of relocations, in the order in which they are applied; only the error, if the dynamic section is damaged.
    pub fn relocations(
        &self,
    ) -> impl Iterator<Item = Result<Relocations<'a>, Error>> + Clone + use<'a> {
        let (dynamic, failed) = match self.dynamic() {
            Ok(dynamic) => (dynamic, None),
            Err(error) => (None, Some(Err(error))),
        };
        let tables = TABLES.into_iter().filter_map(move |tag| {
            let dynamic = dynamic.as_ref()?;
            if tag == DT_JMPREL && is_plt_inside(dynamic) {
                return None;
            }
            dynamic.relocations(tag).map_err(Error::from).transpose()
        });
        failed.into_iter().chain(tables)
    }

    /// Applies all relocations to the image, which `memory` is as [`write`](Self::write) filled it, and whose first byte is, or
    /// will be, at address `base`.
    ///
    /// # Errors
    /// [`ErrorKind::Relocation`] of the first that fails, those before it are done; [`ErrorKind::Machine`],
    /// [`ErrorKind::Base`], [`ErrorKind::Memory`] and what tables are damaged.
    pub fn relocate<A: Arch>(
        &self,
        memory: &mut [u8],
        base: u64,
        symbols: &impl ImageSymbols,
    ) -> Result<(), Error> {
        self.relocate_where::<A>(memory, base, symbols, |_, _| true)
    }

    /// The same of those that `wanted` takes: what resolvers find ([`Role::Indirect`]) in a second pass, when all else is done.
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate).
    pub fn relocate_where<A: Arch>(
        &self,
        memory: &mut [u8],
        base: u64,
        symbols: &impl ImageSymbols,
        wanted: impl FnMut(&Record, &'static Kind) -> bool,
    ) -> Result<(), Error> {
        self.relocate_within::<A>(memory, base, symbols, (0..0, 0), wanted)
    }

    /// The same, but what needs no symbol (B + A, most records of most files) at places that are `open`, offsets in the image, is applied
    /// without asking `wanted`: sooner; and the first records of the table with addends (`DT_RELA`), so many, are
    /// [done](crate::RelativeRows).
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate).
    pub fn relocate_within<A: Arch>(
        &self,
        memory: &mut [u8],
        base: u64,
        symbols: &impl ImageSymbols,
        (open, done): (Range<u64>, usize),
        mut wanted: impl FnMut(&Record, &'static Kind) -> bool,
    ) -> Result<(), Error> {
        let bias = self.bias(base)?;
        let symbols = Based { bias, symbols };
        self.each::<A>(memory, bias, (open, done), |record, (kind, is_relative), image| {
            if !wanted(record, kind) {
                return Ok(());
            }
            if is_relative && add_bias(record, bias, image).is_some() {
                return Ok(());
            }
            match kind.special {
                Special::Copy => self.copy(record, kind, image, &symbols),
                _ if kind.stage == Stage::Load => apply_load::<A>(kind, record, image, &symbols),
                _ => apply::<A>(record, image, &symbols),
            }
            .map_err(ErrorKind::Relocation)
        })
    }

    /// Calls `f` with every record, its offset counted in the image, and its kind, but for those that are at once [added to](add_bias).
    fn each<A: Arch>(
        &self,
        memory: &mut [u8],
        bias: u64,
        (open, mut done): (Range<u64>, usize),
        mut f: impl FnMut(&Record, Known, &mut SectionMut<'_>) -> Result<(), ErrorKind>,
    ) -> Result<(), Error> {
        self.check_machine::<A>()?;
        self.check_memory(memory)?;
        let start = self.relocated_start();
        let big_endian = self.file().encoding().is_big_endian();
        let mut image = SectionMut { bytes: memory, address: 0, big_endian };
        let mut known: Option<Known> = None;
        let is_there =
            // the shorter way of machines with room for code
            cfg!(target_pointer_width = "64") && A::ADDRESS_SIZE == 8 && !open.is_empty();
        let relative = is_there.then(|| relative_type(A::MACHINE, true));
        let size = open.end.saturating_sub(open.start);
        for table in self.relocations() {
            let start = start?;
            image.address = start.wrapping_add(bias);
            let mut table = table?;
            if let Relocations::Rela(rows) = &table
                && done != 0
                && let Some(rest) = rows.slice(done, rows.len())
            {
                // the first table with addends is that of `DT_RELA`
                (table, done) = (Relocations::Rela(rest), 0);
            }
            table.try_for_each(|record| {
                if Some(record.r#type) == relative {
                    let in_image = Record { offset: record.offset.wrapping_sub(start), ..record };
                    let is_open = in_image.offset.wrapping_sub(open.start) < size;
                    if is_open && add_bias(&in_image, bias, &mut image).is_some() {
                        return Ok(());
                    }
                }
                if known.is_none_or(|(kind, _)| kind.number != record.r#type) {
                    let kind = find(A::KINDS, record.r#type);
                    known = kind.map(|kind| (kind, is_relative::<A>(kind)));
                }
                let Some(known) = known else {
                    let unknown = ApplyErrorKind::UnknownType;
                    let error = ApplyError::new(&record, None, unknown);
                    return Err(Error::new(ErrorKind::Relocation(error)));
                };
                let in_image = Record { offset: record.offset.wrapping_sub(start), ..record };
                f(&in_image, known, &mut image).map_err(|kind| Error::new(at(kind, record.offset)))
            })?;
        }
        Ok(())
    }

    /// Copies a variable of another component.
    fn copy(
        &self,
        record: &Record,
        kind: &'static Kind,
        image: &mut SectionMut<'_>,
        symbols: &Based<'_, impl ImageSymbols>,
    ) -> Result<(), ApplyError> {
        let fail = |error| ApplyError::new(record, Some(kind.name), error);
        let dynamic = self.dynamic().ok().flatten();
        let table = dynamic.and_then(|dynamic| dynamic.symbol_table().ok().flatten());
        let symbol = table.and_then(|table| table.get(record.symbol).ok());
        let size = symbol.and_then(|symbol| usize::try_from(symbol.size).ok());
        let size = size.ok_or_else(|| fail(ApplyErrorKind::Unresolved(Role::Size)))?;
        let total = image.bytes.len() as u64;
        let start = usize::try_from(record.offset).ok();
        let to = start
            .and_then(|start| image.bytes.get_mut(start..)?.get_mut(..size))
            .ok_or_else(|| fail(ApplyErrorKind::OutsideSection { size: total }))?;
        match symbols.symbols.copy(record.symbol, to) {
            true => Ok(()),
            false => Err(fail(ApplyErrorKind::Unresolved(Role::Address))),
        }
    }
}

/// A kind, and whether all that it takes is to [add the bias](add_bias).
type Known = (&'static Kind, bool);

/// Whether a kind stands for B + A in a word of 8 bytes. Machines of 32 bits, which are small, have one way for all.
fn is_relative<A: Arch>(kind: &Kind) -> bool {
    let relative = Value::of(Role::Base).plus_a();
    cfg!(target_pointer_width = "64") && A::ADDRESS_SIZE == 8 && kind.value == relative
}

/// Stores B + A, what most records of most files ask for; `None` if the place is not in the image.
#[inline]
fn add_bias(record: &Record, bias: u64, image: &mut SectionMut<'_>) -> Option<()> {
    let rest = image.bytes.get_mut(usize::try_from(record.offset).ok()?..)?;
    let word = rest.first_chunk_mut()?;
    if image.big_endian {
        let addend = record.addend.unwrap_or(i64::from_be_bytes(*word));
        *word = bias.wrapping_add_signed(addend).to_be_bytes();
    } else {
        let addend = record.addend.unwrap_or(i64::from_le_bytes(*word));
        *word = bias.wrapping_add_signed(addend).to_le_bytes();
    }
    Some(())
}

/// The error with the address that the file has.
fn at(kind: ErrorKind, offset: u64) -> ErrorKind {
    match kind {
        ErrorKind::Relocation(error) => ErrorKind::Relocation(ApplyError { offset, ..error }),
        other => other,
    }
}

/// What the caller knows of symbols, and B.
struct Based<'s, S> {
    bias: u64,
    symbols: &'s S,
}

impl<S: ImageSymbols> Resolve for Based<'_, S> {
    fn resolve(&self, query: &Query) -> Option<u64> {
        match query.role {
            Role::Base => Some(self.bias),
            _ => self.symbols.resolve(query),
        }
    }

    fn attributes(&self, query: &Query) -> elf_core::SymbolAttributes {
        self.symbols.attributes(query)
    }

    fn symbol_address(&self, symbol: u32) -> Option<u64> {
        self.symbols.symbol_address(symbol)
    }
}
