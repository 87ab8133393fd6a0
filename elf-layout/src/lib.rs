//! Where the sections of relocatable objects go, in storage the caller lends.
#![no_std]
#![forbid(unsafe_code)]

mod error;
mod groups;
mod hash;
mod layout;
mod needs;
mod options;
mod place;
mod resolve;
mod sections;
mod storage;
mod symbols;
mod view;
mod write;

pub use error::{Error, ErrorKind};
pub use layout::{External, Layout};
pub use options::{Mode, Options};
pub use place::Segment;
pub use storage::{ObjectSlot, Requirements, SectionSlot, Storage, SymbolSlot};
pub use view::{Address, FixedSection, GotEntry, StubEntry};
