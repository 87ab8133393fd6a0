//! Instructions of floating point.

use super::number::{BF16, F16, F32, F64, Format, Mode, Number};
use super::word::Word;
use super::{Reach, Thread};

type Outcome = Result<(), String>;

/// An operand of an instruction: its bits, and what is done to its sign.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) bits: u64,
    pub(super) is_negative: bool,
    pub(super) is_absolute: bool,
    /// Which half of a pair goes to both: 2 and 3; else each to its own.
    pub(super) half: u64,
}

impl Source {
    fn signed(self, format: Format, bits: u64) -> u64 {
        let bits = if self.is_absolute { bits & !format.sign_bit() } else { bits };
        if self.is_negative { bits ^ format.sign_bit() } else { bits }
    }

    fn number(self, format: Format, flushed: bool) -> Number {
        format.read(self.signed(format, self.bits), flushed)
    }

    /// One half of a pair.
    fn lane(self, format: Format, lane: u64, flushed: bool) -> Number {
        let lane = if self.half >= 2 { self.half - 2 } else { lane };
        format.read(self.signed(format, self.bits >> (16 * lane) & 0xffff), flushed)
    }
}

/// Saturates: no number is zero.
fn saturated(format: Format, bits: u64) -> u64 {
    let is_negative = bits & format.sign_bit() != 0;
    if is_negative || format.read(bits, false).is_nan() { 0 } else { bits.min(format.one()) }
}

fn positive(format: Format, bits: u64) -> u64 {
    let is_nan = format.read(bits, false).is_nan();
    if !is_nan && bits & format.sign_bit() != 0 { 0 } else { bits }
}

/// The smaller or the larger; a number before none, unless that is wanted; -0 before +0.
fn select(
    format: Format,
    a: (u64, Number),
    b: (u64, Number),
    is_min: bool,
    keeps_nan: bool,
) -> u64 {
    match (a.1.is_nan(), b.1.is_nan()) {
        (true, true) => return format.nan(),
        (true, false) | (false, true) if keeps_nan => return format.nan(),
        (true, false) => return format.write(b.1, Mode::Nearest, false),
        (false, true) => return format.write(a.1, Mode::Nearest, false),
        _ => {}
    }
    let is_a = match a.1.against(b.1) {
        1 => is_min,
        2 => (a.0 & format.sign_bit() != 0) == is_min,
        _ => !is_min,
    };
    format.write(if is_a { a.1 } else { b.1 }, Mode::Nearest, false)
}

impl Reach<'_> {
    /// What is of floating point; nothing if the instruction is not.
    pub(super) fn float(&mut self, word: Word, thread: &mut Thread) -> Option<Outcome> {
        let code = word.opcode() & 0x1ff;
        let is_half = matches!(code, 0x30..=0x34 | 0x40) || code == 0x35 && self.grid.sm < 100;
        let outcome = match code {
            0x20 | 0x21 | 0x23 | 0x08 | 0x09 => self.single(word, thread),
            0x28 | 0x29 | 0x2b => self.double(word, thread),
            0x0b => self.set_predicates(word, thread, F32),
            0x2a => self.set_predicates(word, thread, F64),
            0x102 => self.check_division(word, thread),
            0x108 => self.approximate(word, thread),
            0x104..=0x107 | 0x110..=0x113 | 0x45 | 0x3e => self.convert(word, thread),
            _ if is_half => self.halves(word, thread),
            _ => return None,
        };
        Some(outcome)
    }

    fn single(&self, word: Word, thread: &mut Thread) -> Outcome {
        let flushed = word.bit(80);
        let [b, c] = word.sources(thread, self, false)?;
        let low = if matches!(word.opcode() >> 9, 2 | 3 | 7) { c } else { b };
        let a = word.first(thread, false);
        let (x, y) = (a.number(F32, flushed), low.number(F32, flushed));
        let mode = Mode::of(word.bits(78, 2));
        let value = match word.opcode() & 0x1ff {
            0x21 => F32.write(x.plus(y, mode), mode, flushed),
            0x20 if word.bits(84, 3) == 4 && !word.bit(76) => F32.write(x.times(y), mode, flushed),
            0x23 if !word.bit(76) => {
                let [b, c] = [b, c].map(|source| source.number(F32, flushed));
                F32.write(x.times(b).plus(c, mode), mode, flushed)
            }
            0x09 if !word.bit(82) => {
                let bits = |source: Source| source.signed(F32, source.bits);
                let is_min = word.source(87, thread);
                select(F32, (bits(a), x), (bits(low), y), is_min, word.bit(81))
            }
            0x08 if word.source(87, thread) => a.signed(F32, a.bits),
            0x08 => low.signed(F32, low.bits),
            code => return Err(format!("opcode {code:#x} with what is not known")),
        };
        let saturates = matches!(word.opcode() & 0x1ff, 0x20 | 0x21 | 0x23) && word.bit(77);
        let value = if saturates { saturated(F32, value) } else { value };
        thread.set(word.to(), value as u32);
        Ok(())
    }

    fn double(&self, word: Word, thread: &mut Thread) -> Outcome {
        let [b, c] = word.sources(thread, self, true)?.map(|source| source.number(F64, false));
        let a = word.first(thread, true).number(F64, false);
        let mode = Mode::of(word.bits(78, 2));
        let value = match word.opcode() & 0x1ff {
            0x28 => a.times(b),
            // the second operand is where others have the third
            0x29 => a.plus(c, mode),
            _ => a.times(b).plus(c, mode),
        };
        thread.set_pair(word.to(), F64.write(value, mode, false));
        Ok(())
    }

    fn set_predicates(&self, word: Word, thread: &mut Thread, format: Format) -> Outcome {
        let is_wide = format == F64;
        let flushed = !is_wide && word.bit(80);
        let [b, c] = word.sources(thread, self, is_wide)?;
        let low = if matches!(word.opcode() >> 9, 2 | 3 | 7) { c } else { b };
        let a = word.first(thread, is_wide);
        let (x, y) = (a.number(format, flushed), low.number(format, flushed));
        let with = word.source(87, thread);
        let operation = word.bits(76, 4);
        if is_wide && matches!(operation, 0 | 15) {
            // minimum and maximum: whether it is the first, and whether it is no number
            let is_first = match x.against(y) {
                8 => y.is_nan(),
                1 => operation == 0,
                2 => (a.signed(F64, a.bits) >> 63 == 1) == (operation == 0),
                _ => operation == 15,
            };
            thread.set_predicate(word.index(81, 3), is_first);
            thread.set_predicate(word.index(84, 3), x.is_nan() && y.is_nan());
            return Ok(());
        }
        let holds = x.against(y) & operation != 0;
        thread.set_predicate(word.index(81, 3), word.combined(holds, with)?);
        thread.set_predicate(word.index(84, 3), word.combined(!holds, with)?);
        Ok(())
    }

    /// `FCHK`: whether a division needs the long way; that is always right, and the short one only far from the ends.
    fn check_division(&self, word: Word, thread: &mut Thread) -> Outcome {
        let [b, _] = word.sources(thread, self, false)?;
        let exponent = |source: Source| (source.bits >> 23 & 0xff) as i32 - 127;
        let (a, b) = (exponent(word.first(thread, false)), exponent(b));
        let is_short =
            (-100..=126).contains(&a) && (-124..=124).contains(&b) && (a - b).abs() < 124;
        thread.set_predicate(word.index(81, 3), !is_short);
        Ok(())
    }

    /// `MUFU`: within a unit or two of the last place, as the processor's library has it.
    fn approximate(&self, word: Word, thread: &mut Thread) -> Outcome {
        let [b, _] = word.sources(thread, self, false)?;
        if word.bits(72, 2) != 0 {
            return Err("MUFU of 16 bits".into());
        }
        let function = word.bits(74, 4);
        if matches!(function, 6 | 7) {
            let x = f64::from_bits(b.signed(F32, b.bits) << 32);
            let x = if x.is_subnormal() { x * 0.0 } else { x };
            let value = if function == 6 { 1.0 / x } else { 1.0 / x.sqrt() };
            let value = if value.is_nan() { 0x7fff_ffff } else { value.to_bits() >> 32 };
            thread.set(word.to(), value as u32);
            return Ok(());
        }
        let x = f64::from_bits(F64.write(b.number(F32, true), Mode::Nearest, false));
        let turn = x * core::f64::consts::TAU;
        let value = match function {
            0 => turn.cos(),
            1 => turn.sin(),
            2 => x.exp2(),
            3 => x.log2(),
            4 => 1.0 / x,
            5 => 1.0 / x.sqrt(),
            8 => x.sqrt(),
            9 => x.tanh(),
            function => return Err(format!("MUFU function {function}")),
        };
        let value = F32.write(F64.read(value.to_bits(), false), Mode::Nearest, true);
        thread.set(word.to(), value as u32);
        Ok(())
    }

    fn convert(&self, word: Word, thread: &mut Thread) -> Outcome {
        let code = word.opcode() & 0x1ff;
        let mode = Mode::of(word.bits(78, 2));
        if code == 0x3e {
            return self.pack(word, thread);
        }
        let format = |size: u64| match size {
            1 => Ok(F16),
            2 => Ok(F32),
            3 => Ok(F64),
            _ => Err(format!("a number of size {size}")),
        };
        let (to, from, flushed) = (word.bits(75, 2), word.bits(84, 2), word.bit(80));
        let is_of_integers = matches!(code, 0x106 | 0x112 | 0x45);
        let [b, _] = word.sources(thread, self, from == 3)?;
        let (bits, size) = if is_of_integers {
            let width = 8 << from;
            let bits = b.bits & u64::MAX >> (64 - width);
            let sign = i128::from((bits << (64 - width)) as i64 >> (64 - width));
            let value = Number::of(if word.bit(74) { sign } else { bits.into() });
            (format(to)?.write(value, mode, false), to)
        } else {
            let number = b.number(format(from)?, flushed);
            match code {
                0x105 | 0x111 => {
                    let (bits, nan_is_zero) = (8 << to, word.bit(77));
                    (number.to_integer(mode, bits, word.bit(72), nan_is_zero), to)
                }
                0x107 | 0x113 => (format(from)?.write(number.whole(mode), mode, flushed), from),
                _ => (format(to)?.write(number, mode, flushed), to),
            }
        };
        match size {
            3 => thread.set_pair(word.to(), bits),
            // what is less than a register is of its kind of integer there
            0 | 1 if !is_of_integers && word.bit(72) && matches!(code, 0x105 | 0x111) => {
                let unused = 32 - (8 << size);
                thread.set(word.to(), ((bits << unused) as i32 >> unused) as u32);
            }
            _ => thread.set(word.to(), bits as u32),
        }
        Ok(())
    }

    /// `F2FP`: two numbers to halves, the first to the upper one.
    fn pack(&self, word: Word, thread: &mut Thread) -> Outcome {
        let [b, _] = word.sources(thread, self, false)?;
        let a = word.first(thread, false);
        let format = if word.bit(76) { BF16 } else { F16 };
        if word.bits(77, 2) != 0 || word.bits(86, 5) != 0 {
            return Err("F2FP with what is not known".into());
        }
        let mode = Mode::of(word.bits(79, 2));
        let [high, low] = [a, b].map(|source| {
            let bits = format.write(source.number(F32, false), mode, false);
            if word.bit(75) { positive(format, bits) } else { bits }
        });
        thread.set(word.to(), (high << 16 | low) as u32);
        Ok(())
    }

    /// Pairs of 16 bits.
    fn halves(&self, word: Word, thread: &mut Thread) -> Outcome {
        let code = word.opcode() & 0x1ff;
        let format = if word.bit(85) && code != 0x33 && code != 0x34 { BF16 } else { F16 };
        let flushed = word.bit(80);
        let (a, [b, c]) = word.halves(thread, self)?;
        let low = if matches!(word.opcode() >> 9, 2 | 3 | 7) { c } else { b };
        let mode = Mode::Nearest;
        if matches!(code, 0x33 | 0x34) {
            return self.compare_halves(word, thread, [a, low]);
        }
        if code == 0x30 && word.bit(78) {
            let sum = a.lane(format, 0, flushed).plus(low.lane(format, 0, flushed), mode);
            thread.set(word.to(), F32.write(sum, mode, flushed) as u32);
            return Ok(());
        }
        if word.bit(76) || code != 0x40 && word.bit(78) {
            return Err("pairs with what is not known".into());
        }
        let mut value = 0;
        for lane in 0..2 {
            let [x, y] = [a, low].map(|source| source.lane(format, lane, flushed));
            let bits = match code {
                0x30 => format.write(x.plus(y, mode), mode, flushed),
                0x32 => format.write(x.times(y), mode, flushed),
                0x40 => {
                    let bits = |number| format.write(number, mode, false);
                    let is_min = word.source(87, thread);
                    select(format, (bits(x), x), (bits(y), y), is_min, word.bit(81))
                }
                _ => {
                    let [b, c] = [b, c].map(|source| source.lane(format, lane, flushed));
                    let bits = format.write(x.times(b).plus(c, mode), mode, flushed);
                    if word.bit(79) { positive(format, bits) } else { bits }
                }
            };
            let bits = if code != 0x40 && word.bit(77) { saturated(format, bits) } else { bits };
            value |= bits << (16 * lane);
        }
        thread.set(word.to(), value as u32);
        Ok(())
    }

    fn compare_halves(&self, word: Word, thread: &mut Thread, [a, b]: [Source; 2]) -> Outcome {
        let flushed = word.bit(80);
        let with = word.source(87, thread);
        let holds = [0, 1].map(|lane| {
            let [x, y] = [a, b].map(|source| source.lane(F16, lane, flushed));
            x.against(y) & word.bits(76, 4) != 0
        });
        if word.bits(69, 2) != 0 {
            return Err("a comparison of pairs with what is not known".into());
        }
        if word.opcode() & 0x1ff == 0x34 {
            let [low, high] = holds.map(|holds| holds && with);
            thread.set_predicate(word.index(81, 3), low);
            thread.set_predicate(word.index(84, 3), high);
            return Ok(());
        }
        let one = if word.bit(71) { F16.one() } else { 0xffff };
        let [low, high] = holds.map(|holds| if holds && with { one } else { 0 });
        thread.set(word.to(), (high << 16 | low) as u32);
        Ok(())
    }
}
