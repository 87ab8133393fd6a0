//! How compilers are told to compress: `nvcc --compress-mode` (CUDA 12.8 and later).

use crate::kind::CompressionMethod;

/// What matters in compressing, in the words of NVIDIA's tools. What they choose was read from files of fatbinary 12.8 to 13.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressionMode {
    /// Time to unpack: LZ4 at level 3 of its encoder for high compression.
    Speed,
    /// Both: Zstandard at level 5, which CUDA 13 uses if nothing is said.
    Balance,
    /// Bytes: Zstandard at level 19.
    Size,
}

impl CompressionMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Speed, Self::Balance, Self::Size];

    /// What nvcc calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Balance => "balance",
            Self::Size => "size",
        }
    }

    /// The method that it means.
    #[must_use]
    pub const fn method(self) -> CompressionMethod {
        match self {
            Self::Speed => CompressionMethod::Lz4,
            Self::Balance | Self::Size => CompressionMethod::Zstd,
        }
    }

    /// The level that it means, of encoders that have levels.
    #[cfg(feature = "alloc")]
    const fn level(self) -> i32 {
        match self {
            Self::Speed => 3,
            Self::Balance => 5,
            Self::Size => crate::deflate::SMALLEST,
        }
    }

    /// Compresses a payload.
    ///
    /// # Errors
    /// As [`CompressionMethod::pack`]. Without the features `liblz4` and `libzstd` each method has one level, whatever the mode.
    #[cfg(feature = "alloc")]
    pub fn pack(self, payload: &[u8]) -> Result<alloc::vec::Vec<u8>, crate::Error> {
        self.method().pack_at(payload, self.level())
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn all_unpack_to_what_they_packed_and_size_is_smallest() {
        let text: alloc::vec::Vec<u8> =
            (0..40_000_u32).map(|n| ((n * n) >> 7) as u8 & 31).collect();
        let mut sizes = alloc::vec::Vec::new();
        for mode in CompressionMode::ALL {
            let Ok(packed) = mode.pack(&text) else { return };
            let mut unpacked = alloc::vec![0; text.len()];
            mode.method().unpack(Span::from(&*packed), &mut unpacked).unwrap();
            assert!(unpacked == text, "{}", mode.name());
            sizes.push(packed.len());
        }
        assert!(sizes.iter().all(|size| sizes.last() <= Some(size)), "{sizes:?}");
    }
}
