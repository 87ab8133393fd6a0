//! An instruction's fields.

use super::float::Source;
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
        let is_uniform = match self.opcode() & 0x1ff {
            0x86 | 0xbd | 0xca => false,
            0xb9 | 0x1ac => true,
            _ => self.is_uniform(),
        };
        let value =
            if is_uniform { thread.uniform_predicate(index) } else { thread.predicate(index) };
        value != self.bit(15)
    }

    /// Whether it is of the uniform path.
    pub(super) const fn is_uniform(self) -> bool {
        matches!(
            self.opcode() & 0x1ff,
            0x82 | 0x86
                | 0x87
                | 0x8c
                | 0x90
                | 0x91
                | 0x92
                | 0x96
                | 0x97
                | 0x99
                | 0xa4
                | 0xa5
                | 0xbd
                | 0xca
        )
    }

    /// A uniform predicate that is read.
    pub(super) fn uniform_source(self, at: u32, thread: &Thread) -> bool {
        thread.uniform_predicate(self.index(at, 3)) != self.bit(at + 3)
    }

    /// What zeros that are subtracted carry, in the place of the carry: all of them, as nothing is borrowed.
    pub(super) fn negated_zeros(self, a: u32, [b, c]: [u32; 2]) -> u64 {
        if self.has_carry() {
            return 0;
        }
        let form = self.opcode() >> 9;
        let (low, high) = if matches!(form, 2 | 3 | 7) { (c, b) } else { (b, c) };
        let is_negated_zero = [
            self.bit(72) && a == 0,
            !matches!(form, 2 | 4) && self.bit(63) && low == 0,
            self.bit(75) && high == 0,
        ];
        (is_negated_zero.iter().filter(|&&is| is).count() as u64) << 32
    }

    /// A predicate that is read: 3 bits, and one that turns it round.
    pub(super) fn source(self, at: u32, thread: &Thread) -> bool {
        thread.predicate(self.index(at, 3)) != self.bit(at + 3)
    }

    /// Whether it is the upper part of an addition.
    pub(super) const fn has_carry(self) -> bool {
        matches!(self.opcode() & 0x1ff, 0x10 | 0x11 | 0x24 | 0x90) && self.bit(74)
    }

    /// A displacement of 24 bits.
    pub(super) const fn displacement(self) -> i64 {
        (self.bits(40, 24) << 40) as i64 >> 40
    }

    /// Where a branch or call goes, in units of 4: 48 bits, and since Hopper 8 more below them.
    pub(super) const fn target(self, sm: u32) -> i64 {
        let value = if sm < 90 {
            (self.bits(34, 48) << 16) as i64 >> 16
        } else {
            ((self.bits(34, 48) << 8 | self.bits(16, 8)) << 8) as i64 >> 8
        };
        value.wrapping_mul(4)
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

    /// A comparison and a predicate.
    pub(super) fn combined(self, holds: bool, with: bool) -> Result<bool, String> {
        match self.bits(74, 2) {
            0 => Ok(holds && with),
            1 => Ok(holds || with),
            2 => Ok(holds != with),
            other => Err(format!("operation {other}")),
        }
    }

    /// The first operand of an instruction of floating point.
    pub(super) fn first(self, thread: &Thread, is_wide: bool) -> Source {
        let index = self.index(24, 8);
        let bits = if is_wide { thread.pair(index) } else { thread.register(index).into() };
        Source {
            bits,
            is_negative: self.bit(72),
            is_absolute: self.bit(73),
            half: self.bits(74, 2),
        }
    }

    /// Second and third operand of such an instruction, of 32 or 64 bits.
    pub(super) fn sources(
        self,
        thread: &Thread,
        reach: &Reach<'_>,
        is_wide: bool,
    ) -> Result<[Source; 2], String> {
        let register = |at| {
            let index = self.index(at, 8);
            if is_wide { thread.pair(index) } else { thread.register(index).into() }
        };
        let form = self.opcode() >> 9;
        let bits = match form {
            1 => register(32),
            2 | 4 if is_wide => self.bits(32, 32) << 32,
            2 | 4 => self.bits(32, 32),
            3 | 5 => {
                let size = if is_wide { 8 } else { 4 };
                reach.constant(self.bits(54, 5) as u32, self.bits(38, 16), size)?
            }
            6 | 7 => {
                let index = self.index(32, 6);
                let high = if is_wide { thread.uniform_pair(index) >> 32 } else { 0 };
                high << 32 | u64::from(thread.uniform(index))
            }
            form => return Err(format!("form {form}")),
        };
        let has_sign = !matches!(form, 2 | 4);
        let (is_negative, is_absolute) = (has_sign && self.bit(63), has_sign && self.bit(62));
        let half = if has_sign { self.bits(60, 2) } else { 0 };
        let low = Source { bits, is_negative, is_absolute, half };
        let (is_negative, is_absolute) = (self.bit(75), self.bit(74));
        let high = Source { bits: register(64), is_negative, is_absolute, half: 0 };
        Ok(if matches!(form, 2 | 3 | 7) { [high, low] } else { [low, high] })
    }

    /// The operands of an instruction of pairs, which has other places for what is done to the one in bits 64 to 71.
    pub(super) fn halves(
        self,
        thread: &Thread,
        reach: &Reach<'_>,
    ) -> Result<(Source, [Source; 2]), String> {
        let mut sources = self.sources(thread, reach, false)?;
        let index = usize::from(!matches!(self.opcode() >> 9, 2 | 3 | 7));
        let high = &mut sources[index];
        high.is_negative = self.bit(84);
        high.is_absolute = self.bit(83);
        high.half = self.bits(81, 2);
        Ok((self.first(thread, false), sources))
    }

    /// Second and third operand: which of them is a register in bits 64 to 71, and what the other one is, the form says.
    pub(super) fn operands(self, thread: &Thread, reach: &Reach<'_>) -> Result<[u32; 2], String> {
        // with a carry, the complement
        // others have tables, shifts or comparisons in these places
        let has_signs = matches!(self.opcode() & 0x1ff, 0x10 | 0x11 | 0x24 | 0x36 | 0x46);
        let negated = |value: u32, bit: u32| match has_signs && self.bit(bit) {
            true if self.has_carry() => !value,
            true => value.wrapping_neg(),
            false => value,
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
        let is_shift = self.opcode() & 0x1ff == 0x11;
        let high = if is_shift { register(64) } else { negated(register(64), 75) };
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
