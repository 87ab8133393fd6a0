//! The value of an attribute as its record has it.

/// The value of an attribute, by the format byte of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// `EIFMT_NVAL` (1): being there is all it says. The two bytes that follow mean nothing.
    None(u16),
    /// `EIFMT_BVAL` (2): one byte; the second means nothing.
    Byte(u8, u8),
    /// `EIFMT_HVAL` (3): two bytes.
    Half(u16),
    /// `EIFMT_SVAL` (4): bytes whose number the record says.
    Bytes(&'a [u8]),
}

impl AttributeValue<'_> {
    /// The format as the CUDA tools write it.
    #[must_use]
    pub const fn format(&self) -> &'static str {
        match self {
            Self::None(_) => "EIFMT_NVAL",
            Self::Byte(..) => "EIFMT_BVAL",
            Self::Half(_) => "EIFMT_HVAL",
            Self::Bytes(_) => "EIFMT_SVAL",
        }
    }
}
