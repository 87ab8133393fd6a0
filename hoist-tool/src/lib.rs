//! The command line `hoist`, and what its commands are made of.
//!
//! What is printed for people may change between versions; keys of what is printed for programs (`JSON.md`) stay. The crates that
//! do the work are under one name in `hoist`.
#![deny(unsafe_code)]

#[cfg(all(feature = "device-code", not(target_family = "wasm")))]
pub mod alone;
pub mod apart;
pub mod arguments;
pub mod at_once;
pub mod budget;
#[cfg(any(feature = "host", feature = "nv"))]
pub mod call;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod calling;
#[cfg_attr(target_family = "wasm", path = "cmd/wasm.rs")]
pub mod cmd;
pub mod demangle;
pub mod explain;
pub mod faults;
mod form;
pub mod input;
pub mod json;
#[cfg(feature = "device-code")]
pub mod kernel_filter;
#[cfg(feature = "device-code")]
pub mod kernel_name;
pub mod lent;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "opens the libraries that the user asks for")]
pub mod libraries;
#[cfg(not(target_family = "wasm"))]
pub mod line;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "opens the libraries that the user asks for")]
pub mod loading;
pub mod machine;
#[cfg(not(target_family = "wasm"))]
pub mod map;
#[cfg_attr(target_family = "wasm", path = "mapped/wasm.rs")]
#[cfg_attr(not(target_family = "wasm"), expect(unsafe_code, reason = "files are mapped, not read"))]
pub mod mapped;
#[cfg(any(feature = "disasm", feature = "host"))]
mod meant;
pub mod member;
pub mod number;
pub mod objects;
#[cfg(feature = "device-code")]
pub mod occupancy;
#[cfg_attr(target_family = "wasm", path = "output/wasm.rs")]
pub mod output;
pub mod overlap;
pub mod paint;
#[cfg(feature = "device-code")]
pub mod panel;
#[cfg(feature = "device-code")]
pub mod pattern;
pub mod picture;
pub mod printable;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "runs the program that the user asks for")]
mod program;
#[cfg_attr(target_family = "wasm", path = "progress/wasm.rs")]
pub mod progress;
#[cfg(feature = "device-code")]
pub mod ptx;
pub mod read;
#[cfg(all(feature = "device-code", not(target_family = "wasm")))]
pub mod sass;
#[cfg_attr(target_family = "wasm", path = "scratch/wasm.rs")]
pub mod scratch;
#[cfg(feature = "device-code")]
pub mod share;
pub mod shown;
#[cfg(feature = "device-code")]
pub mod sources;
pub mod table;
pub mod words;
#[cfg(feature = "jit")]
mod zig;
