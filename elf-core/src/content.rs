//! What sections hold beside rows of numbers: names, symbols with names, notes and properties, groups, build
//! attributes.
//!
//! What varies in size is read record by record, as `Result`, and ends after an error.

pub(crate) mod build_attributes;
pub(crate) mod group;
pub(crate) mod mapping;
pub(crate) mod name;
pub(crate) mod note;
pub(crate) mod property;
pub(crate) mod symbols;
