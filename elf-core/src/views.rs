//! What rows of a file say, as plain values that are the same in every class and byte order.
//!
//! Made of the structs of [`structs`](crate::structs) by `From`, which cannot fail. Nothing here knows of files or tables:
//! which row of a class a view is read from stands in [`table::entry`](crate::table).

pub(crate) mod encoding;
pub(crate) mod header;
pub(crate) mod record;
pub(crate) mod section;
pub(crate) mod segment;
pub(crate) mod symbol;
