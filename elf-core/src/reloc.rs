//! Relocation: what a kind is, what is to be done at a place, and doing it.
//!
//! From the bottom up: words ([`value`], [`check`], [`attributes`], [`field`], [`stub`], [`kind`], [`tls`]), of which architectures make their
//! tables; what is asked of symbols ([`query`]); what is decided about a record ([`site`], [`rewrite`], [`shrink`], [`decide`]); the one verb
//! ([`apply`]), which writes what was decided, and that of loaders of linked files ([`dynamic`]).
//!
//! A record is decided in one place, by a pure function of the records, the bytes and what is known of symbols. Who counts what
//! relocations need and who writes go over the same decisions, and so agree.

pub(crate) mod apply;
pub(crate) mod arch;
pub(crate) mod attributes;
mod bits;
pub(crate) mod check;
pub(crate) mod decide;
pub(crate) mod dynamic;
pub(crate) mod error;
pub(crate) mod field;
pub(crate) mod in_place;
pub(crate) mod kind;
pub(crate) mod pairing;
pub(crate) mod query;
pub(crate) mod rewrite;
pub(crate) mod shift;
pub(crate) mod shrink;
pub(crate) mod site;
pub(crate) mod stub;
pub mod tls;
pub(crate) mod value;
