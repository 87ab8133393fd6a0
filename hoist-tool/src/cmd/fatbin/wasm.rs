//! `hoist fatbin`, as far as it looks into files.

pub mod cubins;
pub mod diff;
pub mod filter;
pub mod found;
pub mod holding;
pub mod keep;
pub mod kernels;
pub mod list;
pub mod payload;
pub mod report;
pub mod rows;
pub mod size;
