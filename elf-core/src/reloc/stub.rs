//! Code that a linker adds for branches.

use super::check::Check;

/// Code that jumps to a symbol: a PLT entry, a thunk, a veneer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stub {
    /// The instructions.
    pub code: &'static [u8],
    /// Their alignment in bytes.
    pub alignment: u64,
    /// The relocations against the symbol, by rising offset.
    pub relocations: &'static [StubRelocation],
    /// How far the shortest branches reach that may go by way of the code, in bytes either way; `None` where that is as far as the
    /// code's own distance to the GOT.
    pub reach: Option<u64>,
    /// Whether the code is Thumb code: T of whoever branches to it.
    pub is_thumb: bool,
    /// Size in bytes of the units of code that have the byte order of the file; 0 of code that is little-endian in every file.
    pub unit: usize,
}

impl Stub {
    /// Code that stands at multiples of `alignment` bytes, a power of two.
    #[must_use]
    pub const fn new(
        code: &'static [u8],
        alignment: u64,
        relocations: &'static [StubRelocation],
    ) -> Self {
        Self { code, alignment, relocations, reach: None, is_thumb: false, unit: 0 }
    }

    /// The same for branches of which the shortest reach so many bytes either way.
    #[must_use]
    pub const fn reach(self, reach: u64) -> Self {
        Self { reach: Some(reach), ..self }
    }

    /// The same in Thumb code.
    #[must_use]
    pub const fn thumb(self) -> Self {
        Self { is_thumb: true, ..self }
    }

    /// The same in units of so many bytes in the byte order of the file.
    #[must_use]
    pub const fn unit(self, unit: usize) -> Self {
        Self { unit, ..self }
    }

    /// Size with the padding to the next, in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        let low = self.alignment.wrapping_sub(1);
        (self.code.len() as u64).wrapping_add(low) & !low
    }
}

/// A relocation of a stub's code, against the symbol that it jumps to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StubRelocation {
    /// Bytes from the start of the code.
    pub offset: u64,
    /// `r_type`.
    pub r#type: u32,
    /// Addend.
    pub addend: i64,
    /// Where the code has the relocation that this one belongs with.
    pub label: Option<u64>,
}

impl StubRelocation {
    /// A relocation that stands for itself.
    #[must_use]
    pub const fn new(offset: u64, r#type: u32, addend: i64) -> Self {
        Self { offset, r#type, addend, label: None }
    }

    /// The same, belonging with the one at offset `label`.
    #[must_use]
    pub const fn with(self, label: u64) -> Self {
        Self { label: Some(label), ..self }
    }
}

/// By way of which stub a branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StubChoice {
    /// Index among the architecture's stubs.
    pub stub: u8,
    /// Also if the branch would reach its target: it cannot change the processor's state, say.
    pub always: bool,
    /// Which distances the branch spans, if those are fewer than its kind allows.
    pub within: Option<Check>,
}

impl StubChoice {
    /// A stub for what is out of reach only.
    #[must_use]
    pub const fn new(stub: u8) -> Self {
        Self { stub, always: false, within: None }
    }

    /// The same for whatever the target, if `always`.
    #[must_use]
    pub const fn always(self, always: bool) -> Self {
        Self { always, ..self }
    }

    /// The same where the branch spans no other distances.
    #[must_use]
    pub const fn within(self, within: Check) -> Self {
        Self { within: Some(within), ..self }
    }
}
