//! Instructions of pairs of registers, which `sm_120` has.

use core::cmp::Ordering;

use super::execute::meets;
use super::word::Word;
use super::{Reach, Thread};

type Outcome = Result<(), String>;

impl Reach<'_> {
    /// What compares or chooses pairs of registers: of sm_120. Whether it is such an instruction.
    pub(super) fn pairs(&self, word: Word, thread: &mut Thread) -> Result<bool, String> {
        let code = word.opcode() & 0x1ff;
        let is_one = match code {
            0x00c => word.bit(80),
            0x017 => word.bit(74),
            // in the place of forms that it does not have
            0x007 => matches!(word.opcode(), 0x407 | 0x607),
            _ => false,
        };
        if !is_one {
            return Ok(false);
        }
        let a = thread.pair(word.index(24, 8));
        let b = match word.opcode() >> 9 {
            1 => thread.pair(word.index(32, 8)),
            3 if code == 0x007 => thread.pair(word.index(32, 8)),
            2 if code == 0x007 => i64::from(word.bits(32, 32) as i32) as u64,
            6 => thread.uniform_pair(word.index(32, 6)),
            form => return Err(format!("form {form} of pairs")),
        };
        let which = word.source(87, thread);
        match code {
            0x00c => {
                let holds = meets(word, order(word, a, b));
                thread.set_predicate(word.index(81, 3), word.combined(holds, which)?);
                thread.set_predicate(word.index(84, 3), word.combined(!holds, which)?);
            }
            0x017 => {
                let is_less = order(word, a, b).is_lt();
                thread.set_pair(word.to(), if is_less == which { a } else { b });
            }
            _ => thread.set_pair(word.to(), if which { a } else { b }),
        }
        Ok(true)
    }

    /// `IADD` of sm_120.
    pub(super) fn add(&self, word: Word, thread: &mut Thread) -> Outcome {
        let is_wide = word.bit(73);
        let [b, _] = word.sources(thread, self, is_wide)?;
        let a = word.first(thread, is_wide);
        // a number in the instruction has 32 bits with a sign
        let is_immediate = matches!(word.opcode() >> 9, 2 | 4);
        let b_bits = match is_immediate && is_wide {
            true => i64::from((b.bits >> 32) as i32) as u64,
            false => b.bits,
        };
        let all = if is_wide { u64::MAX } else { u32::MAX.into() };
        let complement =
            |bits: u64, is_negative: bool| if is_negative { !bits & all } else { bits };
        let ones = u128::from(a.is_negative) + u128::from(b.is_negative);
        let carry = match word.bit(74) {
            true => u128::from(word.source(87, thread)),
            false => ones,
        };
        let sum = u128::from(complement(a.bits, a.is_negative))
            + u128::from(complement(b_bits, b.is_negative))
            + carry;
        thread.set_predicate(word.index(81, 3), sum > u128::from(all));
        if is_wide {
            thread.set_pair(word.to(), sum as u64);
        } else {
            thread.set(word.to(), sum as u32);
        }
        Ok(())
    }
}

/// How numbers of 64 bits compare, with a sign or without.
fn order(word: Word, a: u64, b: u64) -> Ordering {
    if word.bit(73) { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) }
}
