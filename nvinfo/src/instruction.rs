//! What instructions are: as much of their encoding as attributes go by.

use crate::names::eiattr;

/// How an architecture's instructions stand in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// `sm_35`, `sm_37`: 8 bytes, the first of eight words holds no instruction.
    Kepler,
    /// `sm_50` to `sm_62`: 8 bytes, the first of four words holds no instruction.
    Maxwell,
    /// From `sm_70` on: 16 bytes.
    Volta,
}

/// The bits of `word` from `at` on.
const fn bits(word: u128, at: u32, width: u32) -> u128 {
    word.unbounded_shr(at) & !u128::MAX.unbounded_shl(width)
}

impl Instructions {
    /// Those of this architecture.
    #[must_use]
    pub const fn of(sm: u32) -> Self {
        match sm {
            0..50 => Self::Kepler,
            50..70 => Self::Maxwell,
            _ => Self::Volta,
        }
    }

    /// Bytes of an instruction.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Kepler | Self::Maxwell => 8,
            Self::Volta => 16,
        }
    }

    /// Whether an instruction can be at this offset.
    #[must_use]
    pub const fn holds(self, offset: u32) -> bool {
        match self {
            Self::Kepler => offset.is_multiple_of(8) && !offset.is_multiple_of(64),
            Self::Maxwell => offset.is_multiple_of(8) && !offset.is_multiple_of(32),
            Self::Volta => offset.is_multiple_of(16),
        }
    }

    /// The bits of the instruction at `offset` that say what it does, without its predicate; from `sm_70` on the upper three of the
    /// twelve say where its operands are.
    #[must_use]
    pub fn opcode(self, code: &[u8], offset: u32) -> Option<u16> {
        self.word(code, offset).map(|word| self.opcode_of(word))
    }

    /// The instruction at `offset`.
    pub(crate) fn word(self, code: &[u8], offset: u32) -> Option<u128> {
        let rest = code.get(usize::try_from(offset).ok()?..)?;
        match self {
            Self::Volta => rest.first_chunk().copied().map(u128::from_le_bytes),
            _ => rest.first_chunk().map(|word| u64::from_le_bytes(*word).into()),
        }
    }

    pub(crate) const fn opcode_of(self, word: u128) -> u16 {
        match self {
            Self::Kepler => (bits(word, 55, 9) << 2 | bits(word, 0, 2)) as u16,
            Self::Maxwell => bits(word, 51, 13) as u16,
            Self::Volta => bits(word, 0, 12) as u16,
        }
    }

    /// What makes an instruction one that `attribute` is about: equal numbers mean that one is as good as the other.
    pub(crate) const fn kind(self, attribute: u8, word: u128) -> u32 {
        let opcode = self.opcode_of(word) as u32;
        let (name, more) = match (self, attribute) {
            // what is done with a barrier is partly in the form of the operands, partly behind them
            (Self::Volta, eiattr::MBARRIER_INSTR_OFFSETS) => (opcode, bits(word, 72, 8) as u32),
            (Self::Volta, _) => (opcode & 0x1ff, 0),
            _ => (opcode, 0),
        };
        let more = match attribute {
            eiattr::S2RCTAID_INSTR_OFFSETS => self.reads_block_index(word) as u32,
            _ => more,
        };
        name | more << 16
    }

    /// What else a record of `attribute` says of an instruction: registers, offsets, sizes.
    pub(crate) const fn operands(self, attribute: u8, word: u128) -> u128 {
        match (self, attribute) {
            (Self::Volta, eiattr::MBARRIER_INSTR_OFFSETS) => {
                bits(word, 24, 8) | bits(word, 40, 30) << 8
            }
            (Self::Volta, eiattr::UNUSED_LOAD_BYTE_OFFSET) => bits(word, 73, 3),
            (Self::Maxwell, eiattr::UNUSED_LOAD_BYTE_OFFSET) => bits(word, 48, 3),
            _ => 0,
        }
    }

    /// Whether the special register that the instruction would read is one of `SR_CTAID.X` to `SR_CTAID.Z`.
    const fn reads_block_index(self, word: u128) -> bool {
        let at = match self {
            Self::Kepler => 23,
            Self::Maxwell => 20,
            Self::Volta => 72,
        };
        matches!(bits(word, at, 8), 0x25..=0x27)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_by_architecture() {
        assert!(!Instructions::of(35).holds(64) && Instructions::of(35).holds(8));
        assert!(!Instructions::of(61).holds(32) && Instructions::of(61).holds(64 + 24));
        assert!(!Instructions::of(80).holds(8) && Instructions::of(80).holds(16));
        let mut exit = [0; 16];
        exit[..2].copy_from_slice(&[0x4d, 0x79]);
        assert_eq!(Instructions::Volta.opcode(&exit, 0), Some(0x94d));
        assert_eq!(Instructions::Volta.opcode(&exit, 8), None);
        assert_eq!(Instructions::Maxwell.opcode(&exit, 8), Some(0));
    }

    #[test]
    fn the_form_of_operands_is_no_other_instruction_but_for_barriers() {
        let kind = |attribute, word| Instructions::Volta.kind(attribute, word);
        let (shuffle, by_register) = (0x7f89, 0x7589);
        let attribute = eiattr::EXIT_INSTR_OFFSETS;
        assert_eq!(kind(attribute, shuffle), kind(attribute, by_register));
        let attribute = eiattr::MBARRIER_INSTR_OFFSETS;
        assert_ne!(kind(attribute, 0x79a7), kind(attribute, 0x75a7));
    }

    #[test]
    fn sync_is_not_depbar_and_the_block_index_is_not_the_thread_index() {
        let opcode = |word: u128| Instructions::Maxwell.opcode_of(word);
        assert_ne!(opcode(0xf0f8_0000_0000_000f), opcode(0xf0f0_0000_0007_0000));
        let kind = |word| Instructions::Maxwell.kind(eiattr::S2RCTAID_INSTR_OFFSETS, word);
        let (block_x, block_y, thread) =
            (0xf0c8_0000_0257_0000, 0xf0c8_0000_0267_0000, 0xf0c8_0000_0217_0000);
        assert_eq!(kind(block_x), kind(block_y));
        assert_ne!(kind(block_x), kind(thread));
    }
}
