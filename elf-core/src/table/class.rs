//! Class and byte order: the raw structs that a file is made of.

#[cfg(feature = "elf32")]
use crate::structs::raw32;
use crate::structs::raw64;
use crate::views::encoding::Encoding;
use crate::views::header::FileHeader;
use crate::views::record::Record;
use crate::views::section::{CompressionHeader, SectionHeader};
use crate::views::segment::{Dynamic, ProgramHeader};
use crate::views::symbol::Symbol;
use core::marker::PhantomData;
use zerocopy::byteorder::{self, ByteOrder, U16, U32, U64};
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
}

/// 32-bit files of byte order `O`.
pub struct Elf32<O>(PhantomData<O>);
/// 64-bit files of byte order `O`.
pub struct Elf64<O>(PhantomData<O>);

macro_rules! class {
    ($class:ident, $raw:ident, $word:ident, $O:ident, $encoding:ident) => {
        impl Class for $class<byteorder::$O> {
            type Ehdr = $raw::Ehdr<byteorder::$O>;
            type Phdr = $raw::Phdr<byteorder::$O>;
            type Shdr = $raw::Shdr<byteorder::$O>;
            type Sym = $raw::Sym<byteorder::$O>;
            type Rel = $raw::Rel<byteorder::$O>;
            type Rela = $raw::Rela<byteorder::$O>;
            type Dyn = $raw::Dyn<byteorder::$O>;
            type Chdr = $raw::Chdr<byteorder::$O>;
            type Half = U16<byteorder::$O>;
            type Word = U32<byteorder::$O>;
            type Xword = U64<byteorder::$O>;
            type Address = $word<byteorder::$O>;
            type Order = byteorder::$O;
            const ENCODING: Encoding = Encoding::$encoding;
        }
    };
}
#[cfg(feature = "elf32")]
class!(Elf32, raw32, U32, LE, Elf32Le);
#[cfg(all(feature = "elf32", feature = "big-endian"))]
class!(Elf32, raw32, U32, BE, Elf32Be);
class!(Elf64, raw64, U64, LE, Elf64Le);
#[cfg(feature = "big-endian")]
class!(Elf64, raw64, U64, BE, Elf64Be);

/// Runs `$body` with `$C` as the class of `$encoding`.
#[cfg(any(feature = "elf64", not(feature = "elf32")))]
macro_rules! with_class {
    ($encoding:expr, $C:ident => $body:expr) => {
        match $encoding {
            #[cfg(feature = "elf32")]
            $crate::views::encoding::Encoding::Elf32Le => {
                type $C = $crate::table::class::Elf32<zerocopy::byteorder::LE>;
                $body
            }
            #[cfg(all(feature = "elf32", feature = "big-endian"))]
            $crate::views::encoding::Encoding::Elf32Be => {
                type $C = $crate::table::class::Elf32<zerocopy::byteorder::BE>;
                $body
            }
            $crate::views::encoding::Encoding::Elf64Le => {
                type $C = $crate::table::class::Elf64<zerocopy::byteorder::LE>;
                $body
            }
            #[cfg(feature = "big-endian")]
            $crate::views::encoding::Encoding::Elf64Be => {
                type $C = $crate::table::class::Elf64<zerocopy::byteorder::BE>;
                $body
            }
        }
    };
}

/// The same where no other class is read: there is nothing to ask.
#[cfg(all(feature = "elf32", not(feature = "elf64")))]
macro_rules! with_class {
    ($encoding:expr, $C:ident => $body:expr) => {
        match $encoding {
            #[cfg(feature = "big-endian")]
            $crate::views::encoding::Encoding::Elf32Be
            | $crate::views::encoding::Encoding::Elf64Be => {
                type $C = $crate::table::class::Elf32<zerocopy::byteorder::BE>;
                $body
            }
            _ => {
                type $C = $crate::table::class::Elf32<zerocopy::byteorder::LE>;
                $body
            }
        }
    };
}
pub(crate) use with_class;

/// Runs `$body`: on machines with room for code once for each class, in which `$encoding` is a constant; else one body asks for it.
macro_rules! for_class {
    ($encoding:ident => $body:expr) => {{
        #[cfg(target_pointer_width = "64")]
        let value = $crate::table::class::with_class!($encoding, C => {
            let $encoding = <C as $crate::table::class::Class>::ENCODING;
            $body
        });
        #[cfg(not(target_pointer_width = "64"))]
        let value = $body;
        value
    }};
}
pub(crate) use for_class;
