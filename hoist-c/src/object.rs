//! An object, and what errors call it.

use exec_host::symbols::SharedBytes;
use std::sync::Arc;

/// An object, and what it is called.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) label: Arc<str>,
    pub(crate) bytes: SharedBytes,
}
