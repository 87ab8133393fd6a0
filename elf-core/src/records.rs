//! Relocations in all the forms that sections keep them in.
//!
//! Tables (`SHT_REL`, `SHT_RELA`, those of MIPS64), relative ones as maps of bits (`SHT_RELR`), differences as LEB128
//! (`SHT_CREL`), Android's groups. Whatever the form, what is read is a [`Record`](crate::Record); what a record means is
//! for others to say.

pub(crate) mod android;
pub(crate) mod crel;
#[cfg(feature = "packed-relocations")]
pub(crate) mod indexed;
pub(crate) mod leb;
#[cfg(feature = "packed-relocations")]
mod packed;
pub(crate) mod relocations;
pub(crate) mod relr;
pub(crate) mod rows;
mod section;
