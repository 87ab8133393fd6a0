//! Instructions of Arm, A32 and Thumb, by yaxpeax-arm. Marks in the symbol table say which of them code is. Those of floating point and
//! SIMD are shown as numbers where it does not know them.

use anyhow::Result;
use elf_core::Mapping;
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv7::{ConditionCode, InstDecoder, Instruction, Opcode, Operand};

use super::listing::{Decode, Decoded, Section};

/// A decoder.
pub(super) struct Arm {
    decoder: InstDecoder,
    /// Whether code is big-endian.
    is_big: bool,
    /// What an IT says of the Thumb instructions behind it.
    block: Block,
}

/// The rest of an IT block.
#[derive(Default)]
struct Block {
    /// ITSTATE: conditions of the instructions to come; 0 if there are none.
    state: u32,
    /// Address of the next of them.
    next: u64,
}

impl Block {
    /// The condition of an instruction at `place`, if it is in the block. What comes next is the one behind it.
    fn condition(&mut self, place: u64, size: usize, word: u32) -> Option<ConditionCode> {
        let state = if self.next == place { self.state } else { 0 };
        self.next = place.wrapping_add(size as u64);
        // IT: the hints have no mask
        let is_it = size == 2 && word >> 8 == 0xbf && word & 0xf != 0;
        self.state = match state {
            0 if is_it => word & 0xff,
            _ if state & 7 == 0 => 0,
            _ => state & 0xe0 | state << 1 & 0x1f,
        };
        CONDITIONS.get((state >> 4) as usize).copied().filter(|_| state != 0)
    }
}

const CONDITIONS: [ConditionCode; 15] = [
    ConditionCode::EQ,
    ConditionCode::NE,
    ConditionCode::HS,
    ConditionCode::LO,
    ConditionCode::MI,
    ConditionCode::PL,
    ConditionCode::VS,
    ConditionCode::VC,
    ConditionCode::HI,
    ConditionCode::LS,
    ConditionCode::GE,
    ConditionCode::LT,
    ConditionCode::GT,
    ConditionCode::LE,
    ConditionCode::AL,
];

impl Arm {
    pub(super) fn new(is_big: bool) -> Self {
        Self { decoder: InstDecoder::default(), is_big, block: Block::default() }
    }

    /// The instruction that `bytes` begin with: its size, and its word. Of two halfwords the first is the upper one.
    fn word(&self, bytes: &[u8], is_thumb: bool) -> Option<(usize, u32)> {
        if !is_thumb {
            let word = *bytes.first_chunk()?;
            return Some((
                4,
                if self.is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) },
            ));
        }
        let half = |at: usize| {
            let half = *bytes.get(at..)?.first_chunk()?;
            Some(u32::from(if self.is_big {
                u16::from_be_bytes(half)
            } else {
                u16::from_le_bytes(half)
            }))
        };
        let first = half(0)?;
        if first >> 11 < 0x1d { Some((2, first)) } else { Some((4, first << 16 | half(2)?)) }
    }
}

impl Decode for Arm {
    fn decode(&mut self, section: &Section<'_, '_>, at: usize, end: usize) -> Result<Decoded> {
        let bytes = section.bytes.get(at..end).unwrap_or_default();
        let is_thumb = section.mapping(at) == Some(Mapping::Thumb);
        let Some((size, word)) = self.word(bytes, is_thumb) else {
            return Ok(Decoded::cut_off(bytes));
        };
        // the decoder reads halfwords of Thumb code in their order
        let little = if is_thumb && size == 4 { word.rotate_left(16) } else { word }.to_le_bytes();
        self.decoder.set_thumb_mode(is_thumb);
        let code = little.get(..size).unwrap_or_default();
        let place = section.address(at);
        let condition = if is_thumb { self.block.condition(place, size, word) } else { None };
        // of LDRD and STRD with r15, and what would be behind it, the decoder panics
        let panics = !is_thumb && word & 0x0e10_f0d0 == 0x0000_f0d0;
        let decoded = (!panics).then(|| self.decoder.decode(&mut U8Reader::new(code)));
        let decoded = decoded.and_then(Result::ok).filter(|it| it.opcode != Opcode::Invalid);
        let Some(mut instruction) = decoded else {
            let text = match (is_thumb, size) {
                (false, _) => format!(".inst {word:#x}"),
                (true, 2) => format!(".inst.n {word:#x}"),
                (true, _) => format!(".inst.w {word:#x}"),
            };
            return section.as_text(text, at, size);
        };
        correct(&mut instruction, word);
        if let Some(condition) = condition {
            instruction.condition = condition;
            // short ones set no flags there
            instruction.s &= size == 4;
        }
        let branch = match (is_thumb, size) {
            (false, _) => a32_target(word, place),
            (true, 2) => t16_target(word, place),
            (true, _) => t32_target(word, place),
        };
        let (mut text, mut remarks, mut target) = (instruction.to_string(), Vec::new(), None);
        for record in section.targets.within(at as u64, (at + size) as u64) {
            let ahead = if is_thumb { 4 } else { 8 };
            match section.targets.operand(record, section.bytes, Some(at as u64 + ahead))? {
                Some(name) if branch.is_some() => target = Some(name),
                _ => remarks.push(section.targets.remark(record)?),
            }
        }
        if let Some(address) = branch
            && let Some(start) = text.rfind('$')
        {
            text.truncate(start);
            let name = target.or_else(|| section.name_of(address));
            text += &name.unwrap_or_else(|| format!("{address:#x}"));
        }
        Ok(Decoded { size, text, remarks })
    }
}

/// Mends what the decoder says of A32 code: MVN has no first operand, though it gives the bits that are 0 for one; an addition to the
/// program counter and a subtraction are both ADR.
fn correct(instruction: &mut Instruction, word: u32) {
    let Instruction { opcode, operands: [_, first, second, third], thumb, .. } = instruction;
    let is_number = matches!(second, Operand::Imm32(_) | Operand::Imm12(_));
    if *opcode == Opcode::MVN && is_number && matches!(first, Operand::Reg(_)) {
        (*first, *second) = (*second, *third);
    }
    if *opcode == Opcode::ADR && !*thumb {
        *opcode = if word >> 21 & 0xf == 2 { Opcode::SUB } else { Opcode::ADD };
    }
}

/// Where a distance of so many bits leads from `base`: addresses have 32.
const fn lead(base: u64, distance: u32, bits: u32) -> u64 {
    let unused = 32u32.saturating_sub(bits);
    let distance = distance.unbounded_shl(unused).cast_signed().unbounded_shr(unused);
    (base as u32).wrapping_add_signed(distance) as u64
}

/// Of B, BL and BLX to an immediate.
const fn a32_target(word: u32, place: u64) -> Option<u64> {
    if word >> 25 & 7 != 5 {
        return None;
    }
    // BLX, whose bit 24 is bit 1 of the distance
    let half = if word >> 28 == 0xf { word >> 23 & 2 } else { 0 };
    Some(lead(place.wrapping_add(8), word << 2 | half, 26))
}

/// Of B, B<c>, CBZ and CBNZ.
const fn t16_target(word: u32, place: u64) -> Option<u64> {
    let base = place.wrapping_add(4);
    match word >> 12 {
        // 14 is no condition, and 15 is SVC
        0xd if word >> 9 & 7 != 7 => Some(lead(base, word << 1 & 0x1fe, 9)),
        0xe if word >> 11 & 1 == 0 => Some(lead(base, word << 1 & 0xffe, 12)),
        0xb if word & 0x0500 == 0x0100 => Some(lead(base, word >> 2 & 0x3e | word >> 3 & 0x40, 32)),
        _ => None,
    }
}

/// Of B.W, B<c>.W, BL and BLX.
const fn t32_target(word: u32, place: u64) -> Option<u64> {
    if word >> 27 != 0x1e || word & 0x8000 == 0 {
        return None;
    }
    let base = place.wrapping_add(4);
    let low = word << 1 & 0xffe;
    let (sign, j1, j2) = (word >> 26 & 1, word >> 13 & 1, word >> 11 & 1);
    if word & 0x5000 == 0 {
        // of what has no condition here, none is a branch
        let is_branch = word >> 23 & 7 != 7;
        let distance = sign << 20 | j2 << 19 | j1 << 18 | word >> 4 & 0x3_f000 | low;
        return if is_branch { Some(lead(base, distance, 21)) } else { None };
    }
    let (i1, i2) = (j1 ^ sign ^ 1, j2 ^ sign ^ 1);
    let distance = sign << 24 | i1 << 23 | i2 << 22 | word >> 4 & 0x3f_f000 | low;
    // BLX counts from a multiple of 4
    let base = if word & 0x5000 == 0x4000 { base & !3 } else { base };
    Some(lead(base, distance, 25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_branches() {
        assert_eq!(a32_target(0xebff_fffe, 0x100), Some(0x100), "bl .");
        assert_eq!(a32_target(0xea00_0000, 0x100), Some(0x108));
        assert_eq!(a32_target(0xfb00_0000, 0x100), Some(0x10a), "blx");
        assert_eq!(a32_target(0xe1a0_0000, 0x100), None, "nop");
        assert_eq!(t16_target(0xe7fe, 0x100), Some(0x100), "b .");
        assert_eq!(t16_target(0xd0fe, 0x100), Some(0x100), "beq .");
        assert_eq!(t16_target(0xde00, 0x100), None, "udf");
        assert_eq!(t16_target(0xdf00, 0x100), None, "svc");
        assert_eq!(t16_target(0xb108, 0x100), Some(0x106), "cbz r0, .+6");
        assert_eq!(t16_target(0xbb08, 0x100), Some(0x146), "cbnz r0, .+70");
        assert_eq!(t32_target(0xf7ff_fffe, 0x100), Some(0x100), "bl .");
        assert_eq!(t32_target(0xf000_e800, 0x102), Some(0x104), "blx");
        assert_eq!(t32_target(0xf7ff_bffe, 0x100), Some(0x100), "b.w .");
        assert_eq!(t32_target(0xf43f_affe, 0x100), Some(0x100), "beq.w .");
        assert_eq!(t32_target(0xf3af_8000, 0x100), None, "nop.w");
        assert_eq!(t32_target(0xf8df_f000, 0x100), None, "ldr.w pc");
    }
}
