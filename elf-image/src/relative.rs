//! The relocations of files that need no symbols, in little code: what boot loaders meet.
//!
//! The dynamic section and the tables are read where they were loaded to, as start code of programs reads its own: words of one size,
//! which are in the image or not.

use crate::error::{Error, ErrorKind};
use crate::image::Image;
use core::marker::PhantomData;
use core::ops::Range;
use elf_core::names::{
    DT_AARCH64_AUTH_RELR, DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_CREL, DT_JMPREL,
    DT_NULL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELAENT, DT_RELASZ, DT_RELENT, DT_RELR, DT_RELRENT,
    DT_RELRSZ, DT_RELSZ, PT_DYNAMIC,
};
use elf_core::{ApplyError, ApplyErrorKind, Arch, Record, find, relative_type};

impl Image<'_> {
    /// Applies all relocations of a file that has relative ones only, in tables or as `DT_RELR`, as most static PIEs do, to the image,
    /// which `memory` is as [`write`](Self::write) filled it, and whose first byte is, or will be, at address `base`.
    ///
    /// # Errors
    /// [`ErrorKind::NotRelative`] of the first that is another, those before it are done; [`ErrorKind::Form`] of other forms of tables,
    /// and of those of the PLT, which are never relative, when all else is done; [`ErrorKind::Outside`] of a dynamic section or table
    /// that is not in the image, [`ErrorKind::Rows`] if a part of a row is left, [`ErrorKind::Map`]; else as
    /// [`relocate`](Self::relocate).
    pub fn relocate_relative<A: Arch>(&self, memory: &mut [u8], base: u64) -> Result<(), Error> {
        let bias = self.bias(base)?;
        self.check_machine::<A>()?;
        self.check_memory(memory)?;
        let Some((_, dynamic)) = self.loaded(PT_DYNAMIC)? else { return Ok(()) };
        let start = self.relocated_start()?;
        let big_endian = self.file().encoding().is_big_endian();
        let mut words = Words { bytes: memory, start, bias, big_endian, arch: PhantomData::<A> };
        let at = dynamic.offset;
        let fail = |kind| Error::new(ErrorKind::Elf(elf_core::Error { at, kind }));
        let dynamic = words.range(dynamic.address, dynamic.file_size)?;
        for tag in OTHERS {
            if words.value(&dynamic, tag).is_some() {
                return Err(Error::new(ErrorKind::Form { tag }));
            }
        }
        for Form { tag, size, row: (row, what), words: count } in FORMS {
            let Some(address) = words.value(&dynamic, tag) else { continue };
            let expected = A::ADDRESS_SIZE.wrapping_mul(count as u64);
            let found = words.value(&dynamic, row).unwrap_or(expected);
            if found != expected {
                return Err(fail(elf_core::ErrorKind::EntrySize { what, found, expected }));
            }
            let Some(size) = words.value(&dynamic, size.0) else {
                return Err(fail(elf_core::ErrorKind::Missing(size.1)));
            };
            let table = words.range(address, size)?;
            words.relocate(table, tag, count)?;
        }
        match words.value(&dynamic, DT_PLTRELSZ) {
            None | Some(0) => Ok(()),
            Some(_) => Err(Error::new(ErrorKind::Form { tag: DT_JMPREL })),
        }
    }
}

/// Forms that are left to [`Image::relocate`].
const OTHERS: [u64; 5] =
    [DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_AARCH64_AUTH_RELR, DT_CREL];

/// A form of table: its tags, and of how many words of an address's size a row is (gABI ch. 4, "Relocation").
struct Form {
    tag: u64,
    size: (u64, &'static str),
    row: (u64, &'static str),
    words: usize,
}

const ROW_OF_RELR: usize = 1;
const ROW_OF_RELA: usize = 3;

macro_rules! form {
    ($tag:ident, $size:ident, $row:ident, $words:expr) => {
        Form {
            tag: $tag,
            size: ($size, stringify!($size)),
            row: ($row, stringify!($row)),
            words: $words,
        }
    };
}

/// Those that most files have, in the order in which they are applied.
const FORMS: [Form; 3] = [
    form!(DT_RELR, DT_RELRSZ, DT_RELRENT, ROW_OF_RELR),
    form!(DT_REL, DT_RELSZ, DT_RELENT, 2),
    form!(DT_RELA, DT_RELASZ, DT_RELAENT, ROW_OF_RELA),
];

/// The words of an image.
struct Words<'m, A> {
    bytes: &'m mut [u8],
    /// The address of the first byte in the file.
    start: u64,
    /// B.
    bias: u64,
    big_endian: bool,
    arch: PhantomData<A>,
}

impl<A: Arch> Words<'_, A> {
    const IS_64: bool = A::ADDRESS_SIZE == 8;
    const SIZE: usize = if Self::IS_64 { 8 } else { 4 };

    /// Where in the image `size` bytes are that have this address in the file.
    fn range(&self, address: u64, size: u64) -> Result<Range<usize>, Error> {
        let offsets = usize::try_from(address.wrapping_sub(self.start)).ok();
        let offsets = offsets.zip(usize::try_from(size).ok());
        let range = offsets.and_then(|(at, size)| Some(at..at.checked_add(size)?));
        let range = range.filter(|range| range.end <= self.bytes.len());
        range.ok_or(Error::new(ErrorKind::Outside { address, size }))
    }

    /// The address that the file has for an offset in the image.
    const fn address(&self, at: usize) -> u64 {
        self.start.wrapping_add(at as u64)
    }

    /// The word at an offset in the image; 0 outside.
    fn word(&self, at: usize) -> u64 {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let big_endian = self.big_endian;
        match Self::IS_64 {
            true => rest.first_chunk().map_or(0, |word| match big_endian {
                true => u64::from_be_bytes(*word),
                false => u64::from_le_bytes(*word),
            }),
            false => rest.first_chunk().map_or(0, |word| match big_endian {
                true => u32::from_be_bytes(*word).into(),
                false => u32::from_le_bytes(*word).into(),
            }),
        }
    }

    /// What the first entry of the dynamic section with this tag says.
    #[inline(never)]
    fn value(&self, dynamic: &Range<usize>, tag: u64) -> Option<u64> {
        let mut at = dynamic.start;
        while at < dynamic.end {
            let (found, value) = (self.word(at), self.word(at.wrapping_add(Self::SIZE)));
            if found == tag {
                return Some(value);
            }
            if found == DT_NULL {
                return None;
            }
            at = at.wrapping_add(2 * Self::SIZE);
        }
        None
    }

    /// Applies the records of a table, each of so many words.
    fn relocate(&mut self, table: Range<usize>, tag: u64, count: usize) -> Result<(), Error> {
        let relative = relative_type(A::MACHINE, Self::IS_64);
        let row = count.wrapping_mul(Self::SIZE);
        let mut rest = table;
        // the place behind the last one that a map or an address of `DT_RELR` speaks of
        let mut next = None;
        while rest.start < rest.end {
            let at = rest.start;
            let left = rest.end.wrapping_sub(at);
            if left < row {
                return Err(Error::new(ErrorKind::Rows { tag, left: left as u64 }));
            }
            rest.start = at.wrapping_add(row);
            let first = self.word(at);
            if count != ROW_OF_RELR {
                let info = self.word(at.wrapping_add(Self::SIZE));
                let addend = self.word(at.wrapping_add(2 * Self::SIZE));
                let (symbol, r#type) = match Self::IS_64 {
                    true => ((info >> 32) as u32, info as u32),
                    false => (info as u32 >> 8, info as u32 & 0xff),
                };
                if r#type == relative {
                    self.add(first, (count == ROW_OF_RELA).then_some(addend))?;
                } else {
                    other::<A>(&Record { offset: first, symbol, r#type, addend: None })?;
                }
            } else if first & 1 == 0 {
                self.add(first, None)?;
                next = Some(first.wrapping_add(A::ADDRESS_SIZE));
            } else if let Some(start) = next {
                let (mut bits, mut place) = (first >> 1, start);
                while bits != 0 {
                    if bits & 1 != 0 {
                        self.add(place, None)?;
                    }
                    (bits, place) = (bits >> 1, place.wrapping_add(A::ADDRESS_SIZE));
                }
                let places = A::ADDRESS_SIZE.wrapping_mul(8).wrapping_sub(1);
                next = Some(start.wrapping_add(places.wrapping_mul(A::ADDRESS_SIZE)));
            } else if first != 1 {
                return Err(Error::new(ErrorKind::Map { address: self.address(at) }));
            }
        }
        Ok(())
    }

    /// Stores B + A at an address of the file; what is there is A if none is given.
    #[inline(never)]
    fn add(&mut self, address: u64, addend: Option<u64>) -> Result<(), Error> {
        let Ok(Range { start: at, .. }) = self.range(address, A::ADDRESS_SIZE) else {
            return outside::<A>(address, self.bytes.len());
        };
        let value = self.bias.wrapping_add(addend.unwrap_or_else(|| self.word(at)));
        let rest = self.bytes.get_mut(at..).unwrap_or_default();
        if Self::IS_64 {
            let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
            rest.first_chunk_mut().into_iter().for_each(|word| *word = bytes);
        } else {
            let value = value as u32;
            let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
            rest.first_chunk_mut().into_iter().for_each(|word| *word = bytes);
        }
        Ok(())
    }
}

/// There is nothing at the place of a relative relocation.
#[cold]
#[inline(never)]
fn outside<A: Arch>(offset: u64, size: usize) -> Result<(), Error> {
    let r#type = relative_type(A::MACHINE, A::ADDRESS_SIZE == 8);
    let name = find(A::KINDS, r#type).map(|kind| kind.name);
    let kind = ApplyErrorKind::OutsideSection { size: size as u64 };
    Err(Error::new(ErrorKind::Relocation(ApplyError { offset, r#type, name, symbol: 0, kind })))
}

/// What is to be said of a record that is not a relative one: nothing of one that says nothing.
#[cold]
#[inline(never)]
fn other<A: Arch>(record: &Record) -> Result<(), Error> {
    let (name, why) = match find(A::KINDS, record.r#type) {
        Some(kind) if kind.number == 0 => return Ok(()),
        Some(kind) => (Some(kind.name), ApplyErrorKind::Unresolved(kind.value.of)),
        None => (None, ApplyErrorKind::UnknownType),
    };
    Err(Error::new(ErrorKind::NotRelative(ApplyError::new(record, name, why))))
}
