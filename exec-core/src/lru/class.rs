//! Size classes: four to each power of two.

/// A range of sizes that share one size of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SizeClass(u8);

/// Bytes of the smallest class, as a power of two.
const SMALLEST: u32 = 8;

impl SizeClass {
    /// Number of classes.
    pub(crate) const COUNT: usize = 1 + 4 * (64 - SMALLEST as usize);

    /// The class of a size, unless its memory would be more than addresses can be.
    pub(crate) const fn of(size: u64) -> Option<Self> {
        let Some(exponent) = size.saturating_sub(1).checked_ilog2() else { return Some(Self(0)) };
        if exponent < SMALLEST {
            return Some(Self(0));
        }
        let quarter = (size - 1) >> (exponent - 2) & 3;
        // 8 quarters of 2^63 do not fit
        if exponent == 63 && quarter == 3 {
            return None;
        }
        Some(Self((1 + 4 * (exponent - SMALLEST)) as u8 + quarter as u8))
    }

    /// Bytes of memory of this class.
    pub(crate) const fn bytes(self) -> u64 {
        match self.0.checked_sub(1) {
            None => 1 << SMALLEST,
            Some(above) => (5 + above as u64 % 4) << (SMALLEST - 2 + above as u32 / 4),
        }
    }

    /// The class of this [`index`](Self::index).
    pub(crate) const fn at(index: u8) -> Self {
        Self(index)
    }

    /// Below [`COUNT`](Self::COUNT).
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_of_classes() {
        let bytes = |size| SizeClass::of(size).map(SizeClass::bytes);
        for (size, expected) in [
            (1, 256),
            (256, 256),
            (257, 320),
            (320, 320),
            (321, 384),
            (448, 448),
            (449, 512),
            (512, 512),
            (513, 640),
        ] {
            assert_eq!(bytes(size), Some(expected), "{size}");
        }
        assert_eq!(bytes(u64::MAX), None);
        assert_eq!(bytes(7 << 61), Some(7 << 61));
        assert_eq!(bytes((7 << 61) + 1), None);
    }

    proptest! {
        #[test]
        fn a_class_holds_its_sizes_and_wastes_a_fifth(exponent in 0u32..63, fraction: u32) {
            let size = (1u64 << exponent) + ((u64::from(fraction) << exponent) >> 32);
            let class = SizeClass::of(size).unwrap();
            prop_assert!(class.index() < SizeClass::COUNT);
            prop_assert!(class.bytes() >= size);
            prop_assert!(size <= 256 || (class.bytes() - size) * 4 < size);
            prop_assert_eq!(SizeClass::of(class.bytes()), Some(class));
            prop_assert!(class.bytes() == 256 || SizeClass::of(size + 1).unwrap() >= class);
        }
    }
}
