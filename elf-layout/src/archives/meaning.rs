//! What symbols mean to other objects, and why members are looked for.

use super::string::hash_string;
use super::table::Hash;
use core::fmt;
use elf_core::names::{SHN_COMMON, SHN_X86_64_LCOMMON, STB_LOCAL, STB_WEAK, STT_FUNC};
use elf_core::{Name, Symbol, SymbolTable, Table};

/// Why a member is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// No object defines the name: any definition will do.
    Missing,
    /// Objects have it as a common symbol: only data that are not common take its place.
    Common,
}

/// What is wrong with a member of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberError {
    /// Number of the member, from 0.
    pub member: usize,
    /// What is wrong, at an offset in the member.
    pub error: elf_core::Error,
}

impl fmt::Display for MemberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {}: {}", self.member, self.error)
    }
}

impl core::error::Error for MemberError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Bytes that the names of an object of so many bytes may have in all. Names share their ends, so that a hostile table makes many
/// long ones out of few bytes; compilers come to less than the size of the object.
#[must_use]
pub const fn names_limit(object: u64) -> u64 {
    object.saturating_mul(16).saturating_add(1 << 20)
}

/// What a global symbol means to other objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Not defined here, and has to be elsewhere.
    Undefined,
    /// Not defined here, nor anywhere.
    WeakReference,
    /// Defined, unless another object does so.
    Weak,
    /// Defined, unless another object does so without being common or weak.
    Common,
    /// A function that is defined: it is no definition of what others have as common.
    Function,
    /// Defined.
    Data,
}

impl Meaning {
    /// `None` for what other objects do not see.
    const fn of(symbol: &Symbol) -> Option<Self> {
        Some(match (symbol.binding(), symbol.shndx) {
            (STB_LOCAL, _) => return None,
            (STB_WEAK, _) if symbol.is_undefined() => Self::WeakReference,
            (_, _) if symbol.is_undefined() => Self::Undefined,
            (_, SHN_COMMON | SHN_X86_64_LCOMMON) => Self::Common,
            (STB_WEAK, _) => Self::Weak,
            _ if symbol.r#type() == STT_FUNC => Self::Function,
            _ => Self::Data,
        })
    }
}

/// A name without its version, the version, and whether that is the default one ([`Name::version`]).
pub(super) type Versioned<'a> = (Name<'a>, Name<'a>, bool);

/// A symbol that other objects see.
pub(super) struct Global<'a> {
    /// Its index.
    pub(super) index: u32,
    pub(super) name: Name<'a>,
    pub(super) hash: Hash,
    pub(super) meaning: Meaning,
    /// The parts of a name that has a version.
    pub(super) version: Option<Versioned<'a>>,
}

/// Calls `each` with every symbol that other objects see.
pub(super) fn globals<'a>(
    table: &SymbolTable<'a>,
    mut each: impl FnMut(Global<'a>) -> Result<(), elf_core::Error>,
) -> Result<(), elf_core::Error> {
    let names = table.names().as_bytes();
    let symbols = table.symbols().slice(1, table.len()).unwrap_or(Table::empty());
    let mut index = 0u32;
    symbols.try_for_each(|symbol| {
        index = index.saturating_add(1);
        let Some(meaning) = Meaning::of(&symbol) else { return Ok(()) };
        let rest = usize::try_from(symbol.name).ok().and_then(|start| names.get(start..));
        let found = rest.and_then(|rest| Some((rest, hash_string(rest)?)));
        let found = found.and_then(|(rest, found)| Some((rest.get(..found.length)?, found)));
        let (name, hash, may_have_version) = match found {
            Some((name, found)) => (Name(name), Hash::from(found), found.may_have_version),
            // no name in an empty table, or an error
            None => (table.name_of(&symbol)?, Hash::of(Name::default()), false),
        };
        let version = if may_have_version { name.version() } else { None };
        each(Global { index, name, hash, meaning, version })
    })
}
