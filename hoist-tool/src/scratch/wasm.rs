//! Memory that one image after another is unpacked into.

use anyhow::{Context as _, Result};

/// Memory as large as the largest that was unpacked into it.
#[derive(Debug, Default)]
pub struct Scratch(Vec<u8>);

impl Scratch {
    /// So many bytes; what is in them is not said.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn take(&mut self, size: usize) -> Result<&mut [u8]> {
        let no_memory = || format!("no memory for {size} bytes");
        if self.0.len() < size {
            self.0.clear();
            self.0.try_reserve_exact(size).ok().with_context(no_memory)?;
            self.0.resize(size, 0);
        }
        self.0.get_mut(..size).with_context(no_memory)
    }
}
