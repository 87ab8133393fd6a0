//! Payloads, compressed.

use crate::error::Error;
#[cfg(any(
    feature = "lz4",
    feature = "libzstd",
    not(all(feature = "zlib", feature = "zstd"))
))]
use crate::error::ErrorKind;
use crate::kind::CompressionMethod;
use alloc::vec::Vec;

/// The level of `fatbinary -compress-mode=size`. That of LZ4 ends at 12, and a higher one means this.
pub(crate) const SMALLEST: i32 = 19;

impl CompressionMethod {
    /// Compresses a payload, at the level that gives the smallest result here: others, or other encoders, may do better.
    ///
    /// # Errors
    /// [`ErrorKind::NoCodec`](crate::ErrorKind::NoCodec) without the feature, [`ErrorKind::NoMemory`](crate::ErrorKind::NoMemory),
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) of more bytes than a block of LZ4 may have.
    pub fn pack(self, payload: &[u8]) -> Result<Vec<u8>, Error> {
        self.pack_at(payload, SMALLEST)
    }

    /// Compresses a payload; with the C libraries at this level.
    pub(crate) fn pack_at(self, payload: &[u8], level: i32) -> Result<Vec<u8>, Error> {
        let _ = (payload, level); // without features nobody asks
        #[cfg(any(feature = "lz4", feature = "libzstd"))]
        let no_memory = Error { at: 0, kind: ErrorKind::NoMemory(self) };
        match self {
            #[cfg(feature = "zlib")]
            Self::Zlib => Ok(miniz_oxide::deflate::compress_to_vec_zlib(payload, 10)),
            #[cfg(feature = "lz4")]
            Self::Lz4 if payload.len() > MOST_OF_LZ4 => {
                let value = payload.len() as u64;
                Err(Error {
                    at: 0,
                    kind: ErrorKind::Invalid { what: "the size of a block of LZ4", value },
                })
            }
            #[cfg(feature = "lz4")]
            Self::Lz4 => lz4(payload, level).ok_or(no_memory),
            #[cfg(feature = "lz4")]
            Self::Lz4Frame => {
                crate::lz4_frame::pack(payload, |block| lz4(block, level)).ok_or(no_memory)
            }
            #[cfg(feature = "libzstd")]
            Self::Zstd => libzstd(payload, level).ok_or(no_memory),
            #[cfg(all(feature = "zstd", not(feature = "libzstd")))]
            Self::Zstd => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                Ok(ruzstd::encoding::compress_to_vec(payload, level))
            }
            #[cfg(not(all(
                feature = "zlib",
                feature = "lz4",
                any(feature = "zstd", feature = "libzstd")
            )))]
            _ => Err(Error { at: 0, kind: ErrorKind::NoCodec(self) }),
        }
    }
}

/// Bytes that a block may be of (`LZ4_MAX_INPUT_SIZE`, lz4.h).
#[cfg(feature = "lz4")]
const MOST_OF_LZ4: usize = 0x7e00_0000;

/// A block; none without memory for the encoder.
#[cfg(feature = "lz4")]
fn lz4(payload: &[u8], level: i32) -> Option<Vec<u8>> {
    #[cfg(feature = "liblz4")]
    {
        use liblz4::block::{CompressionMode, compress};
        compress(payload, Some(CompressionMode::HIGHCOMPRESSION(level)), false).ok()
    }
    #[cfg(not(feature = "liblz4"))]
    {
        let _ = level; // there is one
        Some(lz4_flex::block::compress(payload))
    }
}

/// One frame; none without memory for the encoder.
#[cfg(feature = "libzstd")]
fn libzstd(payload: &[u8], level: i32) -> Option<Vec<u8>> {
    let (mut frame, most) = (Vec::new(), zstd_safe::compress_bound(payload.len()));
    frame.try_reserve_exact(most).ok()?;
    frame.resize(most, 0);
    let size = zstd_safe::compress(frame.as_mut_slice(), payload, level).ok()?;
    frame.truncate(size);
    Some(frame)
}
