//! Changes the contents of ELF files that are linked already, of objects, and of archives, so that they still work.
//!
//! ```
//! use elf_rewrite::Rewriter;
//!
//! // an archive with one member, which is nothing but two regions of five bytes
//! let header = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "greetings/", 0, 0, 0, 644, 10);
//! let file = ["!<arch>\n", &header, "hello", "world"].concat();
//!
//! let mut rewriter = Rewriter::open(file.as_bytes())?;
//! rewriter.keep(68..73)?;
//! rewriter.replace(73..78, "everybody")?;
//! let plan = rewriter.plan()?;
//! assert_eq!((plan.growth(), plan.in_place, plan.moved), (4, 1, 0));
//!
//! let mut written = Vec::new();
//! plan.write(file.as_bytes(), &mut written)?;
//! assert!(written.ends_with(b"14        `\nhelloeverybody"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does
//! A *region* is a range of the file that others know by its start only. The caller says where regions are, and what becomes of
//! them ([`Rewriter`]); the result is a [`RewritePlan`] that tells the changed file [`Piece`] by piece, so that neither the file nor
//! large contents are copied in memory.
//!
//! * **Objects and archives**: what follows a region that grows or shrinks moves along; headers, symbols, addends, sizes and
//!   the archive's table of symbols follow.
//! * **Libraries and executables**: a section of nothing but regions is laid out anew, one region behind the other, where it is if
//!   there is room, else in a new segment behind all others. What is free goes from the file; where that is in the middle of a
//!   segment, it becomes two. Relocations, symbols and pointers follow. Nothing else that is loaded moves, but for tables right
//!   behind the program headers if one more header needs their place. Section headers stay in the order of addresses, so that
//!   tools which write such files anew keep them whole.
//! * **Proof**: no region moves of which it is not known who points to it. All code is decoded (x86-64, AArch64), all forms of
//!   relocations, and in programs at fixed addresses all words: what refers to a region otherwise than by its start, or by an
//!   instruction, is an [`Error`] that names it. Nothing is written then. Where a region may not move and need not, it stays.
//!   One that nothing refers to goes along with its section if its bytes stay as they are.
//!   Tables among code of x86-64 are no code where a symbol says so, or where they stand outside of all functions that symbols and
//!   the index of frames name, behind bytes that are no instruction.
//!
//! # Features
//! `fatbin`: `Rewriter::of_device_code`, for files with NVIDIA's device code, which knows what leads to it.
//!
//! # Layers
//! Stands on `elf-core`, and knows nothing of what regions hold without the feature `fatbin`. No `unsafe`; no panic on any bytes is tested, not proven.
//!
//! # What it does not promise
//! ELF files of 32 bits or big-endian, relocations without addends, packed relocations of Android and BSD's archives are refused.
//! A build-id or signature is not made anew: [`Remark`]s say so.
#![forbid(unsafe_code)]

mod archive;
mod change;
#[cfg(feature = "fatbin")]
mod device_code;
mod edits;
mod elf;
mod error;
mod linked;
mod object;
mod plan;
mod rewriter;

pub use error::{Error, ErrorKind, Referrer};
pub use plan::{Piece, Remark, RewritePlan};
pub use rewriter::Rewriter;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
