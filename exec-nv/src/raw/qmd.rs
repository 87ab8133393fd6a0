//! Queue meta data: the block of 256 or 384 bytes that tells the compute engine what to launch.
//!
//! A field is a name and, for each version, the bits it takes (`clc6c0qmd.h`, `clcbc0qmd.h`, `clcdc0qmd.h` of NVIDIA's
//! open-gpu-doc). [`Qmd`] sets fields and refuses what does not fit; [`Grid`] says what a kernel's launch needs of them.

mod block;
mod field;
mod grid;
mod v3;
mod v4;
mod v5;

pub use block::{ALIGNMENT, Qmd};
pub use field::{Bits, Field, MAX_SIZE, Row, Version};
pub use grid::{BANKS, ConstantBank, Grid, Release};
pub use v3::V3;
pub use v4::V4;
pub use v5::V5;
