//! Readers of what is compressed, and room for what they give.

use std::io::{self, BufReader, Read, Write as _};

use anyhow::{Context as _, Result};

use crate::mapped::Mapped;

/// What a bzip2 stream unpacks to.
pub(super) fn bzip2(reader: impl Read) -> impl Read {
    bzip2::read::MultiBzDecoder::new(reader)
}

/// What a Zstandard stream unpacks to.
pub(super) fn zstd<R: Read>(reader: R) -> io::Result<zstd::Decoder<'static, BufReader<R>>> {
    zstd::Decoder::new(reader)
}

/// All that a reader gives behind bytes that it gave: in a file without a name.
pub(super) fn spooled(bytes: Vec<u8>, reader: &mut dyn Read) -> Result<Mapped> {
    let mut file = tempfile::tempfile().context("a temporary file")?;
    file.write_all(&bytes).context("a temporary file")?;
    drop(bytes);
    io::copy(reader, &mut file)?;
    Mapped::map(&file).context("a temporary file")
}
