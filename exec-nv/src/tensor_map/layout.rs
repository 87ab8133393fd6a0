//! How a tensor lies in memory, and how it is copied.

use super::TensorMapError;

/// Dimensions of a tensor at most.
pub(super) const DIMENSIONS: usize = 5;

/// What the elements of a tensor are (`CUtensorMapDataType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[expect(missing_docs, reason = "their names say it")]
pub enum TensorType {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    I32 = 3,
    U64 = 4,
    I64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    /// Numbers too small for the usual form become 0.
    F32Ftz = 10,
    Tf32 = 11,
    /// Numbers too small for the usual form become 0.
    Tf32Ftz = 12,
    /// 16 numbers of 4 bits in 8 bytes.
    U4Align8 = 13,
    /// 16 numbers of 4 bits in 8 bytes, which have 16 in shared memory.
    U4Align16 = 14,
    /// 16 numbers of 6 bits in 12 bytes, which have 16 in shared memory.
    U6Align16 = 15,
}

impl TensorType {
    /// Bytes of so many elements in a row, in the device's memory.
    #[must_use]
    pub const fn bytes(self, count: u64) -> u64 {
        let size = match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U4Align8 | Self::U4Align16 => return count.div_ceil(2),
            Self::U6Align16 => return count.div_ceil(4).saturating_mul(3),
        };
        count.saturating_mul(size)
    }

    /// Bytes of so many elements in a row, in shared memory.
    pub(super) const fn shared_bytes(self, count: u64) -> u64 {
        if self.has_gaps() { count.div_ceil(16).saturating_mul(16) } else { self.bytes(count) }
    }

    pub(super) const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16
                | Self::F32
                | Self::F64
                | Self::Bf16
                | Self::F32Ftz
                | Self::Tf32
                | Self::Tf32Ftz
        )
    }

    /// Whether gaps are between the numbers in shared memory, and there alone.
    pub(super) const fn has_gaps(self) -> bool {
        matches!(self, Self::U4Align16 | Self::U6Align16)
    }
}

/// How channels are grouped in memory (`CUtensorMapInterleave`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Interleave {
    /// Not at all.
    #[default]
    None = 0,
    /// By 16 bytes, as NC/8HWC8 of halves.
    B16 = 1,
    /// By 32 bytes, as NC/16HWC16 of halves.
    B32 = 2,
}

/// How a box lies in shared memory, so that threads that go down a column do not all want the same bank (`CUtensorMapSwizzle`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Swizzle {
    /// As in memory.
    #[default]
    None = 0,
    /// 16 bytes are moved within 32.
    B32 = 1,
    /// 16 bytes are moved within 64.
    B64 = 2,
    /// 16 bytes are moved within 128.
    B128 = 3,
    /// 32 bytes are moved within 128.
    B128Atom32 = 4,
    /// 32 bytes are moved within 128, and in every other row the halves of 16 bytes are changed.
    B128Atom32Flip8 = 5,
    /// 64 bytes are moved within 128.
    B128Atom64 = 6,
}

impl Swizzle {
    /// Bytes that a row of a box may have; `None` if it does not matter.
    pub(super) const fn span(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 | Self::B128Atom32 | Self::B128Atom32Flip8 | Self::B128Atom64 => Some(128),
        }
    }
}

/// How much the level 2 cache fetches where a part is asked for (`CUtensorMapL2promotion`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[expect(missing_docs, reason = "bytes")]
pub enum L2Promotion {
    #[default]
    None = 0,
    B64 = 1,
    B128 = 2,
    B256 = 3,
}

/// What stands where a box is outside of the tensor (`CUtensorMapFloatOOBfill`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OutOfBounds {
    /// 0.
    #[default]
    Zeros = 0,
    /// A NaN that fused operations take for 0.
    NanRequestZeroFma = 1,
}

/// How a tensor lies in memory, and how it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    pub(super) kind: TensorType,
    pub(super) rank: u32,
    /// Elements, by dimension; 1 for those that are not there.
    pub(super) sizes: [u64; DIMENSIONS],
    /// Bytes from one to the next in each dimension but the innermost.
    pub(super) strides: [u64; DIMENSIONS],
    /// In a box, only each so many-th.
    pub(super) steps: [u32; DIMENSIONS],
    pub(super) interleave: Interleave,
    pub(super) swizzle: Swizzle,
    pub(super) promotion: L2Promotion,
    pub(super) out_of_bounds: OutOfBounds,
}

impl TensorLayout {
    /// A tensor of so many elements by dimension, the innermost first, without gaps.
    ///
    /// # Errors
    /// [`TensorMapError::Rank`] of none, or of more than 5 dimensions.
    pub fn new(kind: TensorType, sizes: &[u64]) -> Result<Self, TensorMapError> {
        let mut layout = Self {
            kind,
            rank: sizes.len() as u32,
            sizes: [1; DIMENSIONS],
            strides: [0; DIMENSIONS],
            steps: [1; DIMENSIONS],
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            promotion: L2Promotion::None,
            out_of_bounds: OutOfBounds::Zeros,
        };
        let place = layout.sizes.get_mut(..sizes.len()).filter(|place| !place.is_empty());
        let least = 1;
        place.ok_or(TensorMapError::Rank { found: sizes.len(), least })?.copy_from_slice(sizes);
        let mut bytes = kind.bytes(sizes.first().copied().unwrap_or(0));
        for (stride, size) in layout.strides.iter_mut().zip(layout.sizes.iter().skip(1)) {
            *stride = bytes;
            bytes = bytes.saturating_mul(*size);
        }
        Ok(layout)
    }

    /// Bytes from one element to the next in each dimension but the innermost.
    ///
    /// # Errors
    /// [`TensorMapError::Count`] if there is not one less than there are dimensions.
    pub fn strides(mut self, strides: &[u64]) -> Result<Self, TensorMapError> {
        let (found, expected) = (strides.len(), self.rank() - 1);
        let place = self.strides.get_mut(..found).filter(|_| found == expected);
        place
            .ok_or(TensorMapError::Count { what: "strides", found, expected })?
            .copy_from_slice(strides);
        Ok(self)
    }

    /// Steps in each dimension: of a box of `n` elements, every `step`-th is copied.
    ///
    /// # Errors
    /// [`TensorMapError::Count`] if there are not as many as there are dimensions.
    pub fn steps(mut self, steps: &[u32]) -> Result<Self, TensorMapError> {
        let (found, expected) = (steps.len(), self.rank());
        let place = self.steps.get_mut(..found).filter(|_| found == expected);
        place
            .ok_or(TensorMapError::Count { what: "steps", found, expected })?
            .copy_from_slice(steps);
        Ok(self)
    }

    /// Channels are grouped in memory.
    #[must_use]
    pub const fn interleave(mut self, interleave: Interleave) -> Self {
        self.interleave = interleave;
        self
    }

    /// Boxes lie like this in shared memory.
    #[must_use]
    pub const fn swizzle(mut self, swizzle: Swizzle) -> Self {
        self.swizzle = swizzle;
        self
    }

    /// The level 2 cache fetches so much.
    #[must_use]
    pub const fn l2_promotion(mut self, promotion: L2Promotion) -> Self {
        self.promotion = promotion;
        self
    }

    /// Outside of the tensor is this.
    #[must_use]
    pub const fn out_of_bounds(mut self, fill: OutOfBounds) -> Self {
        self.out_of_bounds = fill;
        self
    }

    /// Number of dimensions, 1 to 5.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Bytes from the first element to the end of the last.
    #[must_use]
    pub fn extent(&self) -> u64 {
        let row = self.kind.bytes(self.sizes.first().copied().unwrap_or(0));
        let others = self.sizes.iter().skip(1).zip(self.strides);
        let far = others.map(|(&size, stride)| size.saturating_sub(1).saturating_mul(stride));
        far.fold(row, u64::saturating_add)
    }
}

/// What of images is copied as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Im2colBox<'a> {
    /// Where the box begins, from the beginning of the image, for each of width, height and depth that there is: negative with padding.
    pub lower: &'a [i32],
    /// Where it ends, from the end of the image.
    pub upper: &'a [i32],
    /// Channels of a pixel that are copied.
    pub channels: u32,
    /// Pixels of a column.
    pub pixels: u32,
}

/// What of images is copied as columns that go along the width alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Im2colWideBox {
    /// Where the box begins, from the beginning of a row: negative with padding.
    pub lower: i32,
    /// Where it ends, from the end of a row.
    pub upper: i32,
    /// Channels of a pixel that are copied.
    pub channels: u32,
    /// Pixels of a column; `None` for the form that has 128 (`CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128`).
    pub pixels: Option<u32>,
}
