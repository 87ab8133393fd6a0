//! What a layout writes, and what it tells of itself.

pub(crate) mod be8;
pub(crate) mod indirect;
pub(crate) mod part;
#[cfg(feature = "parts")]
mod parts;
pub(crate) mod resolve;
mod section;
pub(crate) mod tls;
mod transition;
mod unwind_index;
pub(crate) mod view;
mod write;
