//! clang-offload-bundler's bundles, plain and compressed: what HIP embeds, and what older OpenMP did.

use crate::error::{Error, ErrorKind};
use crate::kind::CompressionMethod;
use crate::raw_llvm as raw;
use crate::span::Span;
use crate::target::{OffloadTarget, trimmed};
use core::iter::FusedIterator;
use elf_core::Name;
use zerocopy::byteorder::little_endian::{U32, U64};

/// A bundle (ClangOffloadBundler, "Bundled Code Object Layout"): a count, the entries' headers, then their images.
#[derive(Clone, Copy, Debug)]
pub struct Bundle<'a> {
    span: Span<'a>,
    count: u64,
}

impl<'a> Bundle<'a> {
    /// Reads the magic and every entry's header at the start of `span`, which may go on after the bundle.
    ///
    /// # Errors
    /// [`ErrorKind::Magic`] if there is none, [`ErrorKind::Outside`] if an entry or its image leaves `span`.
    pub fn parse(span: impl Into<Span<'a>>) -> Result<Self, Error> {
        let span = span.into();
        let header: &raw::Bundle = span.row("bundle header", 0)?;
        if &header.magic != raw::BUNDLE_MAGIC {
            return Err(span.error(0, ErrorKind::Magic { what: "bundle", found: span.magic() }));
        }
        let mut entries = Self { span, count: header.count.get() }.entries();
        let mut end = 0;
        for entry in &mut entries {
            end = entry?.end(span).max(end);
        }
        let span = span.part("bundle", 0, end.max(entries.offset))?;
        Ok(Self { span, count: header.count.get() })
    }

    /// File offset of the magic.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.span.at()
    }

    /// Bytes up to the end of the last image.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.span.size()
    }

    /// All bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.span.bytes()
    }

    /// The entries in order. None is an error: [`parse`](Self::parse) tried them.
    #[must_use]
    pub const fn entries(&self) -> BundleEntries<'a> {
        BundleEntries { span: self.span, offset: size_of::<raw::Bundle>() as u64, left: self.count }
    }
}

/// One image in a bundle.
#[derive(Clone, Copy, Debug)]
pub struct BundleEntry<'a> {
    /// `<kind>-<triple>[-<target id>]`: `hipv4-amdgcn-amd-amdhsa--gfx90a`, `host-x86_64-unknown-linux--`.
    pub id: Name<'a>,
    /// The image: bytes, and where in the file they start. The host's is often empty.
    pub image: Span<'a>,
}

impl<'a> BundleEntry<'a> {
    /// What comes before the first dash of the id: `host`, `hip`, `hipv4`, `openmp`.
    #[must_use]
    pub fn kind(&self) -> Name<'a> {
        Name(self.id.as_bytes().split(|&byte| byte == b'-').next().unwrap_or_default())
    }

    /// What comes after the first dash of the id: the triple, and as its architecture the target id, which is empty for a host.
    ///
    /// A triple has four parts, of which the last, the environment, is mostly empty; older tools leave it out. A target id may have
    /// dashes itself: `gfx9-generic`, `gfx906:xnack-`.
    #[must_use]
    pub fn target(&self) -> OffloadTarget<'a> {
        let id = after_dashes(self.id.as_bytes(), 1).unwrap_or_default();
        let (three, four) = (after_dashes(id, 3), after_dashes(id, 4));
        let names_gpu = |part: &&[u8]| part.starts_with(b"gfx") || part.starts_with(b"sm_");
        let arch = three.filter(names_gpu).or(four).unwrap_or_default();
        let triple = id.strip_suffix(arch).unwrap_or(id);
        OffloadTarget { triple: Name(trimmed(triple)), arch: Name(arch) }
    }

    /// Offset of the image's end in its bundle.
    const fn end(&self, bundle: Span<'_>) -> u64 {
        self.image.at().saturating_sub(bundle.at()).saturating_add(self.image.size())
    }
}

/// What comes after so many dashes.
fn after_dashes(bytes: &[u8], dashes: usize) -> Option<&[u8]> {
    bytes.splitn(dashes.saturating_add(1), |&byte| byte == b'-').nth(dashes)
}

/// The entries of a [`Bundle`] in order. One that cannot be read is the last.
#[derive(Clone, Debug)]
pub struct BundleEntries<'a> {
    span: Span<'a>,
    offset: u64,
    left: u64,
}

impl<'a> BundleEntries<'a> {
    fn read(&mut self) -> Result<BundleEntry<'a>, Error> {
        let raw: &raw::BundleEntry = self.span.row("bundle entry", self.offset)?;
        let id_at = self.offset.saturating_add(size_of::<raw::BundleEntry>() as u64);
        let id = self.span.part("bundle entry id", id_at, raw.id_size.get())?;
        let image = self.span.part("bundled image", raw.offset.get(), raw.size.get())?;
        self.offset = id_at.saturating_add(id.size());
        Ok(BundleEntry { id: Name(id.bytes()), image })
    }
}

impl<'a> Iterator for BundleEntries<'a> {
    type Item = Result<BundleEntry<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.read().inspect_err(|_| self.left = 0))
    }
}

impl FusedIterator for BundleEntries<'_> {}

/// A compressed bundle: `CCOB` (ClangOffloadBundler, "Compressed Offload Bundle").
#[derive(Clone, Copy, Debug)]
pub struct CompressedBundle<'a> {
    /// Version of the format: 1 to 3.
    pub version: u16,
    /// How the bundle is compressed.
    pub method: CompressionMethod,
    /// Bytes of the bundle when unpacked, as the header claims.
    pub unpacked_size: u64,
    /// First 64 bits of the MD5 of the unpacked bundle.
    pub hash: u64,
    span: Span<'a>,
    stored: Span<'a>,
}

impl<'a> CompressedBundle<'a> {
    /// Reads the header at the start of `span`. Version 1 does not say where the bundle ends: it takes all of `span`.
    ///
    /// # Errors
    /// [`ErrorKind::Magic`] if there is none; [`ErrorKind::Invalid`] if the version, the method or the size is unknown;
    /// [`ErrorKind::Outside`] if it leaves `span`.
    pub fn parse(span: impl Into<Span<'a>>) -> Result<Self, Error> {
        const WHAT: &str = "compressed bundle header";
        let span = span.into();
        let header: &raw::CompressedBundle = span.row(WHAT, 0)?;
        if header.magic != raw::COMPRESSED_BUNDLE_MAGIC {
            return Err(
                span.error(0, ErrorKind::Magic { what: "compressed bundle", found: span.magic() })
            );
        }
        let u32 = |offset| span.row::<U32>(WHAT, offset).map(|value| u64::from(value.get()));
        let u64 = |offset| span.row::<U64>(WHAT, offset).map(|value| value.get());
        let version = header.version.get();
        let (size, unpacked_size, hash, header_size) = match version {
            1 => (span.size(), u32(8)?, u64(12)?, 20),
            2 => (u32(8)?, u32(12)?, u64(16)?, 24),
            3 => (u64(8)?, u64(16)?, u64(24)?, 32),
            _ => {
                let kind =
                    ErrorKind::Invalid { what: "compressed bundle version", value: version.into() };
                return Err(span.error(4, kind));
            }
        };
        let method = match header.method.get() {
            0 => CompressionMethod::Zlib,
            1 => CompressionMethod::Zstd,
            other => {
                let kind =
                    ErrorKind::Invalid { what: "compressed bundle method", value: other.into() };
                return Err(span.error(6, kind));
            }
        };
        let span = span.part("compressed bundle", 0, size)?;
        let invalid = ErrorKind::Invalid { what: "compressed bundle size", value: size };
        let stored = span.tail(header_size).ok_or(span.error(8, invalid))?;
        Ok(Self { version, method, unpacked_size, hash, span, stored })
    }

    /// File offset of the header.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.span.at()
    }

    /// Bytes of header and compressed bundle.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.span.size()
    }

    /// All bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.span.bytes()
    }

    /// The size that a buffer for [`unpack_into`](Self::unpack_into) must have, once it is known to be credible and not
    /// more than `limit`.
    ///
    /// # Errors
    /// [`ErrorKind::Bomb`] or [`ErrorKind::TooLarge`].
    pub fn unpack_size(&self, limit: usize) -> Result<usize, Error> {
        let (method, claimed, most) =
            (self.method, self.unpacked_size, self.method.most(self.stored.size()));
        if claimed > most {
            return Err(self.span.error(8, ErrorKind::Bomb { method, claimed, most }));
        }
        let too_large = ErrorKind::TooLarge { size: claimed, limit: limit as u64 };
        usize::try_from(claimed)
            .ok()
            .filter(|&size| size <= limit)
            .ok_or(self.span.error(8, too_large))
    }

    /// Unpacks into a buffer of exactly [`unpack_size`](Self::unpack_size) bytes, and reads the bundle there. Offsets of the
    /// result count from the buffer's start.
    ///
    /// # Errors
    /// [`ErrorKind::Buffer`] if the buffer has another size; else as [`unpack_size`](Self::unpack_size),
    /// [`CompressionMethod::unpack`] and [`Bundle::parse`].
    pub fn unpack_into<'b>(&self, into: &'b mut [u8]) -> Result<Bundle<'b>, Error> {
        let needed = self.unpack_size(usize::MAX)?;
        if into.len() != needed {
            let kind = ErrorKind::Buffer { size: into.len() as u64, needed: needed as u64 };
            return Err(self.span.error(0, kind));
        }
        self.method.unpack(self.stored, into)?;
        Bundle::parse(&*into)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString as _;

    #[test]
    fn targets() {
        for (id, triple, arch) in [
            ("hipv4-amdgcn-amd-amdhsa--gfx90a", "amdgcn-amd-amdhsa", "gfx90a"),
            ("hip-amdgcn-amd-amdhsa--gfx906:xnack-", "amdgcn-amd-amdhsa", "gfx906:xnack-"),
            ("hip-amdgcn-amd-amdhsa--gfx9-generic", "amdgcn-amd-amdhsa", "gfx9-generic"),
            ("hip-amdgcn-amd-amdhsa-gfx90a", "amdgcn-amd-amdhsa", "gfx90a"),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", "spirv64-amd-amdhsa", "amdgcnspirv"),
            ("openmp-nvptx64-nvidia-cuda-sm_70", "nvptx64-nvidia-cuda", "sm_70"),
            ("host-x86_64-unknown-linux--", "x86_64-unknown-linux", ""),
            ("host-x86_64-unknown-linux-gnu-", "x86_64-unknown-linux-gnu", ""),
            ("host-x86_64-unknown-linux", "x86_64-unknown-linux", ""),
            ("host", "", ""),
        ] {
            let entry = BundleEntry { id: Name(id.as_bytes()), image: Span::new(&[], 0) };
            let target = entry.target();
            assert_eq!(
                (target.triple.to_string(), target.arch.to_string()),
                (triple.into(), arch.into())
            );
        }
    }
}
