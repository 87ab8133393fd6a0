//! What is known of symbols beside their addresses, and of objects beside their flags.

/// What an object says of how it was built (build attributes). What the bits mean is the architecture's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildAttributes {
    /// What the processors can do that its code is for, a bit each. What one object relies on, all may.
    pub processor: u32,
    /// Choices of the ABI: fields with the number of one and 1. What is 0 goes together with every other.
    pub abi: u32,
}

/// What is known of a symbol beside its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolAttributes {
    /// T: it is a function of Thumb code.
    pub is_thumb: bool,
    /// Whether it is known to be a function: T says nothing of labels and of addresses of unknown meaning.
    pub is_function: bool,
    /// `st_other`: the visibility and what the psABI adds to it, a variant procedure call standard or a local entry point.
    pub other: u8,
    /// What the processors can do that all objects together are for: [`BuildAttributes::processor`](crate::BuildAttributes).
    pub processor: u32,
}

impl SymbolAttributes {
    /// T and `st_other`.
    #[must_use]
    pub const fn new(is_thumb: bool, other: u8) -> Self {
        Self { is_thumb, is_function: is_thumb, other, processor: 0 }
    }

    /// The same of a function, or of what may be none.
    #[must_use]
    pub const fn function(self, is_function: bool) -> Self {
        Self { is_function, ..self }
    }

    /// The same where the processors can do this.
    #[must_use]
    pub const fn on(self, processor: u32) -> Self {
        Self { processor, ..self }
    }
}
