//! Unwinding tables, made known to the process.

/// Tables that the unwinder of this process uses as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct Unwinding {
    /// Addresses of the tables.
    tables: Vec<u64>,
}

unsafe extern "C" {
    fn __register_frame(table: *const u8);
    fn __deregister_frame(table: *const u8);
}

impl Unwinding {
    /// Makes the tables at these addresses known.
    ///
    /// # Safety
    /// Each is a relocated `.eh_frame` that a length of 0 ends, and stays where it is until this is dropped.
    pub(crate) unsafe fn register(tables: impl Iterator<Item = u64>) -> Self {
        let tables: Vec<u64> = tables.collect();
        for &table in &tables {
            // SAFETY: as the caller vouches.
            unsafe { __register_frame(core::ptr::with_exposed_provenance(table as usize)) };
        }
        Self { tables }
    }
}

impl Drop for Unwinding {
    fn drop(&mut self) {
        for &table in self.tables.iter().rev() {
            // SAFETY: it was registered, and is still mapped.
            unsafe { __deregister_frame(core::ptr::with_exposed_provenance(table as usize)) };
        }
    }
}
