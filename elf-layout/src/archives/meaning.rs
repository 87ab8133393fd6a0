//! What symbols mean to other objects, and why members are looked for.

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
    /// `None` for what other objects do not see, or do not have to define.
    const fn of(symbol: &Symbol) -> Option<Self> {
        Some(match (symbol.binding(), symbol.shndx) {
            (STB_LOCAL, _) => return None,
            (STB_WEAK, _) if symbol.is_undefined() => return None,
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

/// Calls `each` with name and meaning of every symbol that other objects see, and the parts of a name that has a version.
pub(super) fn globals<'a>(
    table: &SymbolTable<'a>,
    mut each: impl FnMut(Name<'a>, Meaning, Option<Versioned<'a>>) -> Result<(), elf_core::Error>,
) -> Result<(), elf_core::Error> {
    // of most objects no name has one
    let has_versions = table.names().as_bytes().contains(&b'@');
    let symbols = table.symbols().slice(1, table.len()).unwrap_or(Table::empty());
    symbols.try_for_each(|symbol| match Meaning::of(&symbol) {
        Some(meaning) => {
            let name = table.name_of(&symbol)?;
            each(name, meaning, if has_versions { name.version() } else { None })
        }
        None => Ok(()),
    })
}
