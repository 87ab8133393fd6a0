//! Loads relocatable objects into this process and gives typed functions out.
//!
//! Linux on x86-64, AArch64, RISC-V of 64 bits and Arm of 32 (from Armv7 on, hard-float). A [`Module`] is what was loaded together; it owns its memory, which is never writable and
//! executable at once, and gives out [`TypedFunction`]s that cannot outlive it.
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
//!
//! # What is relied on
//!
//! Loading runs no code of the objects and is safe, whatever the bytes: relocations stay inside of the load, constructors, destructors and
//! unwinding tables lead into its code. Who calls what was loaded, or lets constructors run, guarantees it: that code may do anything.
//!
//! # Unloading
//!
//! A [`Module`] that is dropped is gone when these are over: destructors that its code has registered with the C library for a thread's
//! end (they keep the memory until that thread has ended); modules loaded later that use its symbols; calls queued on a
//! `HostDevice`. What nobody can see is left to who made the call `unsafe`: that no thread is inside of the code, or comes back to it,
//! when the last of these goes. Pages of unloaded code are not executable any more: such a thread crashes, and runs no other code.
//!
//! Libraries whose symbols a module uses stay open as long as the module, whoever closes them; what else is used of them by address
//! ([`External`]) is for who gave the address.
//!
//! # Forks
//!
//! A child has copies of its parent's modules, data included, and may call them, load, unload and unwind, as far as it may use the C
//! library: of a parent with several threads that is, until `exec`, what POSIX calls async-signal-safe. What other threads of the parent were
//! about here is done or not begun in the child: `fork` waits for that, each constructor and destructor included, a second at most: what takes
//! longer the child has unfinished, as functions that are being compiled and calls of a device. It does not wait for threads that unwind, for
//! which libgcc before GCC 13 has a lock where tables are registered. Destructors of a module run in each process that drops it. A `HostDevice` has no threads in a child: calls run where they are waited for, and dropping it runs nothing.
//! A crash of a child inside of a guarded call that its parent had begun ends the child. Observers of the parent (`PerfMap`, `JitDump`)
//! name the parent in a child, too.

#[cfg(not(all(
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        all(target_arch = "arm", target_abi = "eabihf", target_endian = "little")
    )
)))]
compile_error!(
    "exec-host runs on Linux, on x86-64, AArch64, RISC-V of 64 bits and Arm with hard-float"
);

mod at_once;
mod budget;
mod c_library;
#[cfg(feature = "compile")]
pub mod compile;
#[cfg(doctest)]
mod compile_fail;
mod contents;
mod copy_relocations;
mod descriptions;
#[cfg(feature = "device")]
pub mod device;
mod dlsym;
#[cfg(feature = "dynamic")]
pub mod dynamic;
mod error;
mod exit;
mod external;
mod fragments;
mod free_ranges;
mod function;
mod group;
#[cfg(feature = "device")]
mod guard;
pub mod image;
mod initialize;
mod interpose;
mod lazy;
pub mod library;
mod library_words;
mod loader;
mod machine;
mod mapped_image;
mod memory;
mod module;
mod notable;
pub mod observer;
mod opened;
mod process;
mod processor;
pub mod program;
mod replace;
mod resolvers;
mod section_names;
mod start;
mod switches;
pub mod symbols;
mod threads;
mod unwind;
mod word;
mod words;

pub use error::{Error, UndefinedSymbol};
pub use external::External;
pub use function::{FunctionPointer, TypedFunction};
pub use group::ModuleGroup;
pub use lazy::{LazyFunctions, LazyTarget};
pub use loader::Loader;
pub use machine::Host;
pub use memory::{ArenaStatistics, CodeArena};
pub use module::Module;
pub use module::inspect::{ModuleSection, ModuleSizes, ModuleSymbol};
pub use process::Process;
pub use replace::Replacement;
pub use threads::StaticTlsReserve;

/// The example of `README.md`, as a test.
#[cfg(all(doctest, target_arch = "x86_64"))]
#[doc = include_str!("../README.md")]
mod readme {}
