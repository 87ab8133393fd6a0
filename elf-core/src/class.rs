//! Class and byte order: the raw structs that a file is made of.

use crate::table::{Entry, Rows, Table};
use crate::{
    Dynamic, FileHeader, ProgramHeader, Record, SectionHeader, Symbol, section::CompressionHeader,
};
use crate::{raw32, raw64};
use core::marker::PhantomData;
use zerocopy::byteorder::{BE, ByteOrder, LE, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A raw row of a table: any bytes at any address are a value of it.
pub trait Row:
    FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy + 'static
{
}
impl<T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy + 'static> Row for T {}

/// A class and byte order: types only. Each raw row turns into the plain view that is the same in every class.
pub trait Class {
    /// File header.
    type Ehdr: Row + Into<FileHeader>;
    /// Program header.
    type Phdr: Row + Into<ProgramHeader>;
    /// Section header.
    type Shdr: Row + Into<SectionHeader>;
    /// Symbol.
    type Sym: Row + Into<Symbol>;
    /// Relocation without addend.
    type Rel: Row + Into<Record>;
    /// Relocation with addend.
    type Rela: Row + Into<Record>;
    /// Entry of the dynamic section.
    type Dyn: Row + Into<Dynamic>;
    /// Header of a compressed section.
    type Chdr: Row + Into<CompressionHeader>;
    /// A 16-bit word: symbol versions.
    type Half: Row + Into<u16>;
    /// A 32-bit word: section groups, extended section indices, hash tables.
    type Word: Row + Into<u32>;
    /// A 64-bit word, in both classes.
    type Xword: Row + Into<u64>;
    /// A word as wide as an address: `SHT_RELR`, the Bloom filter of `SHT_GNU_HASH`.
    type Address: Row + Into<u64>;
    /// The byte order, for what is the same in both classes.
    type Order: ByteOrder + 'static;
    /// The same as a value.
    const ENCODING: Encoding;

    /// A table of rows of this class.
    #[doc(hidden)]
    fn table<E: Entry>(rows: &[E::Raw<Self>]) -> Table<'_, E>
    where
        Self: Sized;
}

/// 32-bit files of byte order `O`.
pub struct Elf32<O>(PhantomData<O>);
/// 64-bit files of byte order `O`.
pub struct Elf64<O>(PhantomData<O>);

macro_rules! class {
    ($class:ident, $raw:ident, $word:ident, $O:ident, $encoding:ident) => {
        impl Class for $class<$O> {
            type Ehdr = $raw::Ehdr<$O>;
            type Phdr = $raw::Phdr<$O>;
            type Shdr = $raw::Shdr<$O>;
            type Sym = $raw::Sym<$O>;
            type Rel = $raw::Rel<$O>;
            type Rela = $raw::Rela<$O>;
            type Dyn = $raw::Dyn<$O>;
            type Chdr = $raw::Chdr<$O>;
            type Half = U16<$O>;
            type Word = U32<$O>;
            type Xword = U64<$O>;
            type Address = $word<$O>;
            type Order = $O;
            const ENCODING: Encoding = Encoding::$encoding;

            #[inline]
            fn table<E: Entry>(rows: &[E::Raw<Self>]) -> Table<'_, E> {
                Table(Rows::$encoding(rows))
            }
        }
    };
}
class!(Elf32, raw32, U32, LE, Elf32Le);
class!(Elf32, raw32, U32, BE, Elf32Be);
class!(Elf64, raw64, U64, LE, Elf64Le);
class!(Elf64, raw64, U64, BE, Elf64Be);

/// The four kinds of ELF file: 32 or 64 bits, little- or big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// 32 bits, little-endian.
    Elf32Le,
    /// 32 bits, big-endian.
    Elf32Be,
    /// 64 bits, little-endian.
    Elf64Le,
    /// 64 bits, big-endian.
    Elf64Be,
}

impl Encoding {
    /// Whether addresses have 64 bits (`ELFCLASS64`).
    #[must_use]
    pub const fn is_64(self) -> bool {
        matches!(self, Self::Elf64Le | Self::Elf64Be)
    }

    /// Whether integers are big-endian (`ELFDATA2MSB`).
    #[must_use]
    pub const fn is_big_endian(self) -> bool {
        matches!(self, Self::Elf32Be | Self::Elf64Be)
    }
}

/// Runs `$body` with `$C` as the class of `$encoding`.
macro_rules! with_class {
    ($encoding:expr, $C:ident => $body:expr) => {
        match $encoding {
            $crate::Encoding::Elf32Le => {
                type $C = $crate::Elf32<zerocopy::byteorder::LE>;
                $body
            }
            $crate::Encoding::Elf32Be => {
                type $C = $crate::Elf32<zerocopy::byteorder::BE>;
                $body
            }
            $crate::Encoding::Elf64Le => {
                type $C = $crate::Elf64<zerocopy::byteorder::LE>;
                $body
            }
            $crate::Encoding::Elf64Be => {
                type $C = $crate::Elf64<zerocopy::byteorder::BE>;
                $body
            }
        }
    };
}
pub(crate) use with_class;
