//! What each fuzz target does with any bytes. A target is a file here, with `run`; three lines in `fuzz_targets/`; a line of
//! [`TARGETS`].
//!
//! The same files are compiled by `xtask/tests/fuzz.rs`, which runs fixtures and old findings (`fuzz/regressions/TARGET/`)
//! through them on the stable compiler.

pub mod apply;
pub mod archive;
pub mod cubin;
pub mod device_link;
pub mod eh_frame;
pub mod fatbin;
pub mod file;
pub mod image;
mod input;
pub mod layout;
pub mod link;
pub mod offload;
pub mod placement;
pub mod seeds;
mod sink;

/// A target: its name, and what it does with any bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("apply", apply::run),
    ("archive", archive::run),
    ("cubin", cubin::run),
    ("device_link", device_link::run),
    ("eh_frame", eh_frame::run),
    ("fatbin", fatbin::run),
    ("file", file::run),
    ("image", image::run),
    ("layout", layout::run),
    ("link", link::run),
    ("offload", offload::run),
];
