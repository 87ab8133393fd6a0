//! Which members of archives a link takes: for what is undefined, and for what is only common.
//!
//! An archive is a choice: a member is taken if it defines a name that the objects so far miss. [`UndefinedSymbols`] knows what
//! they miss, [`MemberIndex`] which member defines it. Both are for executors and linkers, which read the files; what is taken is
//! given to [`Layout::plan`](crate::Layout::plan) behind the objects that asked for it.
//!
//! The rules are those of GNU ld: a reference takes the first member that defines its name, weakly or as common, too; a weak
//! reference takes none; a common symbol takes the first member with data of that name that are not common themselves (gABI
//! ch. 4, "Symbol Table", `STB_WEAK` and `SHN_COMMON`). What a discarded section group defines takes none, wherever it is defined
//! else.

mod index;
mod names;
mod undefined;

pub use index::MemberIndex;
pub use undefined::{Undefined, UndefinedSymbols};

use core::fmt;
use elf_core::names::{SHN_COMMON, SHN_X86_64_LCOMMON, STB_LOCAL, STB_WEAK, STT_FUNC};
use elf_core::{Name, Symbol, SymbolTable, Table};

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
enum Meaning {
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

/// Calls `each` with name and meaning of every symbol that other objects see.
fn globals<'a>(
    table: &SymbolTable<'a>,
    mut each: impl FnMut(Name<'a>, Meaning) -> Result<(), elf_core::Error>,
) -> Result<(), elf_core::Error> {
    let symbols = table.symbols().slice(1, table.len()).unwrap_or(Table::empty());
    symbols.try_for_each(|symbol| match Meaning::of(&symbol) {
        Some(meaning) => each(table.name_of(&symbol)?, meaning),
        None => Ok(()),
    })
}
