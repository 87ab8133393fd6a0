//! Who is told of loads: debuggers, profilers.
//!
//! `JitDump` is there with the feature `jitdump`.

mod debug_library;
mod debug_object;
mod gdb;
#[cfg(feature = "jitdump")]
mod jitdump;
mod library;
#[cfg(feature = "jitdump")]
mod lines;
mod loaded;
mod observe;
mod perf_map;

pub use gdb::GdbInterface;
#[cfg(feature = "jitdump")]
pub use jitdump::JitDump;
pub use library::LoadedLibrary;
pub use loaded::{Loaded, LoadedFunction};
pub use observe::{Observed, Observer};
pub use perf_map::PerfMap;
