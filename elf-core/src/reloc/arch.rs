//! An architecture: its tables, and the few questions that tables do not answer.

use super::attributes::{BuildAttributes, SymbolAttributes};
use super::kind::{Kind, find};
use super::query::Query;
use super::rewrite::GotLoad;
use super::stub::{Stub, StubChoice};
use super::tls::Tls;
use crate::error::Error;
use crate::file::File;
use crate::views::symbol::Symbol;

/// An architecture: its relocation kinds and what a linker adds on its behalf.
///
/// ```
/// use elf_core::{Arch, Check, Entry, Field, File, Kind, Query, Role, SectionMut, Stub, Value, apply_all};
///
/// elf_core::kinds! {
///     R_SMALL_NONE   = 0: marker();
///     R_SMALL_ABS32  = 1: new(Value::of(Role::Address).plus_a(),           Check::Any, Field::DATA32);
///     R_SMALL_REL32  = 2: new(Value::of(Role::Address).plus_a().minus(Role::Place), Check::Any, Field::DATA32);
/// }
///
/// struct Small;
///
/// impl Arch for Small {
///     const MACHINE: u16 = 0x1234;
///     const ADDRESS_SIZE: u64 = 4;
///     const KINDS: &'static [Kind] = KINDS;
///     const STUBS: &'static [Stub] = &[];
/// }
///
/// // r_offset, r_info (symbol 5), r_addend: twice
/// let words = [0u32, 5 << 8 | R_SMALL_ABS32, 8, 4, 5 << 8 | R_SMALL_REL32, 0];
/// let table: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let records = elf_core::Relocations::Rela(elf_core::Table::parse(&table, elf_core::Encoding::Elf32Le, 0, 2)?);
///
/// let mut bytes = [0; 8];
/// let mut section = SectionMut { bytes: &mut bytes, address: 0x1000, big_endian: false };
/// apply_all::<Small>(records, &mut section, &|query: &Query| (query.symbol == 5).then_some(0x2000))?;
/// assert_eq!(bytes, [0x08, 0x20, 0, 0, 0xfc, 0x0f, 0, 0]); // 0x2008, 0x2000 - 0x1004
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Arch {
    /// `e_machine`.
    const MACHINE: u16;
    /// Size of an address and of a GOT entry in bytes: 4 or 8. Values are computed modulo that size.
    const ADDRESS_SIZE: u64;
    /// All kinds, by rising number.
    const KINDS: &'static [Kind];
    /// Code that jumps to a symbol, at most three kinds of it; none if the architecture needs none. The first is the symbol's
    /// address where a function of the process stands too far away for one.
    const STUBS: &'static [Stub];
    /// Thread-local storage, if the architecture has any.
    const TLS: Option<Tls> = None;
    /// Whether the GOT entry of a symbol may be done without only if nobody uses it any more: what is loaded for one use may serve
    /// another that does not say so.
    const RELAXES_ALL_OR_NONE: bool = false;

    /// The load from the GOT that most relaxed code has, if it has one: where the address is near, it is rewritten as
    /// [`Special::Relax`](crate::Special::Relax) would, without asking that.
    const GOT_LOAD: Option<GotLoad> = None;

    /// Whether the stub of a branch depends on the attributes of its target: on T, or `st_other`.
    const HAS_STATES: bool = false;

    /// Bits of `e_flags` that must be alike in all objects with code, and what they say.
    const EQUAL_FLAGS: &'static [(u32, &'static str)] = &[];

    /// Fields of [`BuildAttributes::abi`] that must be alike in all objects with code in which they are not 0, and what they say.
    const EQUAL_ATTRIBUTES: &'static [(u32, &'static str)] = &[];

    /// Bits of [`BuildAttributes::processor`] of processors whose code is little-endian beside big-endian data, though that of objects is not.
    const LITTLE_ENDIAN_CODE: u32 = 0;

    /// Bits of [`BuildAttributes::processor`] of processors on whose machines unwinding tables hold addresses of type information, not
    /// of its GOT entries: [`Role::TypeInfo`](crate::Role). 0 where no relocation asks for these.
    const DIRECT_TYPE_INFO: u32 = 0;

    /// Bits of [`BuildAttributes::processor`] of code that has the register of the global pointer for something else: no code is made to
    /// count from there beside it.
    const NO_GLOBAL_POINTER: u32 = 0;

    /// What an object says of how it was built, beside `e_flags`.
    ///
    /// # Errors
    /// If what it says cannot be read, or its code is of a form that is not supported.
    fn build_attributes(file: &File<'_>) -> Result<BuildAttributes, Error> {
        let _ = file;
        Ok(BuildAttributes::default())
    }

    /// What a relocation that counts from its place takes for the address of a weak symbol that nobody defines: 0 unless the ABI says
    /// otherwise.
    #[must_use]
    fn undefined_weak(query: &Query) -> Option<u64> {
        let _ = query;
        None
    }

    /// The stub of a branch by this kind of relocation to a symbol of these attributes; `None` if the ABI lets it go directly only.
    #[must_use]
    #[inline]
    fn stub(kind: &Kind, target: SymbolAttributes) -> Option<StubChoice> {
        let _ = (kind, target);
        if Self::STUBS.is_empty() { None } else { Some(StubChoice::new(0)) }
    }

    /// The address that `st_value` says, and what else the symbol says of it.
    #[must_use]
    #[inline]
    fn symbol(symbol: &Symbol) -> (u64, SymbolAttributes) {
        (symbol.value, SymbolAttributes::new(false, symbol.other))
    }
}

/// The row of this number of an architecture: found at once for most numbers, where there is room for a table of them.
#[must_use]
#[inline]
pub fn find_of<A: Arch>(number: u32) -> Option<&'static Kind> {
    if cfg!(target_pointer_width = "64") {
        let places = const { &places(A::KINDS) };
        let place = places.get(number as usize & 0xff).copied().map(usize::from);
        let kind = place.and_then(|place| A::KINDS.get(place));
        if let Some(kind) = kind.filter(|kind| kind.number == number) {
            return Some(kind);
        }
    }
    find(A::KINDS, number)
}

/// Where the rows stand, by the low 8 bits of their numbers; of several the first.
#[expect(clippy::indexing_slicing, reason = "a table that the compiler makes")]
const fn places(kinds: &[Kind]) -> [u8; 256] {
    let mut places = [u8::MAX; 256];
    let (mut rest, mut place) = (kinds, 0u8);
    while let [kind, tail @ ..] = rest
        && place < u8::MAX
    {
        let at = kind.number as usize & 0xff;
        if places[at] == u8::MAX {
            places[at] = place;
        }
        (rest, place) = (tail, place + 1);
    }
    places
}
