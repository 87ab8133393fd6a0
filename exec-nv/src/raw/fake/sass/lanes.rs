//! Instructions by which threads of a warp see what others have.

use super::word::Word;
use super::{Reach, Thread};

/// What the threads that execute an instruction have in the register that it reads.
pub(super) type Lanes = [Option<u32>; 32];

/// Whether an instruction reads what other threads have: `SHFL`, `REDUX`.
pub(super) fn reads_others(word: Word) -> bool {
    matches!(word.opcode() & 0x1ff, 0x189 | 0x1c4)
}

impl Reach<'_> {
    /// `SHFL`: the value of another thread of the warp.
    pub(super) fn shuffle(&self, word: Word, thread: &mut Thread) -> Result<(), String> {
        let register = |at| thread.register(word.index(at, 8));
        let (lane, limits) = match word.opcode() {
            0x389 => (register(32), register(64)),
            0x589 => (register(32), word.bits(40, 13) as u32),
            0x989 => (word.bits(53, 5) as u32, register(64)),
            0xf89 => (word.bits(53, 5) as u32, word.bits(40, 13) as u32),
            opcode => return Err(format!("opcode {opcode:#x} is not known")),
        };
        // a segment of lanes, and the last of it that can be read
        let (segment, last) = (limits >> 8 & 31, limits & 31);
        let (first, last) = (thread.lane & segment, thread.lane & segment | last & !segment);
        let from = match word.bits(58, 2) {
            0 => first | lane & 31 & !segment,
            1 => thread.lane.wrapping_sub(lane),
            2 => thread.lane.wrapping_add(lane),
            _ => thread.lane ^ lane,
        };
        let is_there = match word.bits(58, 2) {
            1 => from.cast_signed() >= last.cast_signed(),
            _ => from <= last,
        };
        let from = if is_there { from } else { thread.lane };
        let value = self.lanes.get(from as usize).copied().flatten();
        let value = value.ok_or_else(|| format!("lane {from} does not take part"))?;
        thread.set_predicate(word.index(81, 3), is_there);
        thread.set(word.to(), value);
        Ok(())
    }

    /// `REDUX`: one value of those of all threads.
    pub(super) fn reduce(&self, word: Word, thread: &mut Thread) -> Result<(), String> {
        let values = self.lanes.iter().flatten();
        let value = match word.bits(78, 3) {
            3 => values.fold(0, |sum: u32, value| sum.wrapping_add(*value)),
            operation => return Err(format!("reduction {operation}")),
        };
        thread.set_uniform(word.index(16, 6), value);
        Ok(())
    }
}
