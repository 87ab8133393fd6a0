//! What symbols mean to other objects, and why members are looked for.

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
#[derive(Clone, Copy, PartialEq, Eq)]
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

/// What is known of the names of an object's symbols that other objects see, once they have been read.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadNames<'r> {
    /// Hash and length of each.
    pub(super) names: &'r [(Hash, u32)],
    /// Whether some have versions.
    pub(super) have_versions: bool,
}

/// Calls `each` with every symbol that other objects see.
pub(super) fn globals<'a>(
    table: &SymbolTable<'a>,
    each: impl FnMut(Global<'a>) -> Result<(), elf_core::Error>,
) -> Result<(), elf_core::Error> {
    // of most objects no name has one
    let have_versions = have_versions(table);
    globals_by(table, have_versions, each, |symbol| {
        let name = table.name_of(symbol)?;
        Ok((Hash::of(name), name))
    })
}

/// The same for an object whose names have been read.
pub(super) fn globals_again<'a>(
    table: &SymbolTable<'a>,
    read: ReadNames<'_>,
    each: impl FnMut(Global<'a>) -> Result<(), elf_core::Error>,
) -> Result<(), elf_core::Error> {
    let mut names = read.names.iter();
    globals_by(table, read.have_versions, each, |symbol| {
        let name = names.next().and_then(|&(hash, length)| {
            let start = usize::try_from(symbol.name).ok()?;
            let rest = table.names().as_bytes().get(start..)?;
            Some((hash, Name(rest.get(..length as usize)?)))
        });
        match name {
            Some(name) => Ok(name),
            None => table.name_of(symbol).map(|name| (Hash::of(name), name)),
        }
    })
}

/// Whether names of symbols have versions.
fn have_versions(table: &SymbolTable<'_>) -> bool {
    table.names().as_bytes().contains(&b'@')
}

#[inline]
fn globals_by<'a>(
    table: &SymbolTable<'a>,
    have_versions: bool,
    mut each: impl FnMut(Global<'a>) -> Result<(), elf_core::Error>,
    mut name_of: impl FnMut(&Symbol) -> Result<(Hash, Name<'a>), elf_core::Error>,
) -> Result<(), elf_core::Error> {
    let symbols = table.symbols().slice(1, table.len()).unwrap_or(Table::empty());
    let mut index = 0u32;
    symbols.try_for_each(|symbol| {
        index = index.saturating_add(1);
        let Some(meaning) = Meaning::of(&symbol) else { return Ok(()) };
        let (hash, name) = name_of(&symbol)?;
        let version = if have_versions { name.version() } else { None };
        each(Global { index, name, hash, meaning, version })
    })
}
