//! What a dynamic linker goes by: the dynamic section, hash tables, symbol versions.
//!
//! Found by sections or, in files without them, by addresses.

mod address;
mod chain;
pub(crate) mod gnu_hash;
pub(crate) mod hash;
pub(crate) mod section;
pub mod version;
mod version_list;
