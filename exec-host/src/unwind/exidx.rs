//! Tables of Arm (`.ARM.exidx`, `.ARM.extab`; EHABI32, "Index table entries", "Exception handling table entries"), checked before an unwinder
//! sees them.
//!
//! What is found is one entry, in place: the unwinder's search ends at once, and needs neither order nor an end. Language specific
//! data are between the code and its personality routine.

use super::table::Table;
use crate::Host;
use core::ffi::CStr;
use elf_core::eh_frame::{Described, Error, ErrorKind, Places};
use elf_core::names::SHT_ARM_EXIDX;
use elf_image::Image;
use elf_layout::Layout;

/// What unwinders ask for frames.
pub(super) const ASKED: &CStr = c"__gnu_Unwind_Find_exidx";

/// Tables cannot be made known one by one.
pub(super) const REGISTERS: bool = false;

/// `PT_ARM_EXIDX`.
const PT_ARM_EXIDX: u32 = 0x7000_0001;
/// The second word of an entry of code that nobody unwinds (`EXIDX_CANTUNWIND`).
const CANT_UNWIND: u32 = 1;
/// Bytes of an entry.
const ENTRY: u64 = 8;
/// Most entries of a list of a function's landing pads.
const MOST_DESCRIPTORS: u32 = 1 << 16;

/// Nothing is made known.
pub(super) const unsafe fn register(_table: u64) {}

/// As for [`register`].
pub(super) const fn deregister(_table: u64) {}

/// There is nothing to make known to libunwind of LLVM.
pub(super) const fn of_llvm() -> Option<()> {
    None
}

/// Others than the unwinder of the process: none that can be told.
#[derive(Debug, Default)]
pub(super) struct Unwinders(());

pub(super) const fn others() -> Unwinders {
    Unwinders(())
}

impl Unwinders {
    pub(super) const fn are_none(&self) -> bool {
        true
    }

    /// Nothing is made known.
    pub(super) const unsafe fn register(&self, _table: u64) {}

    /// As for [`register`](Self::register).
    pub(super) const fn deregister(&self, _table: u64) {}
}

/// The tables of an image for `base`: one for each section of code.
pub(super) fn tables(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Table> {
    let mut tables = Vec::new();
    for (object, file) in layout.files().iter().enumerate() {
        for (section, header) in (0u32..).zip(file.sections()) {
            if header.r#type != SHT_ARM_EXIDX || header.size == 0 {
                continue;
            }
            let Some(offset) = layout.section(object, section) else { continue };
            let code = layout.section(object, header.link);
            let code = code.zip(layout.section_size(object, header.link));
            let end = code.map_or(0, |(code, size)| base.wrapping_add(code).wrapping_add(size));
            tables.push(Table { address: base.wrapping_add(offset), size: header.size, end });
        }
    }
    tables
}

/// Offset and size of the table of a library.
pub(super) fn table_of(image: &Image<'_>) -> Option<(u64, u64)> {
    let header = image.file().segments().iter().find(|it| it.r#type == PT_ARM_EXIDX)?;
    let range = image.range_of(header.address, header.memory_size)?;
    Some((range.start, header.memory_size))
}

/// The table itself.
pub(super) fn of_library<'l>(
    (address, size): (u64, u64),
    _rest: impl Fn(u64) -> Option<&'l [u8]>,
) -> Option<(u64, usize)> {
    Some((address, usize::try_from(size).ok()?))
}

/// What a word that holds a distance of 31 bits leads to.
const fn prel31(place: u64, word: u32) -> u64 {
    let distance = (word << 1).cast_signed() >> 1;
    place.wrapping_add_signed(distance as i64) & 0xffff_ffff
}

/// Checks all that the unwinder reads of a table, and gives `each` what it describes.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn check_each(
    bytes: &[u8],
    table: &Table,
    places: &impl Places,
    mut each: impl FnMut(Described),
) -> Result<(), Error> {
    let (rows, rest) = bytes.as_chunks::<{ ENTRY as usize }>();
    if !rest.is_empty() {
        let at = (bytes.len() as u64).saturating_sub(rest.len() as u64);
        return Err(Error { at, kind: ErrorKind::Outside { what: "entry" } });
    }
    let words = |row: &[u8; ENTRY as usize]| {
        let [a, b, c, d, e, f, g, h] = *row;
        [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
    };
    let mut rows = rows.iter().map(words).zip((0u64..).step_by(ENTRY as usize)).peekable();
    while let Some(([function, what], at)) = rows.next() {
        let fail = |kind| Error { at, kind };
        let place = table.address.wrapping_add(at);
        let start = |word, place| {
            let is_right = word & 1 << 31 == 0;
            let address = prel31(place, word) & !1;
            let pointer = ErrorKind::Pointer { what: "function", address };
            is_right.then_some(address).ok_or(pointer)
        };
        let address = start(function, place).map_err(fail)?;
        let end = match rows.peek() {
            Some(([next, _], _)) => start(*next, place.wrapping_add(ENTRY)).map_err(fail)?,
            None => table.end.max(address),
        };
        let size = end.checked_sub(address);
        let size = size.ok_or(fail(ErrorKind::Pointer {
            what: "function behind the one before",
            address: end,
        }))?;
        if !places.is_code(address, size) {
            return Err(fail(ErrorKind::Code { address, size }));
        }
        check(what, place.wrapping_add(4), places).map_err(fail)?;
        if what != CANT_UNWIND {
            each(Described { at, address, size });
        }
    }
    Ok(())
}

/// Checks what an entry says of its function, in the word at `place`.
fn check(word: u32, place: u64, places: &impl Places) -> Result<(), ErrorKind> {
    let encoding = |encoding: u32| ErrorKind::Encoding { what: "entry", encoding: encoding as u8 };
    if word == CANT_UNWIND {
        return Ok(());
    }
    if word & 1 << 31 != 0 {
        // three instructions of the first of the routines that the ABI has
        return if word >> 24 == 0x80 { Ok(()) } else { Err(encoding(word >> 24)) };
    }
    let start = prel31(place, word);
    let at = |index: u32| -> Result<(u64, u32), ErrorKind> {
        let address = start.wrapping_add(u64::from(index) * 4);
        let outside = ErrorKind::Pointer { what: "entry", address };
        let is_there = address.is_multiple_of(4) && places.is_data(address);
        let word = places.word(address).filter(|_| is_there).ok_or(outside)?;
        Ok((address, word as u32))
    };
    let (_, head) = at(0)?;
    if head & 1 << 31 == 0 {
        let address = prel31(start, head);
        if !places.is_personality(address) {
            return Err(ErrorKind::Pointer { what: "personality routine", address });
        }
        // instructions: three, and so many words more
        let more = at(1)?.1 >> 24;
        return at(more.saturating_add(1)).map(drop);
    }
    let more = match head >> 24 {
        0x80 => 0,
        0x81 | 0x82 => head >> 16 & 0xff,
        other => return Err(encoding(other)),
    };
    // then landing pads, up to a word of 0
    let mut index = more.saturating_add(1);
    for _ in 0..MOST_DESCRIPTORS {
        let (_, lengths) = at(index)?;
        if lengths == 0 {
            return Ok(());
        }
        let offset = if head >> 24 == 0x82 {
            index = index.saturating_add(1);
            at(index)?.1
        } else {
            lengths >> 16
        };
        let (place, pad) = at(index.saturating_add(1))?;
        index = index.saturating_add(match offset & 1 << 1 | lengths & 1 {
            // cleanup; catch, with a type
            0 => 2,
            1 => 3,
            other => return Err(ErrorKind::Opcode { what: "descriptor", opcode: other as u8 }),
        });
        let address = prel31(place, pad) & !1;
        if !places.is_code(address, 0) {
            return Err(ErrorKind::Code { address, size: 0 });
        }
    }
    Err(ErrorKind::TooManyCies)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 bytes of code at 0x1000, and words at 0x2000.
    struct Load(Vec<u32>);

    impl Places for Load {
        fn is_code(&self, address: u64, size: u64) -> bool {
            (0x1000..=0x1010).contains(&address) && size <= 0x1010 - address
        }
        fn is_data(&self, address: u64) -> bool {
            (0x2000..0x2000 + 4 * self.0.len() as u64).contains(&address)
        }
        fn is_personality(&self, address: u64) -> bool {
            address == 0x1001
        }
        fn word(&self, address: u64) -> Option<u64> {
            let index = usize::try_from(address.checked_sub(0x2000)? / 4).ok()?;
            self.0.get(index).map(|&word| word.into())
        }
    }

    fn to(from: u64, to: u64) -> u32 {
        (to.wrapping_sub(from) as u32) & 0x7fff_ffff
    }

    fn check_words(entries: &[[u32; 2]], extab: &[u32]) -> Result<Vec<(u64, u64)>, ErrorKind> {
        let bytes: Vec<u8> = entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let table = Table { address: 0x3000, size: bytes.len() as u64, end: 0x1010 };
        let mut found = Vec::new();
        let each = |it: Described| found.push((it.address, it.size));
        check_each(&bytes, &table, &Load(extab.to_vec()), each).map_err(|error| error.kind)?;
        Ok(found)
    }

    #[test]
    fn entries_are_checked() {
        let code = |at| to(at, 0x1000);
        let whole = Ok(vec![(0x1000, 16)]);
        assert_eq!(check_words(&[[code(0x3000), 0x80a8_b0b0]], &[]), whole);
        assert_eq!(check_words(&[[code(0x3000), 1]], &[]), Ok(vec![]));
        let two = [[code(0x3000), 0x8000_b0b0], [to(0x3008, 0x1008), 1]];
        assert_eq!(check_words(&two, &[]), Ok(vec![(0x1000, 8)]));
        let generic = [[code(0x3000), to(0x3004, 0x2000)]];
        assert_eq!(check_words(&generic, &[to(0x2000, 0x1001), 0x00b0_b0b0, 0]), whole);
        assert_eq!(check_words(&generic, &[0x8101_b0b0, 0, 0]), whole);

        let wrong: &[(&[[u32; 2]], &[u32])] = &[
            // code of others, order, an unknown routine, data of others
            (&[[to(0x3000, 0x900), 1]], &[]),
            (&[[to(0x3000, 0x1008), 1], [to(0x3008, 0x1000), 1]], &[]),
            (&[[code(0x3000), 0x8100_0000]], &[]),
            (&[[code(0x3000), to(0x3004, 0x5000)]], &[]),
            // a routine of nobody, more words than there are, a list without an end
            (&generic, &[to(0x2000, 0x1003), 0, 0]),
            (&generic, &[to(0x2000, 0x1001), 0x0200_0000, 0]),
            (&generic, &[0x8101_b0b0, 0]),
            (&generic, &[0x8000_b0b0, 0x0002_0000, to(0x2008, 0x5000), 0]),
        ];
        for (entries, extab) in wrong {
            assert!(check_words(entries, extab).is_err(), "{entries:x?} {extab:x?}");
        }
        assert!(check_words(&[[1 << 31, 1]], &[]).is_err());
    }
}
