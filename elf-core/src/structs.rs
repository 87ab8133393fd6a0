//! The structs of the specifications, field for field, and nothing else.
//!
//! Of alignment 1 and with the byte order in their types, so that any bytes at any address are a value. What reads a file
//! turns them into the plain values of [`views`](crate::views).

pub mod raw;
pub mod raw32;
pub mod raw64;
