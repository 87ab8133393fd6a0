//! The one place where bytes become rows.
//!
//! [`rows()`] checks that the rows of a table lie in the file, once and for all of them; a [`Table`] is such rows in one of
//! four encodings, read as the views that their [`Entry`] names. Reading a row cannot fail.

pub(crate) mod class;
pub(crate) mod entry;
pub(crate) mod place;
pub(crate) mod rows;
pub(crate) mod slices;
pub(crate) mod word;

pub use self::entry::Entry;
pub use self::rows::{Table, TableIter};
pub use self::slices::{bytes, rows};
