//! The C library of hoist: what `hoist.h` declares, which is made of these sources.
//!
//! A file is an area of the header. Functions take pointers as references that may be absent, so that they are safe code; what the
//! types cannot say (text, lengths, panics) is in [`border`].

pub mod address;
pub mod archive;
pub mod border;
pub mod buffer;
pub mod cubin;
pub mod cubin_rows;
pub mod device;
mod device_faults;
pub mod device_memory;
pub mod error;
pub mod error_info;
pub mod fatbin;
pub mod fatbin_change;
mod faults;
pub mod file;
pub mod file_tables;
pub mod image;
pub mod inspect;
pub mod kernel;
pub mod library;
pub mod library_loader;
mod library_options;
pub mod link;
mod linking;
pub mod loader;
pub mod module;
pub mod module_rows;
mod object;
pub mod objects;
pub mod observer;
pub mod replace;
pub mod source;
pub mod symbols;
pub mod version;
