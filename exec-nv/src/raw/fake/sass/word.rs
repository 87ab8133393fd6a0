//! An instruction's fields.

use super::{Reach, Thread};

/// An instruction of Volta and later: 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Word(pub(super) u128);

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "instruction {:#034x}", self.0)
    }
}

impl Word {
    pub(super) const fn bits(self, at: u32, width: u32) -> u64 {
        (self.0 >> at) as u64 & (u64::MAX >> (64 - width))
    }

    pub(super) const fn bit(self, at: u32) -> bool {
        self.bits(at, 1) == 1
    }

    pub(super) const fn index(self, at: u32, width: u32) -> usize {
        self.bits(at, width) as usize
    }

    /// What it is, with the form of its operands.
    pub(super) const fn opcode(self) -> u64 {
        self.bits(0, 12)
    }

    /// The register it writes.
    pub(super) const fn to(self) -> usize {
        self.index(16, 8)
    }

    /// Whether a thread executes it.
    pub(super) fn guard(self, thread: &Thread) -> bool {
        let index = self.index(12, 3);
        // instructions of the uniform path are guarded by uniform predicates
        let is_uniform = matches!(self.opcode() & 0x1ff, 0x82 | 0x90 | 0x91 | 0x92 | 0x99 | 0xb9);
        let value =
            if is_uniform { thread.uniform_predicate(index) } else { thread.predicate(index) };
        value != self.bit(15)
    }

    /// A predicate that is read: 3 bits, and one that turns it round.
    pub(super) fn source(self, at: u32, thread: &Thread) -> bool {
        thread.predicate(self.index(at, 3)) != self.bit(at + 3)
    }

    /// A displacement of 24 bits.
    pub(super) const fn displacement(self) -> i64 {
        (self.bits(40, 24) << 40) as i64 >> 40
    }

    /// Where a branch or call goes: 56 bits in units of 4.
    pub(super) const fn target(self) -> i64 {
        let value = self.bits(34, 48) << 8 | self.bits(16, 8);
        ((value << 8) as i64 >> 8).wrapping_mul(4)
    }

    /// How many bytes are read or written.
    pub(super) fn size(self) -> Result<usize, String> {
        match self.bits(73, 3) {
            0 | 1 => Ok(1),
            2 | 3 => Ok(2),
            4 => Ok(4),
            5 => Ok(8),
            6 => Ok(16),
            size => Err(format!("size {size}")),
        }
    }

    /// Whether what is read has a sign.
    pub(super) const fn is_signed(self) -> bool {
        matches!(self.bits(73, 3), 1 | 3)
    }

    /// Second and third operand: which of them is a register in bits 64 to 71, and what the other one is, the form says.
    pub(super) fn operands(self, thread: &Thread, reach: &Reach<'_>) -> Result<[u32; 2], String> {
        let negated = |value: u32, bit: u32| {
            if self.bit(bit) { value.wrapping_neg() } else { value }
        };
        let register = |at| thread.register(self.index(at, 8));
        let low = match self.opcode() >> 9 {
            1 => negated(register(32), 63),
            2 | 4 => self.bits(32, 32) as u32,
            3 | 5 => {
                let value = reach.constant(self.bits(54, 5) as u32, self.bits(38, 16), 4)?;
                negated(value as u32, 63)
            }
            6 | 7 => negated(thread.uniform(self.index(32, 6)), 63),
            form => return Err(format!("form {form}")),
        };
        let high = negated(register(64), 75);
        Ok(if matches!(self.opcode() >> 9, 2 | 3 | 7) { [high, low] } else { [low, high] })
    }
}

impl Reach<'_> {
    /// Bytes of a constant bank.
    pub(super) fn constant(&self, bank: u32, offset: u64, size: usize) -> Result<u64, String> {
        let bytes = self.grid.banks.iter().find(|(index, _)| *index == bank);
        let bytes = bytes.and_then(|(_, bytes)| bytes.get(offset as usize..)?.get(..size));
        let bytes = bytes.ok_or_else(|| format!("nothing at c[{bank}][{offset:#x}]"))?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}
