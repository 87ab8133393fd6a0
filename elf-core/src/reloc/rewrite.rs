//! Relaxation: simpler instructions in place of those a compiler wrote, which knew less than a linker does.

use crate::views::record::Record;

/// What a linker knows of the address that instructions ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its distance from wherever the instructions may be fits 32 bits, with its sign, and 4 KiB more.
    pub near: bool,
    /// It is below 2 GiB.
    pub low: bool,
    /// Its distance from the place of the first relocation in bytes, once both are known.
    pub distance: Option<i64>,
}

/// A load from the GOT of which another opcode makes an instruction that computes the address: what most relaxed code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GotLoad {
    /// `r_type` of its relocation.
    pub r#type: u32,
    /// Bits that tell it, of the four bytes that end with the first one of the place, the first in the lowest eight bits.
    pub mask: u32,
    /// Those of the load.
    pub code: u32,
    /// The other opcode, for the byte two before the place.
    pub opcode: u8,
    /// `r_type` of that one's relocation, whose addend is the same.
    pub becomes: u32,
    /// The addend.
    pub addend: i64,
}

impl GotLoad {
    /// A load whose relocation is of type `type`: `mask` and `code` of its last three bytes before the place and the first one of it, and
    /// the addend. It becomes `opcode`, two bytes before the place, with a relocation of type `becomes`.
    #[must_use]
    pub const fn new(
        r#type: u32,
        [mask, code]: [u32; 2],
        addend: i64,
        opcode: u8,
        becomes: u32,
    ) -> Self {
        Self { r#type, mask, code, opcode, becomes, addend }
    }

    /// Whether it is what stands at the place of a record of its type in `section`.
    #[must_use]
    #[inline]
    pub fn is_at(&self, record: &Record, section: &[u8]) -> bool {
        let start = record.offset.checked_sub(3).and_then(|start| usize::try_from(start).ok());
        let bytes = start.and_then(|start| section.get(start..)?.first_chunk::<7>());
        let word = bytes.and_then(|bytes| bytes.first_chunk::<4>());
        let is_load = word.is_some_and(|it| u32::from_le_bytes(*it) & self.mask == self.code);
        is_load && record.addend == Some(self.addend)
    }

    /// What becomes of the load of `record`.
    #[must_use]
    pub fn rewrite(&self, record: &Record) -> Rewrite {
        Rewrite::new(record, 2, [self.opcode]).with(Record { r#type: self.becomes, ..*record })
    }
}

/// What is known of the symbol of a record, once everything has its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// Bytes from the place to the symbol.
    pub distance: Option<i64>,
    /// The symbol's address, if that of the image is known. One of 4 bytes is signed.
    pub absolute: Option<i64>,
    /// Bytes from where the global pointer is to the symbol, if code may count from there.
    pub from_global_pointer: Option<i64>,
    /// Bytes from the thread pointer to the variable that the symbol is.
    pub from_thread_pointer: Option<i64>,
    /// Bytes from the place to the symbol's entry in the GOT for `__tls_get_addr`, if it has one.
    pub tls_entry: Option<i64>,
    /// `st_size`.
    pub size: u64,
    /// `e_flags` of the object.
    pub flags: u32,
    /// Size of an address in bytes.
    pub address_size: u64,
}

/// The instructions that stand for those at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewrite {
    /// Where they start, in bytes from the start of the section.
    pub offset: u64,
    /// Their bytes, the first in the lowest eight bits.
    pub code: u64,
    /// Their size in bytes, at most 8: the same as before, but for what goes.
    pub size: usize,
    /// The relocations that they need.
    pub records: [Option<Record>; 2],
    /// For how many of the following relocations they stand as well.
    pub takes: usize,
    /// Bytes of the old instructions behind the new ones that go.
    pub deletes: u64,
}

impl Rewrite {
    /// `code` that starts `before` bytes before the place of `record`, without relocations.
    #[must_use]
    #[inline]
    pub fn new<const N: usize>(record: &Record, before: u64, code: [u8; N]) -> Self {
        const { assert!(N <= 8) };
        let code = code.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
        let offset = record.offset.wrapping_sub(before);
        Self { offset, code, size: N, records: [None; 2], takes: 0, deletes: 0 }
    }

    /// The same with a relocation of the new code.
    #[must_use]
    pub const fn with(self, record: Record) -> Self {
        let records = match self.records {
            [None, _] => [Some(record), None],
            [first, _] => [first, Some(record)],
        };
        Self { records, ..self }
    }

    /// The same of code that was longer by so many bytes.
    #[must_use]
    pub const fn deleting(self, deletes: u64) -> Self {
        Self { deletes, ..self }
    }

    /// The same for the next `takes` relocations of the old code, too.
    #[must_use]
    pub const fn taking(self, takes: usize) -> Self {
        Self { takes, ..self }
    }
}
