//! What compilers call for that depends on the processor: nothing.

use crate::external::External;

pub(crate) const fn find(_name: &str) -> Option<External> {
    None
}
