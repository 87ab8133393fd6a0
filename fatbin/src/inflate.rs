//! Compressed payloads, unpacked into the caller's buffer.
//!
//! A size that a header claims is believed only as far as the stored bytes can hold it ([`CompressionMethod::most`]) and as far as
//! the caller allows: nothing is reserved before both were checked.

use crate::entry::RegionEntry;
use crate::error::{Error, ErrorKind};
use crate::kind::CompressionMethod;
use crate::span::Span;

impl CompressionMethod {
    /// Whether this build has the decoder: the features `zlib`, `lz4` (block and frame), and `zstd` or `libzstd`.
    #[must_use]
    pub const fn can_unpack(self) -> bool {
        match self {
            Self::Zlib => cfg!(feature = "zlib"),
            Self::Lz4 | Self::Lz4Frame => cfg!(feature = "lz4"),
            Self::Zstd => cfg!(any(feature = "zstd", feature = "libzstd")),
        }
    }

    /// Unpacks `stored`, which gives exactly as many bytes as `into` has. Bytes after the end of a stream are not looked at.
    ///
    /// The content of `into` after an error is not said. Besides `into`, memory is taken for `zstd` only: its window, of
    /// at most the size of `into` or 8 MiB, and tables.
    ///
    /// # Errors
    /// [`ErrorKind::NoCodec`] without the feature, [`ErrorKind::NoMemory`], [`ErrorKind::Damaged`] if the bytes are no such stream or unpack to
    /// more, [`ErrorKind::UnpackedSize`] if they unpack to less.
    pub fn unpack(self, stored: Span<'_>, into: &mut [u8]) -> Result<(), Error> {
        let expected = into.len();
        match self.run(stored.bytes(), into) {
            Err(why) => Err(stored.error(0, why(self))),
            Ok(None) => Err(stored.error(0, ErrorKind::Damaged(self))),
            Ok(Some(found)) if found == expected => Ok(()),
            Ok(Some(found)) => {
                let kind =
                    ErrorKind::UnpackedSize { found: found as u64, expected: expected as u64 };
                Err(stored.error(0, kind))
            }
        }
    }

    /// The number of bytes written, or none if `stored` is damaged; else why nothing could be done.
    #[cfg_attr(
        not(any(feature = "zlib", feature = "lz4", feature = "zstd", feature = "libzstd")),
        expect(unused_variables)
    )]
    fn run(self, stored: &[u8], into: &mut [u8]) -> Result<Option<usize>, Unable> {
        match self {
            #[cfg(feature = "zlib")]
            Self::Zlib => Ok(zlib(stored, into)),
            #[cfg(feature = "lz4")]
            Self::Lz4 => Ok(lz4_flex::block::decompress_into(stored, into).ok()),
            #[cfg(feature = "lz4")]
            Self::Lz4Frame => Ok(crate::lz4_frame::unpack(stored, into)),
            #[cfg(feature = "libzstd")]
            Self::Zstd => match zstd_safe::decompress(into, stored) {
                Err(ZSTD_NO_MEMORY) => Err(ErrorKind::NoMemory),
                done => Ok(done.ok()),
            },
            #[cfg(all(feature = "zstd", not(feature = "libzstd")))]
            Self::Zstd => Ok(zstd(stored, into)),
            #[cfg(not(all(
                feature = "zlib",
                feature = "lz4",
                any(feature = "zstd", feature = "libzstd")
            )))]
            _ => Err(ErrorKind::NoCodec),
        }
    }
}

/// What kind of error it is that nothing could be done.
type Unable = fn(CompressionMethod) -> ErrorKind;

/// `ZSTD_error_memory_allocation` (zstd_errors.h), as functions give it.
#[cfg(feature = "libzstd")]
const ZSTD_NO_MEMORY: usize = 0_usize.wrapping_sub(64);

#[cfg(feature = "zlib")]
fn zlib(stored: &[u8], into: &mut [u8]) -> Option<usize> {
    use core::inflate_flags::{
        TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
    };
    use miniz_oxide::inflate::{TINFLStatus, core};
    let flags = TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (status, _, written) =
        core::decompress(&mut core::DecompressorOxide::new(), stored, into, 0, flags);
    (status == TINFLStatus::Done).then_some(written)
}

#[cfg(all(feature = "zstd", not(feature = "libzstd")))]
fn zstd(stored: &[u8], into: &mut [u8]) -> Option<usize> {
    /// RFC 8878 3.1.1.1.2: "recommended for decoders to support" windows of at least this.
    const WINDOW: u64 = 8 << 20;
    let (mut rest, mut into, mut written) = (stored, into, 0_usize);
    let mut decoder = ruzstd::decoding::FrameDecoder::new();
    decoder.set_max_window_size(WINDOW.max(into.len() as u64));
    decoder.init(&mut rest).ok()?;
    loop {
        // One block at a time: never more than the window and a block of 128 KiB are held.
        decoder
            .decode_blocks(&mut rest, ruzstd::decoding::BlockDecodingStrategy::UptoBlocks(1))
            .ok()?;
        let read = ruzstd::io::Read::read(&mut decoder, into).ok()?;
        written = written.checked_add(read)?;
        into = into.get_mut(read..)?;
        if decoder.can_collect() != 0 {
            return None;
        }
        if decoder.is_finished() {
            return Some(written);
        }
    }
}

impl<'a> RegionEntry<'a> {
    /// The size that a buffer for [`unpack_into`](Self::unpack_into) must have, once it is known to be credible and not
    /// more than `limit`.
    ///
    /// # Errors
    /// [`ErrorKind::Obfuscated`]; [`ErrorKind::Bomb`] if more is claimed than the stored bytes can hold;
    /// [`ErrorKind::TooLarge`] if it is more than `limit`.
    pub fn unpack_size(&self, limit: usize) -> Result<usize, Error> {
        let (stored, claimed) = (self.stored(), self.unpacked_size());
        if let Some(key) = self.obfuscation_key() {
            return Err(stored.error(0, ErrorKind::Obfuscated { key }));
        }
        if let Some(method) = self.compression() {
            let most = method.most(stored.size());
            if claimed > most {
                let kind = ErrorKind::Bomb { method, claimed, most };
                return Err(Error { at: self.at().saturating_add(0x38), kind });
            }
        }
        let too_large = ErrorKind::TooLarge { size: claimed, limit: limit as u64 };
        usize::try_from(claimed)
            .ok()
            .filter(|&size| size <= limit)
            .ok_or(stored.error(0, too_large))
    }

    /// The payload without compression, into a buffer of exactly [`unpack_size`](Self::unpack_size) bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Buffer`] if the buffer has another size; else as [`unpack_size`](Self::unpack_size) and
    /// [`CompressionMethod::unpack`].
    pub fn unpack_into(&self, into: &mut [u8]) -> Result<(), Error> {
        let needed = self.unpack_size(usize::MAX)?;
        if into.len() != needed {
            let kind = ErrorKind::Buffer { size: into.len() as u64, needed: needed as u64 };
            return Err(Error { at: self.at(), kind });
        }
        match self.compression() {
            Some(method) => method.unpack(self.stored(), into),
            None => {
                into.iter_mut().zip(self.stored().bytes()).for_each(|(to, &from)| *to = from);
                Ok(())
            }
        }
    }

    /// The payload without compression: borrowed if it is stored so, else unpacked into at most `limit` bytes.
    ///
    /// # Errors
    /// As [`unpack_size`](Self::unpack_size) and [`CompressionMethod::unpack`].
    #[cfg(feature = "alloc")]
    pub fn unpack(&self, limit: usize) -> Result<alloc::borrow::Cow<'a, [u8]>, Error> {
        let size = self.unpack_size(limit)?;
        let Some(method) = self.compression() else {
            return Ok(self.stored().bytes().into());
        };
        let mut unpacked = alloc::vec![0; size];
        method.unpack(self.stored(), &mut unpacked)?;
        Ok(unpacked.into())
    }
}
