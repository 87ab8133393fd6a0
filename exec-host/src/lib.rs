//! Loads relocatable objects into this process and gives typed functions out.
//!
//! Linux on x86-64 and AArch64. A [`Module`] is what was loaded together; it owns its memory, which is never writable and
//! executable at once, and gives out [`Function`]s that cannot outlive it.
//!
//! ```
//! use exec_host::{Module, Process};
//!
//! # #[cfg(target_arch = "x86_64")] {
//! let object = include_bytes!("../../fixtures/x86_64/elftest.o");
//! let mut process = Process::new();
//! let module = Module::load([&object[..]], &mut |name| process.find(name))?;
//! // SAFETY: the object was compiled from `float foo(int x) { return x + 12345678.f; }`.
//! let foo = unsafe { module.get::<unsafe extern "C" fn(i32) -> f32>("foo")? };
//! // SAFETY: as above.
//! assert_eq!(unsafe { foo(321) }, 12345999.0);
//! # }
//! # Ok::<(), exec_host::Error>(())
//! ```
//!
//! Exceptions and panics cross loaded frames: unwinding tables are made known to the process.
//!
//! Thread-local variables are there in every thread of the process, whether it was there before the load or came after it: the C
//! library takes care of them. Resolvers of indirect functions (`STT_GNU_IFUNC`) run right before the constructors.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("exec-host runs on Linux, on x86-64 and AArch64");

mod budget;
#[cfg(feature = "compile")]
pub mod compile;
mod contents;
#[cfg(feature = "device")]
pub mod device;
#[cfg(feature = "dynamic")]
pub mod dynamic;
mod error;
mod exit;
mod function;
#[cfg(feature = "device")]
mod guard;
pub mod image;
mod initialize;
mod loader;
mod machine;
mod memory;
mod module;
mod moved;
pub mod observer;
mod process;
mod processor;
mod replace;
mod resolvers;
mod switches;
pub mod symbols;
mod threads;
mod unwind;
mod words;

pub use elf_layout::External;
pub use error::{Error, Undefined};
pub use function::{Function, FunctionPointer};
pub use loader::Loader;
pub use machine::Host;
pub use module::Module;
pub use process::Process;
pub use replace::Replacement;

/// The example of `README.md`, as a test.
#[cfg(all(doctest, target_arch = "x86_64"))]
#[doc = include_str!("../README.md")]
mod readme {}
