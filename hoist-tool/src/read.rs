//! Bytes of files and pipes.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::budget::Limits;

/// Bytes that are read of what is no file and has no size, such as a pipe.
const ENDLESS: u64 = 4 << 30;

/// The bytes of a file; of what has no end, no more than the limit.
///
/// # Errors
/// If it cannot be read, or has more.
pub fn read_file(path: &Path, limits: Limits) -> Result<Vec<u8>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    read_open(file, path, limits)
}

/// The same of a file that is open: a pipe opens once.
///
/// # Errors
/// As [`read_file`].
pub fn read_open(mut file: File, path: &Path, limits: Limits) -> Result<Vec<u8>> {
    let context = || path.display().to_string();
    let found = file.metadata().with_context(context)?;
    let mut bytes = Vec::new();
    if found.is_file() {
        file.read_to_end(&mut bytes).with_context(context)?;
        return Ok(bytes);
    }
    let limit = limits.limit.unwrap_or(ENDLESS);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).with_context(context)?;
    if bytes.len() as u64 > limit {
        bail!("{}: has more than {limit} bytes (--limit)", context());
    }
    Ok(bytes)
}
