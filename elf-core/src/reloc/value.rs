//! Formulas: what a kind of relocation computes, in the letters of the psABIs.
//!
//! S the symbol's address, A the addend, P the place, L a stub that jumps to S (PLT entry, veneer), G a GOT entry, GOT the base
//! of the GOT, Z the symbol's size, T 1 for a Thumb function, V what the place holds.

use core::fmt;

/// A formula: `((of + A) | T) - minus`, each side rounded down as `page` says, then added to V or taken from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Value {
    /// What is asked of the symbol.
    pub of: Role,
    /// Whether the addend is added.
    pub addend: bool,
    /// Whether T is or-ed in.
    pub thumb: bool,
    /// What is subtracted.
    pub minus: Role,
    /// Which sides are rounded to pages.
    pub page: Page,
    /// What becomes of V.
    pub contents: Contents,
}

impl Value {
    /// 0.
    pub const ZERO: Self = Self::of(Role::Zero);

    /// Just this role, without addend.
    #[must_use]
    pub const fn of(of: Role) -> Self {
        Self {
            of,
            addend: false,
            thumb: false,
            minus: Role::Zero,
            page: Page::Neither,
            contents: Contents::Ignored,
        }
    }

    /// ... + A.
    #[must_use]
    pub const fn plus_a(self) -> Self {
        Self { addend: true, ..self }
    }

    /// ... | T.
    #[must_use]
    pub const fn or_t(self) -> Self {
        Self { thumb: true, ..self }
    }

    /// ... - `minus`.
    #[must_use]
    pub const fn minus(self, minus: Role) -> Self {
        Self { minus, ..self }
    }

    /// Page(...) - Page(`minus`).
    #[must_use]
    pub const fn by_page(self) -> Self {
        Self { page: Page::Both, ..self }
    }

    /// Page(... + 0x800) - Page(`minus`).
    #[must_use]
    pub const fn by_nearest_page(self) -> Self {
        Self { page: Page::Nearest, ..self }
    }

    /// What is above 32 bits of the distance of pages that an instruction `back` bytes before the place begins.
    #[must_use]
    pub const fn by_upper_pages(self, back: u8) -> Self {
        Self { page: Page::Upper { back }, ..self }
    }

    /// ... - Page(`minus`).
    #[must_use]
    pub const fn minus_page(self) -> Self {
        Self { page: Page::Minus, ..self }
    }

    /// ... - Pa(`minus`): what is subtracted is rounded down to 4 bytes.
    #[must_use]
    pub const fn minus_word(self, minus: Role) -> Self {
        Self { minus, page: Page::MinusWord, ..self }
    }

    /// V + (...).
    #[must_use]
    pub const fn plus_v(self) -> Self {
        Self { contents: Contents::Plus, ..self }
    }

    /// V - (...).
    #[must_use]
    pub const fn from_v(self) -> Self {
        Self { contents: Contents::Minus, ..self }
    }

    /// Whether it is `of + A` or `of + A - P` and nothing else, for an `of` that is asked of the symbol.
    pub(crate) const fn is_plain(&self) -> bool {
        self.addend
            && !self.thumb
            && !matches!(self.of, Role::Zero | Role::Place | Role::Partner)
            && matches!(self.minus, Role::Zero | Role::Place)
            && matches!(self.page, Page::Neither)
            && matches!(self.contents, Contents::Ignored)
    }

    /// Whether it is the value of the partner and nothing else.
    pub(crate) const fn is_partner(&self) -> bool {
        !self.addend && self.is_sum() && matches!(self.of, Role::Partner)
    }

    /// Whether it is `of` or `of + A` and nothing else.
    pub(crate) const fn is_sum(&self) -> bool {
        !self.thumb
            && !matches!(self.of, Role::Zero)
            && matches!(self.minus, Role::Zero)
            && matches!(self.page, Page::Neither)
            && matches!(self.contents, Contents::Ignored)
    }
}

/// Which sides of a formula are rounded down to 4 KiB (`Page(x)` of AAELF64 and the LoongArch ABI).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Page {
    /// None.
    Neither,
    /// Only what is subtracted.
    Minus,
    /// Only what is subtracted, and to 4 bytes: Pa of AAELF32.
    MinusWord,
    /// Both.
    Both,
    /// Both, after 0x800 is added to the first: a signed 12-bit part comes back to it.
    Nearest,
    /// The upper 32 bits beside a lower part by [`Nearest`](Self::Nearest), of an instruction so many bytes before the place. They make
    /// up for the signs: the lower part's, and that of 12 bits, of which 64 bits were made and 32 kept. The lower 32 bits mean nothing.
    Upper {
        /// Bytes from the instruction with the lower part to the place.
        back: u8,
    },
}

impl Page {
    /// A bit of its own.
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Neither => 1,
            Self::Minus => 1 << 1,
            Self::MinusWord => 1 << 2,
            Self::Both => 1 << 3,
            Self::Nearest => 1 << 4,
            Self::Upper { .. } => 1 << 5,
        }
    }
}

/// What becomes of V, what the place holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contents {
    /// It is overwritten.
    Ignored,
    /// The formula is added to it.
    Plus,
    /// The formula is taken from it.
    Minus,
}

/// What a symbol is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Nothing: 0.
    Zero,
    /// P: the address of the place.
    Place,
    /// The value of the relocation that this one belongs with, by the formula, at the place and for the symbol of that one.
    Partner,
    /// S: the symbol's address.
    Address,
    /// L: where a branch to the symbol goes: a stub where S may be out of reach, else S.
    Plt,
    /// G + GOT: the address of the symbol's GOT entry of this content.
    Got(Slot),
    /// What an unwinding table holds of type information: G + GOT, or S where [the processors](crate::Arch::DIRECT_TYPE_INFO) are those of
    /// machines without a dynamic linker; who links may say which.
    TypeInfo,
    /// GOT: the base of the GOT.
    GotBase,
    /// B(S): the start of the segment that the symbol is in.
    SegmentBase,
    /// Z: the symbol's size in bytes.
    Size,
    /// The symbol's offset from the thread pointer.
    TpOffset,
    /// The symbol's offset in its module's block of thread-local storage.
    DtpOffset,
    /// The number of the module that has the symbol's block of thread-local storage.
    TlsModule,
    /// The function of the symbol's TLS descriptor.
    TlsDescFunction,
    /// The argument of the symbol's TLS descriptor, the addend included.
    TlsDescArgument,
    /// Where a call that asks a TLS descriptor goes: [`Tls::call`](crate::tls::Tls).
    TlsDescCall,
    /// B: what is added to the addresses that a linked file has, by where it stands in memory.
    Base,
    /// What the resolver at B + A returns.
    Indirect,
    /// On a GPU: the symbol's generic address.
    Generic,
    /// On a GPU: the address in unified memory.
    Unified,
    /// On a GPU: the function's descriptor.
    Descriptor,
    /// On a GPU: the number of the constant bank that holds the symbol.
    Bank,
    /// On a GPU: the slot of a texture, sampler or surface.
    TextureSlot,
    /// On a GPU: the index of a texture, sampler or surface header.
    HeaderIndex,
    /// On a GPU: a surface's hardware descriptor.
    SurfaceDescriptor,
    /// On a GPU: an instruction that the loader chooses.
    Instruction,
}

/// What a GOT entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// S, in one entry.
    Address,
    /// The symbol's offset from the thread pointer, in one entry.
    TpOffset,
    /// Module and offset, in two entries: general dynamic.
    TlsGd,
    /// Module and 0, in two entries, one pair for all symbols: local dynamic.
    TlsLd,
    /// A TLS descriptor, in two entries.
    TlsDesc,
}

impl Slot {
    /// Number of address-sized GOT entries.
    #[must_use]
    pub const fn entries(self) -> u64 {
        match self {
            Self::Address | Self::TpOffset => 1,
            Self::TlsGd | Self::TlsLd | Self::TlsDesc => 2,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zero => "value",
            Self::Place => "place",
            Self::Partner => "value of the relocation it belongs with",
            Self::Address => "address",
            Self::Plt => "branch target",
            Self::Got(Slot::Address) => "GOT entry",
            Self::Got(Slot::TpOffset) => "GOT entry of the thread pointer offset",
            Self::Got(Slot::TlsGd) => "GOT entries of module and offset",
            Self::Got(Slot::TlsLd) => "GOT entries of the module",
            Self::Got(Slot::TlsDesc) => "TLS descriptor",
            Self::TypeInfo => "type information",
            Self::GotBase => "GOT base",
            Self::SegmentBase => "segment base",
            Self::Size => "size",
            Self::TpOffset => "thread pointer offset",
            Self::DtpOffset => "offset in the TLS block",
            Self::TlsModule => "TLS module",
            Self::TlsDescFunction => "function of a TLS descriptor",
            Self::TlsDescArgument => "argument of a TLS descriptor",
            Self::TlsDescCall => "code that asks a TLS descriptor",
            Self::Base => "base address",
            Self::Indirect => "answer of a resolver",
            Self::Generic => "generic address",
            Self::Unified => "unified address",
            Self::Descriptor => "function descriptor",
            Self::Bank => "constant bank",
            Self::TextureSlot => "texture slot",
            Self::HeaderIndex => "header index",
            Self::SurfaceDescriptor => "surface descriptor",
            Self::Instruction => "instruction",
        })
    }
}
