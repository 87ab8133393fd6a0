//! Class and byte order: the raw structs that a file is made of.

use crate::{
    Dynamic, FileHeader, ProgramHeader, Record, SectionHeader, Symbol, section::CompressionHeader,
};
use crate::{raw32, raw64};
use core::marker::PhantomData;
use zerocopy::byteorder::{BE, ByteOrder, LE, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A raw row of a table: any bytes at any address are a value of it.
pub trait Row: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy {}
impl<T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy> Row for T {}

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
    /// A 32-bit word: section groups, extended section indices.
    type Word: Row + Into<u32>;
}

/// 32-bit files of byte order `O`.
pub struct Elf32<O>(PhantomData<O>);
/// 64-bit files of byte order `O`.
pub struct Elf64<O>(PhantomData<O>);

impl<O: ByteOrder + 'static> Class for Elf32<O> {
    type Ehdr = raw32::Ehdr<O>;
    type Phdr = raw32::Phdr<O>;
    type Shdr = raw32::Shdr<O>;
    type Sym = raw32::Sym<O>;
    type Rel = raw32::Rel<O>;
    type Rela = raw32::Rela<O>;
    type Dyn = raw32::Dyn<O>;
    type Chdr = raw32::Chdr<O>;
    type Word = U32<O>;
}

impl<O: ByteOrder + 'static> Class for Elf64<O> {
    type Ehdr = raw64::Ehdr<O>;
    type Phdr = raw64::Phdr<O>;
    type Shdr = raw64::Shdr<O>;
    type Sym = raw64::Sym<O>;
    type Rel = raw64::Rel<O>;
    type Rela = raw64::Rela<O>;
    type Dyn = raw64::Dyn<O>;
    type Chdr = raw64::Chdr<O>;
    type Word = U32<O>;
}

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

const _: fn() = || {
    fn is_class<C: Class>() {}
    is_class::<Elf32<LE>>();
    is_class::<Elf64<BE>>();
};
