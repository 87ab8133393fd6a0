//! What instructions do.

use core::cmp::Ordering;

use super::word::Word;
use super::{Reach, Running, Thread};

type Outcome = Result<(), String>;

impl Reach<'_> {
    pub(super) fn execute(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        match word.opcode() {
            // NOP, BSSY, BSYNC, WARPSYNC, BREAK, YIELD, BMOV, RPCMOV: threads come together by themselves
            0x918 | 0x945 | 0x941 | 0x948 | 0x942 | 0x946 | 0x356 | 0x352 => Ok(()),
            0x355 | 0x353 => {
                thread.set(word.to(), 0);
                Ok(())
            }
            0x94d => {
                thread.state = Running::Ended;
                Ok(())
            }
            0xb1d => {
                thread.state = Running::Waits;
                Ok(())
            }
            0x943 | 0x343 | 0x344 | 0x944 | 0x947 | 0x547 | 0x950 | 0x949 | 0x958 => {
                branch(word, thread, self.grid.sm)
            }
            0xb82 | 0xab9 | 0x7ac => self.load_constant(word, thread),
            0x981 | 0x983 | 0x984 | 0x986 | 0x387 | 0x388 | 0x988 | 0x98a | 0x9a8 | 0x98e => {
                self.access(word, thread)
            }
            0x389 | 0x589 | 0x989 | 0xf89 => self.shuffle(word, thread),
            // R2UR of sm_80
            0x3c2 => {
                thread.set_uniform(word.index(16, 6), thread.register(word.index(24, 8)));
                Ok(())
            }
            0x3c4 => self.reduce(word, thread),
            0x919 | 0x9c3 | 0x805 => self.special(word, thread),
            _ if word.is_uniform() => self.uniform(word, thread),
            _ => match self.float(word, thread) {
                Some(outcome) => outcome,
                None => self.arithmetic(word, thread),
            },
        }
    }

    fn arithmetic(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let register = thread.register(word.index(24, 8));
        let a = match word.bit(72) {
            true if word.has_carry() => !register,
            true => register.wrapping_neg(),
            false => register,
        };
        let (to, code) = (word.to(), word.opcode() & 0x1ff);
        if word.opcode() == 0x402 {
            thread.set_pair(to, word.bits(24, 64));
            return Ok(());
        }
        // MOV.64 of sm_120
        if word.opcode() == 0x202 && word.bit(80) {
            thread.set_pair(to, thread.pair(word.index(32, 8)));
            return Ok(());
        }
        if self.pairs(word, thread)? {
            return Ok(());
        }
        let [b, c] = word.operands(thread, self)?;
        let value = match code {
            0x002 => b, // MOV
            // IADD of 32 or 64 bits
            0x035 => return self.add(word, thread),
            0x010 => {
                let carries = [word.source(87, thread), word.source(77, thread)];
                let carry = if word.bit(74) { carries.iter().filter(|&&c| c).count() } else { 0 };
                let borrows = word.negated_zeros(register, [b, c]);
                let sum = u64::from(a) + u64::from(b) + u64::from(c) + carry as u64 + borrows;
                thread.set_predicate(word.index(81, 3), sum >> 32 > 0);
                thread.set_predicate(word.index(84, 3), sum >> 32 > 1);
                sum as u32
            }
            0x036 => a.wrapping_add(b), // VIADD
            0x024 => {
                let carry = u32::from(word.bit(74) && word.source(87, thread));
                register.wrapping_mul(b).wrapping_add(c).wrapping_add(carry) // IMAD
            }
            0x025 | 0x027 => {
                let third = match word.opcode() >> 9 {
                    2 => u64::from(c),
                    3 => self.constant(word.bits(54, 5) as u32, word.bits(38, 16), 8)?,
                    7 => thread.uniform_pair(word.index(32, 6)),
                    _ => thread.pair(word.index(64, 8)),
                };
                let third = match word.bit(75) {
                    true if word.bit(74) => !third,
                    true => third.wrapping_neg(),
                    false => third,
                };
                let lower = u64::from(word.bit(74) && word.source(87, thread));
                let (sum, carry) = wide(register, b, word.bit(73)).overflowing_add(third);
                let (sum, again) = sum.overflowing_add(lower);
                if code == 0x027 {
                    thread.set(to, (sum >> 32) as u32);
                } else {
                    thread.set_pair(to, sum);
                }
                thread.set_predicate(word.index(81, 3), carry || again);
                return Ok(());
            }
            0x011 => {
                let (shift, is_high) = (word.bits(75, 5) as u32, word.bit(80));
                let both = u64::from(c) << 32 | u64::from(a);
                let part = if is_high { ((both << shift) >> 32) as u32 } else { register << shift };
                let carry = u64::from(word.bit(74) && word.source(87, thread));
                let sum = u64::from(part) + u64::from(b) + carry;
                thread.set_predicate(word.index(81, 3), sum >> 32 > 0);
                sum as u32
            }
            0x012 => {
                let value = lookup(register, b, c, word.bits(72, 8));
                let is_set = value != 0 || word.source(87, thread);
                thread.set_predicate(word.index(81, 3), is_set);
                value
            }
            0x019 => shift(word, register, b, c),
            0x017 | 0x048 | 0x046 => {
                let is_min = word.source(87, thread);
                // VIADDMNMX adds first
                let (x, y) =
                    if code == 0x046 { (register.wrapping_add(b), c) } else { (register, b) };
                let is_signed = word.bit(if code == 0x017 { 73 } else { 72 });
                let is_less = if is_signed { (x as i32) < y as i32 } else { x < y };
                if is_less == is_min { x } else { y }
            }
            // PRMT
            0x016 if word.bits(72, 3) == 0 => permute(register, b, c),
            // PLOP3
            0x01c => {
                let [a, b, c] = [87, 77, 68].map(|at| u64::from(word.source(at, thread)));
                let row = a << 2 | b << 1 | c;
                let table = word.bits(72, 5) << 3 | word.bits(64, 3);
                thread.set_predicate(word.index(81, 3), table >> row & 1 == 1);
                thread.set_predicate(word.index(84, 3), word.bits(16, 8) >> row & 1 == 1);
                return Ok(());
            }
            // R2P
            0x004 => {
                let from = register >> (8 * word.bits(76, 2));
                for index in (0..7).filter(|index| b >> index & 1 == 1) {
                    thread.set_predicate(index, from >> index & 1 == 1);
                }
                return Ok(());
            }
            // FLO
            0x100 if !word.bit(73) => match b.checked_ilog2() {
                Some(at) if word.bit(74) => 31 - at,
                Some(at) => at,
                None => u32::MAX,
            },
            0x00c => {
                let holds = match word.bit(72) && register == b {
                    // what the lower parts say
                    true => word.source(68, thread),
                    false => compare(word, register, b),
                };
                let with = word.source(87, thread);
                thread.set_predicate(word.index(81, 3), word.combined(holds, with)?);
                thread.set_predicate(word.index(84, 3), word.combined(!holds, with)?);
                return Ok(());
            }
            0x007 => {
                if word.source(87, thread) {
                    register
                } else {
                    b
                }
            } // SEL
            0x109 => b.count_ones(),                             // POPC
            0x101 => b.reverse_bits(),                           // BREV
            0x013 => (b as i32).unsigned_abs(),                  // IABS
            0x01a if !word.bit(75) => extend(word, register, b), // SGXT
            code => return Err(format!("opcode {code:#x} is not known")),
        };
        thread.set(to, value);
        Ok(())
    }

    fn load_constant(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let size = word.size()?;
        let is_uniform = word.opcode() != 0xb82;
        let index = match word.opcode() {
            0xab9 => 0,
            0x7ac => thread.uniform(word.index(24, 6)),
            _ => thread.register(word.index(24, 8)),
        };
        // LDCU has a bit more of it
        let place = if word.opcode() == 0x7ac { word.bits(37, 17) } else { word.bits(38, 16) };
        let offset = u64::from((place as u32).wrapping_add(index) & 0xffff);
        let bank = word.bits(54, 5) as u32;
        for index in 0..size.div_ceil(4) {
            let value = self.constant(bank, offset + 4 * index as u64, size.min(4))? as u32;
            match (is_uniform, word.to()) {
                (true, _) => thread.set_uniform(word.index(16, 6) + index, value),
                (false, super::ZERO) => {}
                (false, to) => thread.set(to + index, value),
            }
        }
        Ok(())
    }

    fn special(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let value = match word.bits(72, 8) {
            0x00 => thread.lane,
            number @ 0x21..=0x23 => thread.index[number as usize - 0x21],
            number @ 0x25..=0x27 => self.block[number as usize - 0x25],
            0x39 => (1 << thread.lane) - 1, // SR_LTMASK
            0xff => 0,                      // SRZ
            0x88 => 0,                      // SR_CgaCtaId of a grid without clusters
            number => return Err(format!("special register {number:#x}")),
        };
        if word.opcode() == 0x9c3 {
            thread.set_uniform(word.index(16, 6), value);
        } else if word.opcode() == 0x805 && word.bit(80) {
            thread.set_pair(word.to(), value.into());
        } else {
            thread.set(word.to(), value);
        }
        Ok(())
    }

    /// Global, local and shared memory.
    fn access(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let is_atomic = matches!(word.opcode(), 0x98a | 0x9a8 | 0x98e);
        let size = if is_atomic { 4 } else { word.size()? };
        let base = word.index(24, 8);
        // bit 63 of ATOM is no part of it since Blackwell
        let displacement = match word.opcode() == 0x98a && self.grid.sm >= 100 {
            true => (word.bits(40, 23) << 41) as i64 >> 41,
            false => word.displacement(),
        };
        // of shared memory, an index may be in units of 4, 8 or 16 bytes
        let scale = match word.opcode() {
            0x984 | 0x388 if word.bits(78, 2) > 0 => word.bits(78, 2) + 1,
            _ => 0,
        };
        let narrow = |extra: u32| {
            let index = thread.register(base) << scale;
            index.wrapping_add(displacement as u32).wrapping_add(extra)
        };
        let address = match word.opcode() {
            0x981 | 0x986 | 0x98a | 0x9a8 | 0x98e if word.bit(72) => {
                thread.pair(base).wrapping_add_signed(displacement)
            }
            0x981 | 0x986 | 0x98a | 0x9a8 | 0x98e => return Err("an address of 32 bits".into()),
            // the last bytes of 2^24 are those that there are
            0x983 | 0x387 => {
                let address = u64::from(narrow(0));
                let start = (1u64 << 24) - thread.local.len() as u64;
                address.checked_sub(start).ok_or(format!("no local memory at {address:#x}"))?
            }
            0x988 => narrow(thread.uniform(word.index(64, 6))).into(),
            0x984 if word.bit(91) => narrow(thread.uniform(word.index(32, 6))).into(),
            _ => narrow(0).into(),
        };
        let mut bytes = [0; 16];
        let is_load = matches!(word.opcode(), 0x981 | 0x983 | 0x984 | 0x98a | 0x9a8);
        if !is_load {
            for (index, place) in bytes.chunks_mut(4).enumerate().take(size.div_ceil(4)) {
                let register = word.index(32, 8);
                let value =
                    if register == super::ZERO { 0 } else { thread.register(register + index) };
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        let space = match word.opcode() {
            0x983 | 0x387 => Some(&mut thread.local),
            0x984 | 0x388 | 0x988 => Some(&mut self.shared),
            _ => None,
        };
        let (start, is_global) = (address as usize, space.is_none());
        let is_there = match (space, is_load) {
            (None, _) if is_atomic => self.memory.read(address, &mut bytes[..size]),
            (None, true) => self.memory.read(address, &mut bytes[..size]),
            (None, false) => self.memory.write(address, &bytes[..size]),
            (Some(space), is_load) => match space.get_mut(start..start.saturating_add(size)) {
                None => false,
                Some(place) if is_load => {
                    bytes[..size].copy_from_slice(place);
                    true
                }
                Some(place) => {
                    place.copy_from_slice(&bytes[..size]);
                    true
                }
            },
        };
        if !is_there && is_global {
            let access = if is_atomic { 2 } else { u32::from(!is_load) };
            self.memory.mmu_fault = Some((address, 2, access));
        }
        if !is_there || !address.is_multiple_of(size as u64) {
            return Err(format!("{size} bytes at {address:#x} are not there"));
        }
        if is_atomic {
            let before = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let after = match word.bits(87, if is_load { 4 } else { 3 }) {
                0 => before.wrapping_add(thread.register(word.index(32, 8))),
                operation => return Err(format!("atomic operation {operation}")),
            };
            self.memory.write(address, &after.to_le_bytes());
        }
        if is_load {
            for (index, value) in bytes.chunks(4).enumerate().take(size.div_ceil(4)) {
                let value = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
                let unused = 32 - 8 * size.min(4) as u32;
                let value = if word.is_signed() && size < 4 {
                    ((value << unused) as i32 >> unused) as u32
                } else {
                    value
                };
                if word.to() != super::ZERO {
                    thread.set(word.to() + index, value);
                }
            }
        }
        Ok(())
    }
}

fn branch(word: Word, thread: &mut Thread, sm: u32) -> Outcome {
    let target = word.target(sm);
    let register = thread.pair(word.index(24, 8));
    thread.at = match word.opcode() {
        0x943 => target as u64,
        0x343 | 0x950 if word.bit(85) || word.opcode() == 0x343 => register,
        // from the kernel's start
        0x344 | 0x950 => thread.at.wrapping_add(register).wrapping_add_signed(target),
        0x944 | 0x947 if word.source(87, thread) => thread.at.wrapping_add_signed(target),
        0x547 if word.source(87, thread) && word.uniform_source(24, thread) => {
            thread.at.wrapping_add_signed(target)
        }
        0x947 | 0x547 => thread.at,
        0x949 => thread.at.wrapping_add(register).wrapping_add_signed(target),
        // BRXU: the table's entry is in uniform registers
        0x958 => {
            let index = word.index(24, 6);
            let entry =
                u64::from(thread.uniform(index + 1)) << 32 | u64::from(thread.uniform(index));
            thread.at.wrapping_add(entry).wrapping_add_signed(target)
        }
        opcode => return Err(format!("opcode {opcode:#x} is not known")),
    };
    Ok(())
}

pub(super) fn wide(a: u32, b: u32, is_signed: bool) -> u64 {
    if is_signed {
        i64::from(a as i32).wrapping_mul(i64::from(b as i32)) as u64
    } else {
        u64::from(a) * u64::from(b)
    }
}

/// `PRMT`: four bytes of both words, each by a number of 3 bits, or its sign.
pub(super) fn permute(low: u32, numbers: u32, high: u32) -> u32 {
    let bytes = (u64::from(high) << 32 | u64::from(low)).to_le_bytes();
    let byte = |index: u32| {
        let selector = numbers >> (4 * index) & 15;
        let byte = bytes[selector as usize & 7];
        let byte = if selector & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 };
        u32::from(byte) << (8 * index)
    };
    (0..4).fold(0, |value, index| value | byte(index))
}

pub(super) fn lookup(a: u32, b: u32, c: u32, table: u64) -> u32 {
    (0..32).fold(0, |value, bit| {
        let row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
        value | ((table >> row & 1) as u32) << bit
    })
}

/// `SGXT`: so many of the lowest bits, with their sign or without.
const fn extend(word: Word, from: u32, count: u32) -> u32 {
    match 32u32.checked_sub(count) {
        None | Some(0) => from,
        Some(32) => 0,
        Some(above) if word.bit(73) => ((from << above) as i32 >> above) as u32,
        Some(above) => from << above >> above,
    }
}

/// `SHF`: types are S64, U64, S32, U32; what shifts farther than that clears all, or wraps around.
pub(super) fn shift(word: Word, low: u32, by: u32, high: u32) -> u32 {
    let limit = if word.bit(74) { 32 } else { 64 };
    let by = if word.bit(75) { by % limit } else { by.min(limit) };
    let both = u64::from(high) << 32 | u64::from(low);
    let both = match (word.bit(76), word.bit(73)) {
        (false, _) => u128::from(both) << by,
        (true, false) => (i128::from(both as i64) >> by) as u128,
        (true, true) => u128::from(both) >> by,
    };
    (if word.bit(80) { both >> 32 } else { both }) as u32
}

pub(super) fn compare(word: Word, a: u32, b: u32) -> bool {
    meets(word, if word.bit(73) { (a as i32).cmp(&(b as i32)) } else { a.cmp(&b) })
}

/// Whether an order is the one that is asked for.
pub(super) const fn meets(word: Word, order: Ordering) -> bool {
    match word.bits(76, 3) {
        0 => false,
        1 => order.is_lt(),
        2 => order.is_eq(),
        3 => order.is_le(),
        4 => order.is_gt(),
        5 => order.is_ne(),
        6 => order.is_ge(),
        _ => true,
    }
}
