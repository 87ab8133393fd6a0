//! Unwinding tables (`.eh_frame`: LSB Core, "Exception Frames"; DWARF 5, section 6.4), checked before they are handed to an unwinder.
//!
//! Unwinders trust such a table: one wrong length, and the next backtrace reads where nothing is. [`EhFrame::check`] reads a table as the
//! unwinder of GCC does, which every Linux has, and refuses what that cannot take, with the offset of the bytes at fault.
//!
//! ```
//! use elf_core::eh_frame::{EhFrame, Machine, Places, Summary};
//!
//! /// Code, and nothing else: no personality routine, no table of exceptions.
//! struct Code(core::ops::Range<u64>);
//!
//! impl Places for Code {
//!     fn is_code(&self, address: u64, size: u64) -> bool {
//!         self.0.start <= address && size <= self.0.end.saturating_sub(address)
//!     }
//! }
//!
//! // one function, 16 bytes at 0x1000, its frame as it is where it begins
//! let table = [
//!     &[0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0][..],
//!     &[0x10, 0, 0, 0, 0x1c, 0, 0, 0, 0xe0, 0xff, 0xff, 0xff, 16, 0, 0, 0, 0, 0, 0, 0],
//! ].concat();
//! let frames = EhFrame { bytes: &table, address: 0x1000, machine: Machine::X86_64 };
//! let code = Code(0x1000..0x1010);
//! assert_eq!(frames.check(&code)?, Summary { cies: 1, fdes: 1, absent: 0, size: 44 });
//!
//! let error = frames.check(&Code(0x2000..0x2010)).unwrap_err();
//! assert_eq!(error.to_string(), "code at 0x1000, 0x10 bytes, is not of this load, at offset 0x20");
//! # Ok::<_, elf_core::eh_frame::Error>(())
//! ```
//!
//! What the rules for a frame *mean* is not judged: who runs the code relies on them as on the code itself. An unwinder looks for
//! functions in all tables, whoever's frames it walks; it follows the rules of those functions only that are being called.

mod check;
mod cie;
mod context;
mod error;
mod expression;
mod fde;
mod pointer;
mod program;
mod reader;
mod record;

pub use check::{Described, EhFrame, Summary};
pub use context::{Machine, Places};
pub use error::{Error, ErrorKind};

#[cfg(test)]
mod tests;
