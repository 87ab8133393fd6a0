//! Packed relative relocations: `SHT_RELR` (gABI ch. 6, "Relative Relocation Table").

use crate::error::{Error, ErrorKind};
use crate::names::{
    EM_68K, EM_386, EM_AARCH64, EM_ALPHA, EM_AMDGPU, EM_ARC_COMPACT, EM_ARC_COMPACT2, EM_ARM,
    EM_CSKY, EM_HEXAGON, EM_IAMCU, EM_LOONGARCH, EM_MIPS, EM_PPC, EM_PPC64, EM_RISCV, EM_S390,
    EM_SH, EM_SPARC, EM_SPARC32PLUS, EM_SPARCV9, EM_VE, EM_X86_64,
};
use crate::table::rows::{Table, TableIter};
use crate::table::word::Address;
use crate::views::record::Record;

/// Relocations of one type without symbols, their addends at their places.
///
/// A word is an address, or, if its lowest bit is set, a map of the 31 or 63 words behind the last place.
#[derive(Clone, Copy)]
pub struct Relr<'a> {
    words: Table<'a, Address>,
    len: usize,
    r#type: u32,
    is_64: bool,
}

impl<'a> Relr<'a> {
    /// Counts the relocations that `words`, which lie at file offset `at`, stand for; each is to be of this type.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if there are more of them than a `usize` counts, [`ErrorKind::Invalid`] if a map stands before all
    /// addresses.
    pub fn new(
        words: Table<'a, Address>,
        is_64: bool,
        r#type: u32,
        at: u64,
    ) -> Result<Self, Error> {
        // maps of nothing are padding
        if let Some(value) = words.iter().find(|word| *word != 1).filter(|word| word & 1 != 0) {
            let what = "map of relative relocations before all addresses";
            return Err(Error { at, kind: ErrorKind::Invalid { what, value } });
        }
        let count = |sum: Option<usize>, word| sum?.checked_add(places(word));
        let file = words.len() as u64;
        let len = words.iter().fold(Some(0), count);
        let len = len.ok_or(Error {
            at,
            kind: ErrorKind::Outside { what: "relative relocations", count: u64::MAX, file },
        })?;
        Ok(Self { words, len, r#type, is_64 })
    }

    /// The words as they stand.
    #[must_use]
    pub const fn words(&self) -> Table<'a, Address> {
        self.words
    }

    /// Number of relocations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The relocations in order. `nth` skips whole words.
    #[must_use]
    pub fn iter(&self) -> RelrIter<'a> {
        let Self { words, len, r#type, is_64 } = *self;
        RelrIter { words: words.iter(), left: len, bits: 0, place: 0, next: 0, r#type, is_64 }
    }
}

/// How many places a word stands for.
const fn places(word: u64) -> usize {
    if word & 1 == 0 { 1 } else { (word >> 1).count_ones() as usize }
}

/// The relocations of a [`Relr`] in order.
#[derive(Clone)]
pub struct RelrIter<'a> {
    words: TableIter<'a, Address>,
    left: usize,
    /// Places of the map at hand that were not given yet, bit 0 at `place`.
    bits: u64,
    place: u64,
    /// The place behind the last one that the words so far speak of.
    next: u64,
    r#type: u32,
    is_64: bool,
}

impl RelrIter<'_> {
    const fn record(&self, place: u64) -> Record {
        let offset = if self.is_64 { place } else { place & 0xffff_ffff };
        Record { offset, symbol: 0, r#type: self.r#type, addend: None }
    }
}

impl Iterator for RelrIter<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<Record> {
        let (width, map) = if self.is_64 { (8, 63 * 8) } else { (4, 31 * 4) };
        let mut skip = n;
        loop {
            let here = self.bits.count_ones() as usize;
            if skip < here {
                for _ in 0..skip {
                    self.bits &= self.bits.wrapping_sub(1);
                }
                let bit = u64::from(self.bits.trailing_zeros());
                self.bits &= self.bits.wrapping_sub(1);
                self.left = self.left.saturating_sub(skip).saturating_sub(1);
                return Some(self.record(self.place.wrapping_add(bit.wrapping_mul(width))));
            }
            skip = skip.saturating_sub(here);
            self.left = self.left.saturating_sub(here);
            self.bits = 0;
            let word = self.words.next()?;
            if word & 1 != 0 {
                (self.bits, self.place) = (word >> 1, self.next);
                self.next = self.next.wrapping_add(map);
            } else {
                self.next = word.wrapping_add(width);
                self.left = self.left.saturating_sub(1);
                match skip.checked_sub(1) {
                    None => return Some(self.record(word)),
                    Some(rest) => skip = rest,
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for RelrIter<'_> {}
impl core::iter::FusedIterator for RelrIter<'_> {}

/// The type of a relocation that adds the address at which a file is loaded, or 0 if the machine is not known here.
#[must_use]
pub const fn relative_type(machine: u16, is_64: bool) -> u32 {
    match machine {
        EM_386 | EM_IAMCU | EM_X86_64 => 8, // R_386_RELATIVE, R_X86_64_RELATIVE
        EM_AARCH64 if is_64 => 1027,        // R_AARCH64_RELATIVE
        EM_AARCH64 => 183,                  // R_AARCH64_P32_RELATIVE
        EM_ALPHA => 27,                     // R_ALPHA_RELATIVE
        EM_AMDGPU => 13,                    // R_AMDGPU_RELATIVE64
        EM_ARC_COMPACT | EM_ARC_COMPACT2 => 56, // R_ARC_RELATIVE
        EM_ARM => 23,                       // R_ARM_RELATIVE
        EM_CSKY => 9,                       // R_CKCORE_RELATIVE
        EM_HEXAGON => 35,                   // R_HEX_RELATIVE
        EM_LOONGARCH | EM_RISCV => 3,       // R_LARCH_RELATIVE, R_RISCV_RELATIVE
        EM_MIPS => 3,                       // R_MIPS_REL32
        EM_68K | EM_PPC | EM_PPC64 | EM_SPARC | EM_SPARC32PLUS | EM_SPARCV9 => 22, // R_68K_RELATIVE, R_PPC_RELATIVE, R_SPARC_RELATIVE
        EM_S390 => 12,                                                             // R_390_RELATIVE
        EM_SH => 165,                                                              // R_SH_RELATIVE
        EM_VE => 17,                                                               // R_VE_RELATIVE
        _ => 0,
    }
}

/// The type of the relocations in `SHT_AARCH64_AUTH_RELR` (PAuth ABI ELF 64, "Relocations"): `R_AARCH64_AUTH_RELATIVE`.
#[cfg(feature = "packed-relocations")]
pub(crate) const AARCH64_AUTH_RELATIVE: u32 = 0x411;

#[cfg(all(test, feature = "elf32", feature = "big-endian"))]
mod tests {
    extern crate std;
    use super::*;
    use crate::names;
    use crate::views::encoding::Encoding;
    use std::vec::Vec;

    /// An address, a map of all 63, one with holes.
    const WORDS: [u64; 4] = [0x1000, u64::MAX, 1 | 0b1001 << 1, 0x9000];

    fn expected() -> Vec<u64> {
        let maps = (0..64).map(|n| 0x1000 + 8 * n).chain([0x1200, 0x1218]);
        maps.chain([0x9000]).collect()
    }

    #[test]
    fn words_and_maps() {
        let bytes: Vec<u8> = WORDS.iter().flat_map(|word| word.to_be_bytes()).collect();
        let words = Table::parse_bytes(&bytes, Encoding::Elf64Be, 0, 32).unwrap();
        let relr = Relr::new(words, true, 8, 0).unwrap();
        assert_eq!(relr.iter().map(|record| record.offset).collect::<Vec<_>>(), expected());
        assert_eq!((relr.len(), relr.is_empty(), relr.words().len()), (67, false, 4));
        for (index, offset) in expected().into_iter().enumerate() {
            let mut iter = relr.iter();
            let record = iter.nth(index).unwrap();
            assert_eq!(record, Record { offset, symbol: 0, r#type: 8, addend: None });
            assert_eq!(iter.len(), 66 - index);
            assert_eq!(iter.next().map(|record| record.offset), expected().get(index + 1).copied());
        }
        assert!(relr.iter().nth(67).is_none());
    }

    #[test]
    fn addresses_of_32_bits_wrap() {
        let bytes: Vec<u8> =
            [0xffff_fffc_u32, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
        let words = Table::parse_bytes(&bytes, Encoding::Elf32Le, 0, 8).unwrap();
        let relr = Relr::new(words, false, 8, 0).unwrap();
        assert!(relr.iter().map(|record| record.offset).eq([0xffff_fffc, 0]));
    }

    /// What a map speaks of follows an address; one of nothing is padding.
    #[test]
    fn maps_before_addresses() {
        let made = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let size = bytes.len() as u64;
            let words = Table::parse_bytes(&bytes, Encoding::Elf32Le, 0, size).unwrap();
            let made = Relr::new(words, false, 8, 0x40);
            made.map(|relr| relr.iter().map(|record| record.offset).collect::<Vec<_>>())
        };
        let why = std::format!("{}", made(&[3, 0x1000]).unwrap_err());
        assert_eq!(why, "map of relative relocations before all addresses is 0x3 at offset 0x40");
        assert!(made(&[1, 1, 5]).is_err());
        assert_eq!(made(&[1, 0x1000, 5]), Ok(std::vec![0x1000, 0x1008]));
        assert_eq!(made(&[1, 1]), Ok(Vec::new()));
    }

    #[test]
    fn relative_is_what_names_call_it() {
        for machine in 0..u16::MAX {
            for is_64 in [false, true] {
                let r#type = relative_type(machine, is_64);
                let name = names::relocation(machine, r#type).filter(|_| r#type != 0);
                let right = |name: &str| name.contains("_RELATIVE") || name == "R_MIPS_REL32";
                assert!(name.is_none_or(right), "{machine}: {name:?}");
            }
        }
    }
}
