//! `hoist cubin`, as far as it looks into files.

mod index;
mod kernel;
mod look;
mod module;
pub(crate) mod show;
mod shown;
mod svg;
#[expect(dead_code, reason = "functions are not asked for by name here")]
mod symbols;
mod text;

pub use super::fatbin::cubins::ImagePlace;
pub use kernel::{Bank, Kernel, Occupancy, Subroutine};
pub use module::{Module, Tool, Variable};
pub use shown::{Shown, report};
