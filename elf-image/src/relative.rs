//! The relocations of files that need no symbols, in little code: what boot loaders meet.

use crate::error::{Error, ErrorKind};
use crate::image::Image;
use elf_core::names::{
    DT_AARCH64_AUTH_RELR, DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_CREL, DT_JMPREL,
    DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ, DT_RELSZ,
};
use elf_core::{
    Address, ApplyError, ApplyErrorKind, Arch, Record, SectionMut, find, relative_type,
};

impl Image<'_> {
    /// Applies all relocations of a file that has relative ones only, in tables or as `DT_RELR`, as most static PIEs do, to the image,
    /// which `memory` is as [`write`](Self::write) filled it, and whose first byte is, or will be, at address `base`.
    ///
    /// # Errors
    /// [`ErrorKind::NotRelative`] of the first that is another, those before it are done; [`ErrorKind::Form`] of other forms of tables,
    /// and of those of the PLT, which are never relative, when all else is done; else as [`relocate`](Self::relocate).
    pub fn relocate_relative<A: Arch>(&self, memory: &mut [u8], base: u64) -> Result<(), Error> {
        let bias = self.bias(base)?;
        self.check_machine::<A>()?;
        self.check_memory(memory)?;
        let Some(dynamic) = self.dynamic() else { return Ok(()) };
        let start = self.relocated_start()?;
        let encoding = self.file().encoding();
        let big_endian = encoding.is_big_endian();
        let address = start.wrapping_add(bias);
        let mut pass =
            Relative { image: SectionMut { bytes: memory, address, big_endian }, start, bias };
        for tag in OTHERS {
            if dynamic.value(tag).is_some() {
                return Err(Error::new(ErrorKind::Form { tag }));
            }
        }
        for Form { tag, size, words } in FORMS {
            let Some(table) = dynamic.rows::<Address>(tag, size)? else { continue };
            check_rows(table.len(), words, || self.file().offset_of(dynamic.value(tag)?))?;
            pass.all::<A>(table.iter(), words)?;
        }
        match dynamic.value(DT_PLTRELSZ) {
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
    size: u64,
    words: usize,
}

const ROW_OF_RELR: usize = 1;
const ROW_OF_RELA: usize = 3;

/// Those that most files have, in the order in which they are applied.
const FORMS: [Form; 3] = [
    Form { tag: DT_RELR, size: DT_RELRSZ, words: ROW_OF_RELR },
    Form { tag: DT_REL, size: DT_RELSZ, words: 2 },
    Form { tag: DT_RELA, size: DT_RELASZ, words: ROW_OF_RELA },
];

/// Fails if a part of a row is left.
fn check_rows(count: usize, words: usize, at: impl Fn() -> Option<u64>) -> Result<(), Error> {
    if count.checked_rem(words) == Some(0) {
        return Ok(());
    }
    let (what, size, entry) = ("relocations, in words,", count as u64, words as u64);
    let at = at().unwrap_or_default();
    Err(elf_core::Error { at, kind: elf_core::ErrorKind::UnevenTable { what, size, entry } }.into())
}

/// The image, address of its first byte in the file, and B.
struct Relative<'m> {
    image: SectionMut<'m>,
    start: u64,
    bias: u64,
}

impl Relative<'_> {
    /// Applies the records that consist of so many words each.
    fn all<A: Arch>(
        &mut self,
        mut table: impl Iterator<Item = u64>,
        words: usize,
    ) -> Result<(), Error> {
        let relative = relative_type(A::MACHINE, A::ADDRESS_SIZE == 8);
        // the place behind the last one that a map or an address of `DT_RELR` speaks of
        let mut next = 0u64;
        while let Some(first) = table.next() {
            let info = if words == ROW_OF_RELR { 0 } else { table.next().unwrap_or_default() };
            let addend = if words == ROW_OF_RELA { table.next() } else { None };
            let (symbol, r#type) = match A::ADDRESS_SIZE {
                _ if words == ROW_OF_RELR => (0, relative),
                8 => ((info >> 32) as u32, info as u32),
                _ => (info as u32 >> 8, info as u32 & 0xff),
            };
            let addend = addend.map(u64::cast_signed);
            let record = Record { offset: first, symbol, r#type, addend };
            if words != ROW_OF_RELR || first & 1 == 0 {
                self.one::<A>(&record)?;
                next = first.wrapping_add(A::ADDRESS_SIZE);
                continue;
            }
            let (mut bits, mut offset) = (first >> 1, next);
            while bits != 0 {
                if bits & 1 != 0 {
                    self.one::<A>(&Record { offset, ..record })?;
                }
                (bits, offset) = (bits >> 1, offset.wrapping_add(A::ADDRESS_SIZE));
            }
            let places = A::ADDRESS_SIZE.wrapping_mul(8).wrapping_sub(1);
            next = next.wrapping_add(places.wrapping_mul(A::ADDRESS_SIZE));
        }
        Ok(())
    }

    /// Applies a record: B + A for a word of an address's size.
    #[inline(never)]
    fn one<A: Arch>(&mut self, record: &Record) -> Result<(), Error> {
        let is_64 = A::ADDRESS_SIZE == 8;
        if record.r#type != relative_type(A::MACHINE, is_64) {
            return other::<A>(record);
        }
        let at = record.offset.wrapping_sub(self.start);
        let rest = usize::try_from(at).ok().and_then(|at| self.image.bytes.get_mut(at..));
        let (bias, big_endian) = (self.bias, self.image.big_endian);
        let done = match is_64 {
            true => rest.and_then(<[u8]>::first_chunk_mut).map(|word: &mut [u8; 8]| {
                let held = if big_endian { u64::from_be_bytes } else { u64::from_le_bytes };
                let to_bytes = if big_endian { u64::to_be_bytes } else { u64::to_le_bytes };
                let addend = record.addend.map_or_else(|| held(*word), i64::cast_unsigned);
                *word = to_bytes(bias.wrapping_add(addend));
            }),
            false => rest.and_then(<[u8]>::first_chunk_mut).map(|word: &mut [u8; 4]| {
                let held = if big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
                let to_bytes = if big_endian { u32::to_be_bytes } else { u32::to_le_bytes };
                let addend = record.addend.map_or_else(|| held(*word), |addend| addend as u32);
                *word = to_bytes((bias as u32).wrapping_add(addend));
            }),
        };
        done.ok_or_else(|| {
            let size = self.image.bytes.len() as u64;
            let outside = ApplyErrorKind::OutsideSection { size };
            Error::new(ErrorKind::Relocation(ApplyError::new(record, name::<A>(record), outside)))
        })
    }
}

fn name<A: Arch>(record: &Record) -> Option<&'static str> {
    find(A::KINDS, record.r#type).map(|kind| kind.name)
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
