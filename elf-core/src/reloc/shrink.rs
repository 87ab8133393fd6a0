//! Code that becomes shorter: padding that assemblers made as large as it may have to be, and instructions for which shorter ones
//! do (RISC-V psABI, "Linker Relaxation"; `LoongArch` ABI, "Relaxation"). Only who lends a layout room for it gets any of it.

use super::pairing::Shorten;
use crate::views::record::Record;

/// Padding of which what is too much goes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Padding {
    /// What a record says of it.
    pub alignment: fn(&Record) -> Alignment,
    /// Instructions that do nothing, the longest first: what stays is filled with them if not all stays.
    pub nops: &'static [&'static [u8]],
}

impl Padding {
    /// Of what its records say, filled with these instructions.
    #[must_use]
    pub const fn new(alignment: fn(&Record) -> Alignment, nops: &'static [&'static [u8]]) -> Self {
        Self { alignment, nops }
    }

    /// Fills `place` with instructions that do nothing, the longest first; zeros where none fits.
    pub fn fill(&self, place: &mut [u8]) {
        let mut at = 0usize;
        for nop in self.nops.iter().filter(|nop| !nop.is_empty()) {
            while let Some(room) = place.get_mut(at..).and_then(|rest| rest.get_mut(..nop.len())) {
                for (to, from) in room.iter_mut().zip(*nop) {
                    *to = *from;
                }
                at = at.wrapping_add(nop.len());
            }
        }
        for byte in place.get_mut(at..).unwrap_or_default() {
            *byte = 0;
        }
    }
}

/// What a record of padding says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Bytes that are there.
    pub padding: u64,
    /// What the address behind them shall be a multiple of, a power of two.
    pub alignment: u64,
    /// Bytes that may stay at most: if more are wanted, all of them go, and nothing is aligned.
    pub most: u64,
}

impl Alignment {
    /// Whether all of the padding may stay, if what is behind it has the address `end`.
    #[must_use]
    pub const fn is_met_by_all(&self, end: u64) -> bool {
        let low = self.alignment.wrapping_sub(1);
        end & low == 0 || self.padding.wrapping_sub(end) & low > self.most
    }

    /// Bytes that stay at `address`; `None` if there are too few.
    #[must_use]
    pub const fn kept(&self, address: u64) -> Option<u64> {
        let wanted = address.wrapping_neg() & self.alignment.wrapping_sub(1);
        if wanted > self.most {
            Some(0)
        } else if wanted > self.padding {
            None
        } else {
            Some(wanted)
        }
    }
}

/// Instructions for which shorter ones may do.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Shrink {
    /// Bytes of the instructions from the place on, some of which may go; 0 if they only change.
    pub size: u8,
    /// What stands for them, where the ABI has anything for these addresses: no more bytes than they are.
    pub rewrite: Shorten,
    /// Whether there is none but for addresses that are counted from the global pointer.
    pub by_global_pointer: bool,
}

impl Shrink {
    /// Of `size` bytes.
    #[must_use]
    pub const fn new(size: u8, rewrite: Shorten) -> Self {
        Self { size, rewrite, by_global_pointer: false }
    }

    /// The same of one that only counts addresses from the global pointer.
    #[must_use]
    pub const fn by_global_pointer(self) -> Self {
        Self { by_global_pointer: true, ..self }
    }
}
