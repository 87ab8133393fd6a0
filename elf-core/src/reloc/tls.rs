//! Thread-local storage: where a thread's variables are, and how code that would ask for their place is rewritten to know it.
//!
//! Terms and models are those of Drepper, "ELF Handling For Thread-Local Storage": the thread pointer, a module's block of
//! variables, and general dynamic, local dynamic, initial exec and local exec code.

use super::rewrite::Addresses;
use super::site::Site;
use super::stub::Stub;
use crate::views::record::Record;

/// What an architecture says of thread-local storage. How code becomes local exec stands in the rows of its relocations.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Tls {
    /// On which side of the thread pointer an executable's block is.
    pub variant: Variant,
    /// Whether LD to LE relaxation makes DTP offsets TP offsets. Code that asks for the start of the block
    /// (`_TLS_MODULE_BASE_`) to add such offsets to it then gets the thread pointer.
    pub ld_to_le_by_tp: bool,
    /// What is added to an offset in a block where code or `__tls_get_addr` takes it (DTP bias).
    pub dtp_bias: i64,
    /// Code that calls the function of a TLS descriptor for those that call it, where the ABI leaves that to linkers. It has no
    /// relocations.
    pub call: Option<Stub>,
    /// Bits of [`BuildAttributes::processor`](crate::BuildAttributes) of processors whose calls go there, if not all do.
    pub callers: u32,
}

impl Tls {
    /// Of this variant.
    #[must_use]
    pub const fn new(variant: Variant) -> Self {
        Self { variant, ld_to_le_by_tp: false, dtp_bias: 0, call: None, callers: 0 }
    }

    /// The same, with code that is relaxed from LD to LE counting from the thread pointer.
    #[must_use]
    pub const fn ld_to_le_by_tp(self) -> Self {
        Self { ld_to_le_by_tp: true, ..self }
    }

    /// The same with code that calls functions of TLS descriptors, and the bits of processors whose calls go there.
    #[must_use]
    pub const fn call(self, call: Stub, callers: u32) -> Self {
        Self { call: Some(call), callers, ..self }
    }

    /// The same with a bias of DTP offsets.
    #[must_use]
    pub const fn dtp_bias(self, dtp_bias: i64) -> Self {
        Self { dtp_bias, ..self }
    }
}

/// On which side of the thread pointer the block of an executable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Variant I: behind the thread pointer and what the system keeps there.
    I {
        /// Bytes that the system keeps.
        reserved: u64,
    },
    /// Variant II: right before the thread pointer.
    II,
}

impl Variant {
    /// TP offset of the block of an executable; `None` if there is no such block. `alignment` is a power of two.
    #[must_use]
    pub const fn executable_block(self, size: u64, alignment: u64) -> Option<i64> {
        let low = alignment.wrapping_sub(1);
        let exact = match self {
            Self::I { reserved } => reserved,
            Self::II => size,
        };
        let Some(offset) = exact.checked_add(low) else { return None };
        let offset = offset & !low;
        if offset > i64::MAX as u64 {
            return None;
        }
        Some(match self {
            Self::I { .. } => offset.cast_signed(),
            Self::II => offset.cast_signed().wrapping_neg(),
        })
    }
}

/// How code at the place of one kind of relocation becomes local exec: GD, LD, IE and descriptors to LE.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Transition {
    /// Whether the relocation that follows, that of a call, is part of the sequence and is not applied.
    pub takes_call: bool,
    /// Rewrites the sequence around `place` in `code`, and tells how far behind the place the call's relocation must be, 0 if
    /// none is part of it. `None` if this is not the sequence that the ABI wants: nothing is changed then.
    pub rewrite: RewriteTls,
    /// Bytes of the sequence that go where bytes may, if `goes` says so.
    pub size: u8,
    /// Whether they do, if that may ever be.
    pub goes: Option<Goes>,
}

/// Whether instructions of a site go whose variable the record names, its own or that of the one that it belongs with:
/// [`Transition::goes`].
pub type Goes = fn(site: &Site<'_>, record: &Record, addresses: &Addresses) -> bool;

/// Rewrites the sequence around `place` in `code`: [`Transition::rewrite`].
pub type RewriteTls = fn(code: &mut [u8], place: usize, offsets: &TpOffsets) -> Option<u64>;

impl Transition {
    /// Of a sequence without a call.
    #[must_use]
    pub const fn new(rewrite: RewriteTls) -> Self {
        Self { takes_call: false, rewrite, size: 0, goes: None }
    }

    /// Of a sequence with a call of `__tls_get_addr`, whose relocation is the next.
    #[must_use]
    pub const fn with_call(rewrite: RewriteTls) -> Self {
        Self { takes_call: true, rewrite, size: 0, goes: None }
    }

    /// The same of `size` bytes that may go.
    #[must_use]
    pub const fn going(self, size: u8, goes: Goes) -> Self {
        Self { size, goes: Some(goes), ..self }
    }
}

/// What code becomes local exec by: offsets from the thread pointer in bytes, the same in every thread, and what the code is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TpOffsets {
    /// Of the variable, and the addend.
    pub variable: i64,
    /// Of the start of the module's block.
    pub block: i64,
    /// The addend that `variable` counts.
    pub addend: i64,
    /// Whether data are big-endian, and instructions where they have the byte order of the file.
    pub big_endian: bool,
    /// What the processors can do that the code is for: [`BuildAttributes::processor`](crate::BuildAttributes).
    pub processor: u32,
}

impl TpOffsets {
    /// Of a variable, and of its block, in little-endian code.
    #[must_use]
    pub const fn new(variable: i64, block: i64) -> Self {
        Self { variable, block, addend: 0, big_endian: false, processor: 0 }
    }

    /// The same for an addend that `variable` counts.
    #[must_use]
    pub const fn counting(self, addend: i64) -> Self {
        Self { addend, ..self }
    }

    /// The same in big-endian files, if so.
    #[must_use]
    pub const fn big_endian(self, big_endian: bool) -> Self {
        Self { big_endian, ..self }
    }

    /// The same where the processors can do this.
    #[must_use]
    pub const fn on(self, processor: u32) -> Self {
        Self { processor, ..self }
    }
}

/// `N` bytes of `code` from `before` bytes ahead of `place` on: what transitions match and rewrite.
#[must_use]
pub fn sequence<const N: usize>(
    code: &mut [u8],
    place: usize,
    before: usize,
) -> Option<&mut [u8; N]> {
    code.get_mut(place.checked_sub(before)?..)?.first_chunk_mut()
}

/// Bits of an instruction, and what they are.
pub type Form = (u32, u32);

/// Puts `new` for the instruction of 4 bytes at `place`, both little-endian, if it has one of the forms. `None`, with nothing changed, if
/// it has not.
#[must_use]
pub fn replace(code: &mut [u8], place: usize, forms: &[Form], new: u32) -> Option<()> {
    let word = sequence::<4>(code, place, 0)?;
    let old = u32::from_le_bytes(*word);
    if !forms.iter().any(|(mask, bits)| old & mask == *bits) {
        return None;
    }
    *word = new.to_le_bytes();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_executables() {
        let one = Variant::I { reserved: 16 };
        assert_eq!(one.executable_block(100, 8), Some(16));
        assert_eq!(one.executable_block(100, 64), Some(64));
        assert_eq!(Variant::II.executable_block(100, 8), Some(-104));
        assert_eq!(Variant::II.executable_block(0, 1), Some(0));
        assert_eq!(Variant::II.executable_block(u64::MAX, 8), None);
        assert_eq!(Variant::II.executable_block(1 << 63, 1), None);
    }

    #[test]
    fn sequences_stay_inside() {
        let mut code = [0; 8];
        assert!(sequence::<4>(&mut code, 4, 4).is_some());
        assert!(sequence::<4>(&mut code, 3, 4).is_none());
        assert!(sequence::<8>(&mut code, 4, 3).is_none());
        assert!(sequence::<4>(&mut code, usize::MAX, 0).is_none());
    }
}
