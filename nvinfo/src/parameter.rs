//! Parameters of a kernel: `EIATTR_KPARAM_INFO`, `EIATTR_KPARAM_INFO_V2`, `EIATTR_PARAM_CBANK`.

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelParameter {
    /// Index of the record; 0 in all files seen.
    pub index: u32,
    /// Position among the parameters, from 0.
    pub ordinal: u16,
    /// Offset in bytes from the first parameter.
    pub offset: u16,
    /// Size in bytes.
    pub size: u16,
    /// Alignment of what a pointer points to, as a power of two; 0 if not known.
    pub pointee_alignment: u8,
    /// Number of the space that a pointer points to; 0 if not known.
    pub space: u8,
    /// Number of the constant bank; 31 says that of the kernel. Not recorded by `KPARAM_INFO_V2`.
    pub bank: Option<u8>,
    /// Whether the parameter is in shared memory, not in a constant bank.
    pub in_shared_memory: bool,
}

impl KernelParameter {
    /// The record of 12 bytes with a packed fourth part.
    pub(crate) const fn from_words([index, place, packed]: [u32; 3]) -> Self {
        Self {
            index,
            ordinal: place as u16,
            offset: (place >> 16) as u16,
            size: (packed >> 18) as u16,
            pointee_alignment: packed as u8,
            space: (packed >> 8) as u8 & 0xf,
            bank: Some((packed >> 12) as u8 & 0x1f),
            in_shared_memory: packed & 1 << 17 != 0,
        }
    }

    /// The record of 12 bytes with room for a size of 16 bits.
    pub(crate) const fn from_words_v2([index, place, kind]: [u32; 3]) -> Self {
        let [_, _, pointee_alignment, space] = kind.to_le_bytes();
        Self {
            index,
            ordinal: place as u16,
            offset: (place >> 16) as u16,
            size: kind as u16,
            pointee_alignment,
            space,
            bank: None,
            in_shared_memory: false,
        }
    }
}

/// Where the parameters of a kernel are (`EIATTR_PARAM_CBANK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterBank {
    /// Index of the symbol of the section that is the bank's image.
    pub symbol: u32,
    /// Offset of the first parameter in the bank, in bytes.
    pub offset: u16,
    /// Size of all parameters in bytes.
    pub size: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_records_are_read() {
        let old = KernelParameter::from_words([0, 0x0008_0001, 0x0011_f000]);
        assert_eq!((old.ordinal, old.offset, old.size), (1, 8, 4));
        assert_eq!(
            (old.pointee_alignment, old.space, old.bank, old.in_shared_memory),
            (0, 0, Some(31), false)
        );
        let new = KernelParameter::from_words_v2([0, 0x2000_0001, 8]);
        assert_eq!((new.ordinal, new.offset, new.size, new.bank), (1, 0x2000, 8, None));
    }
}
