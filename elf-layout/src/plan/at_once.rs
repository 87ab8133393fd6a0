//! What is gone over for what its relocations need, by one thread or by several at once.

use crate::model::options::Options;
use crate::model::scan_result::ScanResult;
use crate::model::storage::{ObjectSlot, SectionSlot, SymbolSlot};
use elf_core::File;

/// All objects, with what is known of them before their relocations are gone over.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "parts")),
    expect(dead_code, reason = "nobody goes over parts")
)]
pub(crate) struct Objects<'p, 'a> {
    pub(crate) files: &'p [File<'a>],
    pub(crate) slots: &'p [ObjectSlot<'a>],
    pub(crate) sections: &'p [SectionSlot],
    pub(crate) options: &'p Options,
}

/// Has several threads go over relocations.
pub(crate) trait AtOnce<'a> {
    /// Notes in `symbols` and `found` what the relocations of all objects need. `false`, with nothing noted, if it is one
    /// thread that has to do it: there is little to do, or an error to find.
    fn scan(
        &mut self,
        objects: &Objects<'_, 'a>,
        symbols: &mut [SymbolSlot],
        found: &mut ScanResult,
    ) -> bool;
}
