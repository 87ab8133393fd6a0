//! LLVM's OffloadBinary: images of device code with the target of each.

use crate::error::{Error, ErrorKind};
use crate::kind::CompressionMethod;
use crate::raw_llvm as raw;
use crate::span::Span;
use crate::target::OffloadTarget;
use core::fmt;
use core::iter::FusedIterator;
use elf_core::Name;

/// An OffloadBinary (llvm/Object/OffloadBinary.h), its header checked.
#[derive(Clone, Copy)]
pub struct OffloadBinary<'a> {
    span: Span<'a>,
    version: u32,
    entries: &'a [raw::Entry],
    entries_offset: u64,
    inflated_size: u64,
}

impl<'a> OffloadBinary<'a> {
    /// Several in a row start at multiples of this, counted from the first.
    pub const ALIGNMENT: u64 = 8;

    /// Reads the header at the start of `span`, which may go on after the OffloadBinary.
    ///
    /// # Errors
    /// [`ErrorKind::Magic`] if there is none, [`ErrorKind::Invalid`] if its version is not 1 to 3 or its header too small,
    /// [`ErrorKind::Outside`] if it leaves `span`, or its entries leave it.
    pub fn parse(span: impl Into<Span<'a>>) -> Result<Self, Error> {
        let span = span.into();
        let header: &raw::Header = span.row("OffloadBinary header", 0)?;
        if header.magic != raw::OFFLOAD_MAGIC {
            return Err(
                span.error(0, ErrorKind::Magic { what: "OffloadBinary", found: span.magic() })
            );
        }
        let version = header.version.get();
        if !matches!(version, 1..=3) {
            return Err(span.error(
                4,
                ErrorKind::Invalid { what: "OffloadBinary version", value: version.into() },
            ));
        }
        let least =
            if version == 3 { size_of::<raw::Header3>() } else { size_of::<raw::Header>() } as u64;
        if header.size.get() < least {
            return Err(span.error(
                8,
                ErrorKind::Invalid { what: "OffloadBinary size", value: header.size.get() },
            ));
        }
        let span = span.part("OffloadBinary", 0, header.size.get())?;
        let inflated_size = match version {
            3 => span.row::<raw::Header3>("OffloadBinary header", 0)?.inflated_size.get(),
            _ => 0,
        };
        let entries_offset = header.entries_offset.get();
        let entries = match (inflated_size, version) {
            (0, 1) => span.rows("OffloadBinary entries", entries_offset, 1)?,
            (0, _) => {
                span.rows("OffloadBinary entries", entries_offset, header.entries_count.get())?
            }
            _ => &[],
        };
        Ok(Self { span, version, entries, entries_offset, inflated_size })
    }

    /// File offset of the header.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.span.at()
    }

    /// Bytes of the whole.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.span.size()
    }

    /// All bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.span.bytes()
    }

    /// Version of the format: 1 to 3.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The images in order; none if the OffloadBinary is [compressed](Self::compression).
    #[must_use]
    pub const fn images(&self) -> OffloadImages<'a> {
        OffloadImages { span: self.span, version: self.version, entries: self.entries }
    }

    /// How what follows the header is compressed (version 3): [`inflate_into`](Self::inflate_into) first.
    #[must_use]
    pub fn compression(&self) -> Option<CompressionMethod> {
        let body = (self.inflated_size != 0).then(|| self.span.tail(self.entries_offset))?;
        // OffloadBinary.cpp, decompressOffloadBinary: by the frame's magic.
        let zstd = body.is_some_and(|body| body.magic() == 0xfd2f_b528);
        Some(if zstd { CompressionMethod::Zstd } else { CompressionMethod::Zlib })
    }

    /// The size that a buffer for [`inflate_into`](Self::inflate_into) must have, once it is known to be credible and not
    /// more than `limit`; none if the OffloadBinary is not compressed.
    ///
    /// # Errors
    /// [`ErrorKind::Bomb`], [`ErrorKind::TooLarge`]; [`ErrorKind::Invalid`] if the entries start outside.
    pub fn inflate_size(&self, limit: usize) -> Result<Option<usize>, Error> {
        let Some(method) = self.compression() else { return Ok(None) };
        let (claimed, offset) = (self.inflated_size, self.entries_offset);
        if offset > self.size() || offset > claimed {
            return Err(self
                .span
                .error(16, ErrorKind::Invalid { what: "entries_offset", value: offset }));
        }
        let most = method.most(self.size().saturating_sub(offset)).saturating_add(offset);
        if claimed > most {
            return Err(self.span.error(32, ErrorKind::Bomb { method, claimed, most }));
        }
        let too_large = ErrorKind::TooLarge { size: claimed, limit: limit as u64 };
        usize::try_from(claimed)
            .ok()
            .filter(|&size| size <= limit)
            .ok_or(self.span.error(32, too_large))
            .map(Some)
    }

    /// Writes the OffloadBinary without compression into a buffer of exactly [`inflate_size`](Self::inflate_size) bytes, and
    /// reads that. Offsets of the result count from the buffer's start.
    ///
    /// # Errors
    /// [`ErrorKind::Buffer`] if the buffer has another size, or if nothing is compressed; else as
    /// [`inflate_size`](Self::inflate_size), [`CompressionMethod::unpack`] and [`parse`](Self::parse).
    pub fn inflate_into<'b>(&self, into: &'b mut [u8]) -> Result<OffloadBinary<'b>, Error> {
        let needed = self.inflate_size(usize::MAX)?.unwrap_or(0);
        let buffer = ErrorKind::Buffer { size: into.len() as u64, needed: needed as u64 };
        let fail = self.span.error(0, buffer);
        let body = self.span.tail(self.entries_offset).ok_or(fail)?;
        let (Some(method), true) = (self.compression(), into.len() == needed) else {
            return Err(fail);
        };
        let at = usize::try_from(self.entries_offset).map_err(|_| fail)?;
        let (head, rest) = into.split_at_mut_checked(at).ok_or(fail)?;
        head.iter_mut().zip(self.bytes()).for_each(|(to, &from)| *to = from);
        let (size, inflated) = (self.inflated_size.to_le_bytes(), [0; 8]);
        head.iter_mut().skip(8).zip(size).for_each(|(to, from)| *to = from);
        head.iter_mut().skip(32).zip(inflated).for_each(|(to, from)| *to = from);
        method.unpack(body, rest)?;
        OffloadBinary::parse(&*into)
    }
}

impl fmt::Debug for OffloadBinary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffloadBinary")
            .field("at", &self.at())
            .field("size", &self.size())
            .field("version", &self.version)
            .field("images", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// The images of an [`OffloadBinary`] in order. One that cannot be read is the last.
#[derive(Clone, Debug)]
pub struct OffloadImages<'a> {
    span: Span<'a>,
    version: u32,
    entries: &'a [raw::Entry],
}

impl<'a> Iterator for OffloadImages<'a> {
    type Item = Result<OffloadImage<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (raw, rest) = core::mem::take(&mut self.entries).split_first()?;
        let image = OffloadImage::parse(self.span, self.version, raw);
        if image.is_ok() {
            self.entries = rest;
        }
        Some(image)
    }
}

impl FusedIterator for OffloadImages<'_> {}

/// One image in an [`OffloadBinary`]. Its strings were checked.
#[derive(Clone, Copy)]
pub struct OffloadImage<'a> {
    raw: &'a raw::Entry,
    binary: Span<'a>,
    strings: Strings<'a>,
    payload: Span<'a>,
}

#[derive(Clone, Copy)]
enum Strings<'a> {
    Version1(&'a [raw::StringEntry]),
    Version2(&'a [raw::StringEntry2]),
}

impl<'a> OffloadImage<'a> {
    fn parse(binary: Span<'a>, version: u32, raw: &'a raw::Entry) -> Result<Self, Error> {
        let (at, count) = (raw.string_offset.get(), raw.num_strings.get());
        let strings = match version {
            1 => Strings::Version1(binary.rows("strings", at, count)?),
            _ => Strings::Version2(binary.rows("strings", at, count)?),
        };
        let payload = binary.part("image", raw.image_offset.get(), raw.image_size.get())?;
        let image = Self { raw, binary, strings, payload };
        match image.pairs().find_map(Result::err) {
            Some(error) => Err(error),
            None => Ok(image),
        }
    }

    /// What the image is.
    #[must_use]
    pub const fn kind(&self) -> ImageKind {
        ImageKind(self.raw.image_kind.get())
    }

    /// Which programming model it is for.
    #[must_use]
    pub const fn producer(&self) -> Producer {
        Producer(self.raw.offload_kind.get())
    }

    /// Flags: bit 0 for metadata without image.
    #[must_use]
    pub const fn flags(&self) -> u32 {
        self.raw.flags.get()
    }

    /// The image: bytes, and where in the file they start.
    #[must_use]
    pub const fn payload(&self) -> Span<'a> {
        self.payload
    }

    /// Keys and values in order: `triple`, `arch` and what a tool adds.
    pub fn strings(&self) -> impl Iterator<Item = (Name<'a>, Name<'a>)> + Clone + use<'a> {
        self.pairs().filter_map(Result::ok) // all are: `parse` tried them
    }

    /// The value of a key.
    #[must_use]
    pub fn string(&self, key: &str) -> Option<Name<'a>> {
        self.strings().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The target triple: `nvptx64-nvidia-cuda`.
    #[must_use]
    pub fn triple(&self) -> Option<Name<'a>> {
        self.string("triple")
    }

    /// The architecture: `sm_90`, `gfx90a`, `generic`.
    #[must_use]
    pub fn arch(&self) -> Option<Name<'a>> {
        self.string("arch")
    }

    /// What it is for; empty names where it does not say.
    #[must_use]
    pub fn target(&self) -> OffloadTarget<'a> {
        OffloadTarget {
            triple: self.triple().unwrap_or_default(),
            arch: self.arch().unwrap_or_default(),
        }
    }

    fn pairs(&self) -> impl Iterator<Item = Result<(Name<'a>, Name<'a>), Error>> + Clone + use<'a> {
        let binary = self.binary;
        let text = move |offset: u64| {
            let outside = ErrorKind::Outside { what: "string", size: 1, left: 0 };
            let bytes = binary.tail(offset).and_then(Span::until_nul);
            bytes.map(Name).ok_or(binary.error(offset, outside))
        };
        let (first, second) = match self.strings {
            Strings::Version1(pairs) => (pairs, &[][..]),
            Strings::Version2(pairs) => (&[][..], pairs),
        };
        let first = first
            .iter()
            .map(move |pair| Ok((text(pair.key_offset.get())?, text(pair.value_offset.get())?)));
        let second = second.iter().map(move |pair| {
            let value =
                binary.part("string", pair.entry.value_offset.get(), pair.value_size.get())?;
            Ok((text(pair.entry.key_offset.get())?, Name(value.bytes())))
        });
        first.chain(second)
    }
}

impl fmt::Debug for OffloadImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("kind", &self.kind())
            .field("producer", &self.producer())
            .field("triple", &self.triple())
            .field("arch", &self.arch())
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

/// What an image is: `ImageKind` (llvm/Object/OffloadBinary.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageKind(pub u16);

impl ImageKind {
    /// `IMG_Object`: an ELF file to link, or to run on a host.
    pub const OBJECT: Self = Self(1);
    /// `IMG_Bitcode`: LLVM bitcode.
    pub const BITCODE: Self = Self(2);
    /// `IMG_Cubin`: an ELF file for one SM.
    pub const CUBIN: Self = Self(3);
    /// `IMG_Fatbinary`: a region of NVIDIA's, or a bundle.
    pub const FATBINARY: Self = Self(4);
    /// `IMG_PTX`: PTX text.
    pub const PTX: Self = Self(5);
    /// `IMG_SPIRV`: SPIR-V.
    pub const SPIRV: Self = Self(6);

    /// The name that LLVM's tools give it, which is also the suffix of its files.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::OBJECT => "o",
            Self::BITCODE => "bc",
            Self::CUBIN => "cubin",
            Self::FATBINARY => "fatbin",
            Self::PTX => "s",
            Self::SPIRV => "spv",
            _ => return None,
        })
    }
}

/// Which programming model an image is for: `OffloadKind` (llvm/Object/OffloadBinary.h).
///
/// LLVM 19 and before counted, later ones set bits, with the same magic and version: HIP is 3 and 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Producer(pub u16);

impl Producer {
    /// `OFK_OpenMP`.
    pub const OPENMP: Self = Self(1);
    /// `OFK_Cuda`.
    pub const CUDA: Self = Self(2);
    /// `OFK_HIP` as LLVM 20 and later write it.
    pub const HIP: Self = Self(4);
    /// `OFK_HIP` as LLVM 19 and before wrote it.
    pub const OLD_HIP: Self = Self(3);
    /// `OFK_SYCL`.
    pub const SYCL: Self = Self(8);

    /// The name that LLVM's tools give it.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::OPENMP => "openmp",
            Self::CUDA => "cuda",
            Self::HIP | Self::OLD_HIP => "hip",
            Self::SYCL => "sycl",
            _ => return None,
        })
    }
}
