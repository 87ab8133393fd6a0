//! Class and byte order as a value.

use crate::error::{Error, ErrorKind};

/// Whether files of 64 bits are read. Some must be: where those of 32 bits are not, no feature is needed.
const READS_64: bool = cfg!(any(feature = "elf64", not(feature = "elf32")));

/// The kinds of ELF file that are read: with the features `elf32`, `elf64` and `big-endian` all four, without any 64 bits,
/// little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
// whole words are copied in fewer instructions where words are small
#[cfg_attr(not(target_pointer_width = "64"), repr(u32))]
pub enum Encoding {
    /// 32 bits, little-endian.
    #[cfg(feature = "elf32")]
    Elf32Le,
    /// 32 bits, big-endian.
    #[cfg(all(feature = "elf32", feature = "big-endian"))]
    Elf32Be,
    /// 64 bits, little-endian.
    Elf64Le,
    /// 64 bits, big-endian.
    #[cfg(feature = "big-endian")]
    Elf64Be,
}

impl Encoding {
    /// Whether addresses have 64 bits (`ELFCLASS64`).
    #[must_use]
    pub const fn is_64(self) -> bool {
        match self {
            Self::Elf64Le => READS_64,
            #[cfg(feature = "big-endian")]
            Self::Elf64Be => READS_64,
            #[cfg(feature = "elf32")]
            _ => false,
        }
    }

    /// Whether integers are big-endian (`ELFDATA2MSB`).
    #[must_use]
    pub const fn is_big_endian(self) -> bool {
        match self {
            Self::Elf64Le => false,
            #[cfg(feature = "elf32")]
            Self::Elf32Le => false,
            #[cfg(feature = "big-endian")]
            _ => true,
        }
    }
}

/// Class and byte order by `e_ident` (gABI ch. 2, "ELF Identification").
pub(crate) fn encoding_of(bytes: &[u8]) -> Result<Encoding, Error> {
    let fail = |at, kind| Err(Error { at, kind });
    match bytes {
        [0x7f, b'E', b'L', b'F', 2, 1 | 2, ..] if !READS_64 => {
            fail(4, ErrorKind::FeatureOff("elf64"))
        }
        #[cfg(feature = "elf32")]
        [0x7f, b'E', b'L', b'F', 1, 1, ..] => Ok(Encoding::Elf32Le),
        #[cfg(all(feature = "elf32", feature = "big-endian"))]
        [0x7f, b'E', b'L', b'F', 1, 2, ..] => Ok(Encoding::Elf32Be),
        [0x7f, b'E', b'L', b'F', 2, 1, ..] => Ok(Encoding::Elf64Le),
        #[cfg(feature = "big-endian")]
        [0x7f, b'E', b'L', b'F', 2, 2, ..] => Ok(Encoding::Elf64Be),
        #[cfg(not(feature = "elf32"))]
        [0x7f, b'E', b'L', b'F', 1, 1 | 2, ..] => fail(4, ErrorKind::FeatureOff("elf32")),
        #[cfg(all(feature = "elf32", not(feature = "big-endian")))]
        [0x7f, b'E', b'L', b'F', 1, 2, ..] => fail(5, ErrorKind::FeatureOff("big-endian")),
        #[cfg(not(feature = "big-endian"))]
        [0x7f, b'E', b'L', b'F', 2, 2, ..] => fail(5, ErrorKind::FeatureOff("big-endian")),
        [0x7f, b'E', b'L', b'F', 1 | 2, data, ..] => fail(5, ErrorKind::UnknownByteOrder(*data)),
        [0x7f, b'E', b'L', b'F', class, ..] => fail(4, ErrorKind::UnknownClass(*class)),
        _ => fail(0, ErrorKind::NotElf),
    }
}
