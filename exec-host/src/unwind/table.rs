//! Where a table is.

/// A table in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(super) address: u64,
    /// Bytes.
    pub(super) size: u64,
    /// Where the code of its last entry ends, if the table does not say that.
    #[cfg_attr(not(target_arch = "arm"), expect(dead_code, reason = "tables of DWARF say it"))]
    pub(super) end: u64,
}
