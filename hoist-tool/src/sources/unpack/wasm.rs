//! Readers of what is compressed, where there is no place but memory for what they give.

use std::io::{self, BufReader, Read};

use anyhow::Result;

use crate::mapped::Mapped;

/// Nothing: no bzip2 stream is unpacked here.
pub(super) fn bzip2(_reader: impl Read) -> impl Read {
    Refused
}

struct Refused;

impl Read for Refused {
    fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("bzip2 is not unpacked here"))
    }
}

/// What a Zstandard stream unpacks to.
pub(super) fn zstd<R: Read>(reader: R) -> io::Result<zstd::Decoder<'static, BufReader<R>>> {
    zstd::Decoder::new(reader)
}

/// All that a reader gives behind bytes that it gave.
pub(super) fn spooled(mut bytes: Vec<u8>, reader: &mut dyn Read) -> Result<Mapped> {
    reader.read_to_end(&mut bytes)?;
    Ok(Mapped::of(bytes))
}
