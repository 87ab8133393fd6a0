//! What instructions do.

use super::word::Word;
use super::{Reach, Running, Thread};

type Outcome = Result<(), String>;

impl Reach<'_> {
    pub(super) fn execute(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        match word.opcode() {
            0x918 | 0x945 | 0x941 | 0x948 => Ok(()), // NOP, BSSY, BSYNC, WARPSYNC
            0x94d => {
                thread.state = Running::Ended;
                Ok(())
            }
            0xb1d => {
                thread.state = Running::Waits;
                Ok(())
            }
            0x943 | 0x343 | 0x944 | 0x947 | 0x950 | 0x949 | 0x958 => branch(word, thread),
            0xb82 | 0xab9 => self.load_constant(word, thread),
            0x981 | 0x983 | 0x984 | 0x986 | 0x387 | 0x388 | 0x988 | 0x9a8 => {
                self.access(word, thread)
            }
            0x919 | 0x9c3 => self.special(word, thread),
            0x882 | 0x290 | 0x890 | 0x291 | 0x891 | 0x299 | 0x899 | 0x292 | 0x892 | 0x886
            | 0x2bd | 0x2ca => self.uniform(word, thread),
            _ => self.arithmetic(word, thread),
        }
    }

    fn arithmetic(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let register = thread.register(word.index(24, 8));
        let a = if word.bit(72) { register.wrapping_neg() } else { register };
        let (to, code) = (word.to(), word.opcode() & 0x1ff);
        let [b, c] = word.operands(thread, self)?;
        let value = match code {
            0x002 => b, // MOV
            // HFMA2.MMA with nothing to multiply
            0x035 if word.bits(24, 8) == 0xff => b.max(c),
            0x010 => {
                let carries = [word.source(87, thread), word.source(77, thread)];
                let carry = if word.bit(74) { carries.iter().filter(|&&c| c).count() } else { 0 };
                let sum = u64::from(a) + u64::from(b) + u64::from(c) + carry as u64;
                thread.set_predicate(word.index(81, 3), sum >> 32 > 0);
                thread.set_predicate(word.index(84, 3), sum >> 32 > 1);
                sum as u32
            }
            0x036 => a.wrapping_add(b),                        // VIADD
            0x024 => register.wrapping_mul(b).wrapping_add(c), // IMAD
            0x025 => {
                let product = wide(register, b, word.bit(73));
                let third = if matches!(word.opcode() >> 9, 2 | 3 | 7) {
                    u64::from(c)
                } else {
                    thread.pair(word.index(64, 8))
                };
                thread.set_pair(to, product.wrapping_add(third));
                return Ok(());
            }
            0x027 if c == 0 => (wide(register, b, word.bit(73)) >> 32) as u32, // IMAD.HI
            0x011 => {
                let (shift, is_high) = (word.bits(75, 5) as u32, word.bit(80));
                let both = u64::from(c) << 32 | u64::from(a);
                let part = if is_high { ((both << shift) >> 32) as u32 } else { register << shift };
                let sum = u64::from(part) + u64::from(b);
                thread.set_predicate(word.index(81, 3), sum >> 32 > 0);
                sum as u32
            }
            0x012 => lookup(register, b, c, word.bits(72, 8)),
            0x019 => shift(word, register, b, c)?,
            0x048 => {
                let is_min = word.source(87, thread);
                let (x, y) = (register as i32, b as i32);
                (if is_min { x.min(y) } else { x.max(y) }) as u32
            }
            0x00c => {
                let holds = compare(word, register, b)?;
                let with = word.source(87, thread);
                let combine = |holds: bool| match word.bits(74, 2) {
                    0 => Ok(holds && with),
                    1 => Ok(holds || with),
                    2 => Ok(holds != with),
                    other => Err(format!("operation {other}")),
                };
                thread.set_predicate(word.index(81, 3), combine(holds)?);
                thread.set_predicate(word.index(84, 3), combine(!holds)?);
                return Ok(());
            }
            0x007 => {
                if word.source(87, thread) {
                    register
                } else {
                    b
                }
            } // SEL
            0x109 => b.count_ones(), // POPC
            code => return Err(format!("opcode {code:#x} is not known")),
        };
        thread.set(to, value);
        Ok(())
    }

    fn uniform(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let to = word.index(16, 6);
        let a = thread.uniform(word.index(24, 6));
        let is_negated = word.opcode() & 0x1ff == 0x90 && word.bit(72);
        let a = if is_negated { a.wrapping_neg() } else { a };
        let is_immediate = word.opcode() >> 9 == 4;
        let b =
            if is_immediate { word.bits(32, 32) as u32 } else { thread.uniform(word.index(32, 6)) };
        let c = thread.uniform(word.index(64, 6));
        let value = match word.opcode() {
            0x882 => b, // UMOV
            0x290 | 0x890 => a.wrapping_add(b).wrapping_add(c),
            0x291 | 0x891 if !word.bit(80) => (a << word.bits(75, 5)).wrapping_add(b),
            0x299 | 0x899 => shift(word, a, b, c)?,
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

    fn load_constant(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let size = word.size()?;
        let is_uniform = word.opcode() == 0xab9;
        let index = if is_uniform { 0 } else { thread.register(word.index(24, 8)) };
        let offset = u64::from((word.bits(38, 16) as u32).wrapping_add(index) & 0xffff);
        let value = self.constant(word.bits(54, 5) as u32, offset, size)?;
        match (is_uniform, size) {
            (true, _) => {
                let to = word.index(16, 6);
                thread.set_uniform(to, value as u32);
                if size == 8 {
                    thread.set_uniform(to + 1, (value >> 32) as u32);
                }
            }
            (false, 8) => thread.set_pair(word.to(), value),
            (false, _) => thread.set(word.to(), value as u32),
        }
        Ok(())
    }

    fn special(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let value = match word.bits(72, 8) {
            0x00 => thread.lane,
            number @ 0x21..=0x23 => thread.index[number as usize - 0x21],
            number @ 0x25..=0x27 => self.block[number as usize - 0x25],
            0x88 => 0, // SR_CgaCtaId of a grid without clusters
            number => return Err(format!("special register {number:#x}")),
        };
        if word.opcode() == 0x9c3 {
            thread.set_uniform(word.index(16, 6), value);
        } else {
            thread.set(word.to(), value);
        }
        Ok(())
    }

    /// Global, local and shared memory.
    fn access(&mut self, word: Word, thread: &mut Thread) -> Outcome {
        let size = if word.opcode() == 0x9a8 { 4 } else { word.size()? };
        let base = word.index(24, 8);
        let narrow = |extra: u32| {
            thread.register(base).wrapping_add(word.displacement() as u32).wrapping_add(extra)
        };
        let address = match word.opcode() {
            0x981 | 0x986 | 0x9a8 if word.bit(72) => {
                thread.pair(base).wrapping_add_signed(word.displacement())
            }
            0x981 | 0x986 | 0x9a8 => return Err("an address of 32 bits".into()),
            // the last bytes of 2^24 are those that there are
            0x983 | 0x387 => {
                let address = u64::from(narrow(0));
                let start = (1u64 << 24) - thread.local.len() as u64;
                address.checked_sub(start).ok_or(format!("no local memory at {address:#x}"))?
            }
            0x988 => narrow(thread.uniform(word.index(64, 6))).into(),
            0x984 => narrow(thread.uniform(word.index(32, 6))).into(),
            _ => narrow(0).into(),
        };
        let mut bytes = [0; 16];
        let is_load = matches!(word.opcode(), 0x981 | 0x983 | 0x984 | 0x9a8);
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
        let start = address as usize;
        let is_there = match (space, is_load) {
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
        if !is_there || !address.is_multiple_of(size as u64) {
            return Err(format!("{size} bytes at {address:#x} are not there"));
        }
        if word.opcode() == 0x9a8 {
            let before = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let after = match word.bits(87, 4) {
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

fn branch(word: Word, thread: &mut Thread) -> Outcome {
    let register = thread.pair(word.index(24, 8));
    thread.at = match word.opcode() {
        0x943 => word.target() as u64,
        0x343 | 0x950 if word.bit(85) || word.opcode() == 0x343 => register,
        0x944 | 0x947 if word.source(87, thread) => thread.at.wrapping_add_signed(word.target()),
        0x947 => thread.at,
        0x949 => thread.at.wrapping_add(register).wrapping_add_signed(word.target()),
        // BRXU: the table's entry is in uniform registers
        0x958 => {
            let index = word.index(24, 6);
            let entry =
                u64::from(thread.uniform(index + 1)) << 32 | u64::from(thread.uniform(index));
            thread.at.wrapping_add(entry).wrapping_add_signed(word.target())
        }
        opcode => return Err(format!("opcode {opcode:#x} is not known")),
    };
    Ok(())
}

fn wide(a: u32, b: u32, is_signed: bool) -> u64 {
    if is_signed {
        i64::from(a as i32).wrapping_mul(i64::from(b as i32)) as u64
    } else {
        u64::from(a) * u64::from(b)
    }
}

fn lookup(a: u32, b: u32, c: u32, table: u64) -> u32 {
    (0..32).fold(0, |value, bit| {
        let row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
        value | ((table >> row & 1) as u32) << bit
    })
}

/// `SHF`: types are S64, U64, S32, U32.
fn shift(word: Word, low: u32, by: u32, high: u32) -> Result<u32, String> {
    let by = by & 31;
    match (word.bit(76), word.bit(80), word.bits(73, 2)) {
        (true, true, 2) => Ok(((high as i32) >> by) as u32),
        (true, true, 3) => Ok(high >> by),
        (true, false, 2 | 3) => Ok(low >> by),
        (false, false, _) => Ok(low << by),
        (false, true, _) => Ok((((u64::from(high) << 32 | u64::from(low)) << by) >> 32) as u32),
        (_, _, kind) => Err(format!("a shift of type {kind}")),
    }
}

fn compare(word: Word, a: u32, b: u32) -> Result<bool, String> {
    let order = if word.bit(73) { (a as i32).cmp(&(b as i32)) } else { a.cmp(&b) };
    Ok(match word.bits(76, 3) {
        0 => false,
        1 => order.is_lt(),
        2 => order.is_eq(),
        3 => order.is_le(),
        4 => order.is_gt(),
        5 => order.is_ne(),
        6 => order.is_ge(),
        _ => true,
    })
}
