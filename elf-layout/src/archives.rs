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
mod meaning;
mod names;
mod read;
mod string;
mod table;
mod taken;
mod undefined;

pub use crate::model::name_numbers::NameNumbers;
pub use index::MemberIndex;
pub use meaning::{MemberError, Undefined, names_limit};
pub use taken::Taken;
pub use undefined::UndefinedSymbols;
