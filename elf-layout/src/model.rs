//! The layout and what it is made of: read by everybody, changed by the steps of `plan` alone.

pub(crate) mod bounds;
pub(crate) mod edits;
pub(crate) mod external;
pub(crate) mod features;
pub(crate) mod fixed;
pub(crate) mod layout;
pub(crate) mod linkonce;
pub(crate) mod list;
#[cfg(feature = "alloc")]
pub(crate) mod name_numbers;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod owner;
pub(crate) mod relocations;
pub(crate) mod scan_result;
pub(crate) mod spans;
pub(crate) mod storage;
pub(crate) mod stubs;
pub(crate) mod surroundings;
pub(crate) mod thunks;
pub(crate) mod tls;
pub(crate) mod unwind_index;
