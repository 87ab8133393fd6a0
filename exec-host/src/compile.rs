//! Compilers of this machine: source in, relocatable object out, nothing on disk in between.
//!
//! ```
//! use exec_core::{Compiler as _, NoCache};
//! use exec_host::compile::GccCompiler;
//! use exec_host::{Module, Process};
//!
//! # if GccCompiler::find(&NoCache).is_err() { return Ok(()) }
//! let compiler = GccCompiler::find(&NoCache)?;
//! let compiled = compiler.compile_cached("int twice(int x) { return 2 * x; }", &NoCache)?;
//! let mut process = Process::new();
//! let module = Module::load([compiled.image], &mut |name| process.find(name))?;
//! // SAFETY: the source is above.
//! let twice = unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("twice")? };
//! // SAFETY: as above.
//! assert_eq!(unsafe { twice(21) }, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources are C, or what the [family](Family) of the compiler says: C++, Fortran, assembly, Rust. C, C++ and assembly that includes files is preprocessed before it is looked up in a cache, so that a changed
//! header is a changed source. Rust that has `include!` or `mod` in other files is not looked through: do not cache it.
//! Options come from here alone, but compilers also read their environment (`GCC_EXEC_PREFIX`, `RUSTC_WRAPPER` and so on).

mod driver;
mod family;
mod search;
mod target;
mod tool;
mod version;

pub use driver::CompilerDriver;
pub use family::{
    Clang, ClangAssembly, ClangCpp, Family, Gcc, GccAssembly, GccCpp, Gfortran, Rustc,
};

/// Compiles C with Clang.
pub type ClangCompiler = CompilerDriver<Clang>;
/// Compiles C with GCC.
pub type GccCompiler = CompilerDriver<Gcc>;
/// Compiles Rust.
pub type RustcCompiler = CompilerDriver<Rustc>;
