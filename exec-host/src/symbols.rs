//! Where symbols come from that no object of a load defines.
//!
//! ```
//! use exec_host::symbols::{Symbols as _, from_fn};
//! use exec_host::{External, Loader, Process};
//! use std::sync::Arc;
//!
//! # #[cfg(target_arch = "x86_64")] {
//! extern "C" fn own() {}
//!
//! let loader = Loader::new();
//! let first = include_bytes!("../../fixtures/x86_64/elftest.o");
//! let first = Arc::new(loader.load([&first[..]], Process::new())?);
//! // asked in this order: an earlier load, the program itself, the libraries of the process
//! let ours = from_fn(|name| (name == "own").then(|| External::function(own as *const () as u64)));
//! let symbols = first.or(ours).or(Process::new());
//! let second = include_bytes!("../../fixtures/x86_64/pair-b-gcc12-pic.o");
//! assert!(loader.load([&second[..]], symbols).is_err(), "it wants what pair-a has");
//! # }
//! # Ok::<(), exec_host::Error>(())
//! ```

mod archive;
mod data;
mod exports;
mod links;
mod name_table;
mod shared_bytes;
mod source;

pub use archive::ArchiveSource;
pub use data::keep_data;
pub(crate) use exports::Exports;
pub(crate) use links::LoadSymbols;
pub use shared_bytes::SharedBytes;
pub use source::{Found, FromFn, Keeper, Or, Symbols, from_fn};
