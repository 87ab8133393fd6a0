//! The subcommands that there are without a system: those that look into files.

#[path = "cubin/wasm.rs"]
pub mod cubin;
#[path = "fatbin/wasm.rs"]
pub mod fatbin;
pub mod layout;
pub mod show;
pub mod views;
