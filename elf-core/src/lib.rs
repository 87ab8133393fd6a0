//! Zero-copy ELF parsing and the vocabulary of relocation.
#![no_std]
#![forbid(unsafe_code)]

pub mod names;
