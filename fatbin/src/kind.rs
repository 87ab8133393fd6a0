//! What an entry is: its kind, flags, architecture and compression.

use core::fmt;
use core::str::FromStr;

/// What the payload of an entry is (measured; the names are those that `cuobjdump` prints).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// 1: PTX text.
    Ptx,
    /// 2: an ELF file for one SM.
    Elf,
    /// 4: a cubin from before ELF.
    Cubin,
    /// 8: NVVM for link-time optimisation (LTO-IR).
    Nvvm,
    /// 0x20: an index.
    Index,
    /// 0x40: relocatable PTX.
    RelocatablePtx,
    /// 0x80: tile IR.
    TileIr,
    /// 0x100: several ELF files, compressed as one (CUDA 13.5).
    Concatenated,
    /// Any other number.
    Unknown(u16),
}

impl EntryKind {
    /// The kind of a number.
    #[must_use]
    pub const fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Ptx,
            2 => Self::Elf,
            4 => Self::Cubin,
            8 => Self::Nvvm,
            0x20 => Self::Index,
            0x40 => Self::RelocatablePtx,
            0x80 => Self::TileIr,
            0x100 => Self::Concatenated,
            other => Self::Unknown(other),
        }
    }

    /// The number of a kind.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Ptx => 1,
            Self::Elf => 2,
            Self::Cubin => 4,
            Self::Nvvm => 8,
            Self::Index => 0x20,
            Self::RelocatablePtx => 0x40,
            Self::TileIr => 0x80,
            Self::Concatenated => 0x100,
            Self::Unknown(number) => number,
        }
    }

    /// A short name: `ptx`, `elf`, `nvvm`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::Elf => "elf",
            Self::Cubin => "cubin",
            Self::Nvvm => "nvvm",
            Self::Index => "index",
            Self::RelocatablePtx => "relocatable ptx",
            Self::TileIr => "tile ir",
            Self::Concatenated => "concatenated",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Whether an SM runs the payload as it is.
    #[must_use]
    pub const fn is_machine_code(self) -> bool {
        matches!(self, Self::Elf | Self::Cubin | Self::Concatenated)
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(number) => write!(f, "kind {number:#x}"),
            kind => f.pad(kind.name()),
        }
    }
}

bitflags::bitflags! {
    /// Flags of an entry (measured). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct EntryFlags: u64 {
        /// Compiled for 64-bit addresses.
        const ADDRESS_64 = 1 << 0;
        /// Compiled for debugging.
        const DEBUG = 1 << 1;
        /// Producer: CUDA.
        const CUDA = 1 << 2;
        /// Producer: OpenCL.
        const OPENCL = 1 << 3;
        /// Made for a Linux host.
        const LINUX = 1 << 4;
        /// Made for a Mac host.
        const MAC = 1 << 5;
        /// Made for a Windows host.
        const WINDOWS = 1 << 6;
        /// Payload compressed: [`CompressionMethod::Zlib`].
        const ZLIB = 1 << 12;
        /// Payload compressed: [`CompressionMethod::Lz4`].
        const LZ4 = 1 << 13;
        /// Payload compressed: [`CompressionMethod::Lz4Frame`].
        const LZ4_FRAME = 1 << 14;
        /// Payload compressed: [`CompressionMethod::Zstd`].
        const ZSTD = 1 << 15;
        /// Payload obfuscated: NVVM only.
        const OBFUSCATED = 1 << 16;
        /// Suffix `a`: [`Suffix::Specific`].
        const SPECIFIC = 1 << 20;
        /// Suffix `f`: [`Suffix::Family`].
        const FAMILY = 1 << 21;
        /// An ELF whose `.nv.compat` the entry repeats as its options; CUDA 12.5's libraries have the flag without the options.
        const COMPAT = 1 << 24;
        const _ = !0;
    }
}

impl EntryFlags {
    /// All bits of compression.
    pub const COMPRESSED: Self =
        Self::ZLIB.union(Self::LZ4).union(Self::LZ4_FRAME).union(Self::ZSTD);
}

/// How a payload is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompressionMethod {
    /// A zlib stream (RFC 1950).
    Zlib,
    /// An LZ4 block without frame or size: the default up to CUDA 12.9.
    Lz4,
    /// An LZ4 frame.
    Lz4Frame,
    /// A Zstandard frame (RFC 8878): the default from CUDA 13.0.
    Zstd,
}

impl CompressionMethod {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Zlib, Self::Lz4, Self::Lz4Frame, Self::Zstd];

    /// The flag that says so.
    #[must_use]
    pub const fn flag(self) -> EntryFlags {
        match self {
            Self::Zlib => EntryFlags::ZLIB,
            Self::Lz4 => EntryFlags::LZ4,
            Self::Lz4Frame => EntryFlags::LZ4_FRAME,
            Self::Zstd => EntryFlags::ZSTD,
        }
    }

    /// The most bytes that `stored` bytes can unpack to: what the format can reach, not what is usual.
    ///
    /// * Deflate gives 258 bytes for two bits at best (RFC 1951 3.2.5): 1032 for a byte.
    /// * LZ4 gives 255 bytes for a byte of length at best ("LZ4 Block Format").
    /// * Zstandard gives a block of 128 KiB for 4 bytes at best (RFC 8878 3.1.1.2): 32,768 for a byte.
    #[must_use]
    pub const fn most(self, stored: u64) -> u64 {
        match self {
            Self::Zlib => stored.saturating_mul(1032),
            Self::Lz4 | Self::Lz4Frame => stored.saturating_mul(255),
            Self::Zstd => stored.saturating_mul(32_768),
        }
    }

    /// A short name: `zlib`, `lz4`, `lz4 frame`, `zstd`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Lz4 => "lz4",
            Self::Lz4Frame => "lz4 frame",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for CompressionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a letter after the SM's number promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Suffix {
    /// None: runs on the same major and a higher minor, as PTX on all that is newer.
    #[default]
    None,
    /// `f`: runs within the family.
    Family,
    /// `a`: runs on this very SM only.
    Specific,
}

impl Suffix {
    /// The flag that says so.
    #[must_use]
    pub const fn flag(self) -> EntryFlags {
        match self {
            Self::None => EntryFlags::empty(),
            Self::Family => EntryFlags::FAMILY,
            Self::Specific => EntryFlags::SPECIFIC,
        }
    }

    /// The letter: empty, `f` or `a`.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Family => "f",
            Self::Specific => "a",
        }
    }
}

/// An architecture: `90a` is number 90 with [`Suffix::Specific`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sm {
    /// Ten times the major version and the minor: 75, 90, 121.
    pub number: u32,
    /// The letter after it.
    pub suffix: Suffix,
}

impl Sm {
    /// An architecture without suffix.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self { number, suffix: Suffix::None }
    }

    /// Major version: 12 of 121.
    #[must_use]
    pub const fn major(self) -> u32 {
        self.number / 10
    }

    /// Minor version: 1 of 121.
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.number % 10
    }
}

impl fmt::Display for Sm {
    /// `90a`: with `sm_` or `compute_` in front, what the tools call it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.suffix.letter())
    }
}

/// The text is no architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnSm;

impl fmt::Display for NotAnSm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an architecture: expected a number such as 90, with or without sm_ before and a or f after it")
    }
}

impl core::error::Error for NotAnSm {}

impl FromStr for Sm {
    type Err = NotAnSm;

    /// `90`, `90a`, `sm_90a`, `compute_90`.
    fn from_str(text: &str) -> Result<Self, NotAnSm> {
        let text =
            text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).unwrap_or(text);
        let (digits, suffix) = match (text.strip_suffix('a'), text.strip_suffix('f')) {
            (Some(digits), _) => (digits, Suffix::Specific),
            (_, Some(digits)) => (digits, Suffix::Family),
            _ => (text, Suffix::None),
        };
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(number) if plain => Ok(Self { number, suffix }),
            _ => Err(NotAnSm),
        }
    }
}
