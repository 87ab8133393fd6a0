//! Instructions of the uniform path: what is one value for a warp.

use super::execute::{compare, lookup, permute, shift, wide};
use super::word::Word;
use super::{Reach, Thread};

impl Reach<'_> {
    pub(super) fn uniform(&self, word: Word, thread: &mut Thread) -> Result<(), String> {
        let to = word.index(16, 6);
        let a = thread.uniform(word.index(24, 6));
        let is_immediate = word.opcode() >> 9 == 4;
        let b =
            if is_immediate { word.bits(32, 32) as u32 } else { thread.uniform(word.index(32, 6)) };
        let c = thread.uniform(word.index(64, 6));
        let value = match word.opcode() {
            0x882 | 0xc82 => b, // UMOV
            0x482 => {
                thread.set_uniform_pair(to, word.bits(24, 64));
                return Ok(());
            }
            0x290 | 0x890 => {
                let signed = |value: u32, is_negative: bool| match is_negative {
                    true if word.has_carry() => u64::from(!value),
                    true => (1 << 32) - u64::from(value),
                    false => value.into(),
                };
                let carry = |at| u64::from(word.has_carry() && word.uniform_source(at, thread));
                let sum = signed(a, word.bit(72))
                    + signed(b, !is_immediate && word.bit(63))
                    + signed(c, word.bit(75))
                    + carry(87)
                    + carry(77);
                thread.set_uniform_predicate(word.index(81, 3), sum >> 32 > 0);
                thread.set_uniform_predicate(word.index(84, 3), sum >> 32 > 1);
                sum as u32
            }
            // UIADD3.64 with nothing to negate or carry
            0x297 | 0x897 if !word.bit(72) && word.bits(74, 2) == 0 => {
                let b = if is_immediate {
                    i64::from(b as i32) as u64
                } else {
                    thread.uniform_pair(word.index(32, 6))
                };
                let [a, c] = [24, 64].map(|at| thread.uniform_pair(word.index(at, 6)));
                thread.set_uniform_pair(to, a.wrapping_add(b).wrapping_add(c));
                return Ok(());
            }
            0x28c | 0x88c if !word.bit(72) => {
                let (holds, with) = (compare(word, a, b), word.uniform_source(87, thread));
                thread.set_uniform_predicate(word.index(81, 3), word.combined(holds, with)?);
                thread.set_uniform_predicate(word.index(84, 3), word.combined(!holds, with)?);
                return Ok(());
            }
            0x287 | 0x887 => {
                if word.uniform_source(87, thread) {
                    a
                } else {
                    b
                }
            }
            0x2a4 | 0x8a4 => a.wrapping_mul(b).wrapping_add(c),
            // UIMAD.WIDE
            0x2a5 | 0x8a5 => {
                let sum = wide(a, b, word.bit(73));
                thread
                    .set_uniform_pair(to, sum.wrapping_add(thread.uniform_pair(word.index(64, 6))));
                return Ok(());
            }
            0x4a4 => a.wrapping_mul(c).wrapping_add(word.bits(32, 32) as u32),
            0x291 | 0x891 if !word.bit(80) => (a << word.bits(75, 5)).wrapping_add(b),
            0x296 | 0x896 if word.bits(72, 3) == 0 => permute(a, b, c),
            0x299 | 0x899 => shift(word, a, b, c),
            0x292 | 0x892 => lookup(a, b, c, word.bits(72, 8)),
            // VOTEU.ANY: the threads that are there
            0x886 if word.bits(72, 2) == 1 && word.bits(87, 4) == 7 => self.active,
            0x2bd => b.checked_ilog2().unwrap_or(u32::MAX), // UFLO
            0x2ca => thread.register(word.index(24, 8)),    // R2UR
            code => return Err(format!("opcode {code:#x} is not known")),
        };
        thread.set_uniform(to, value);
        Ok(())
    }
}
