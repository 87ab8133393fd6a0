//! Instructions of AArch64, by yaxpeax-arm.

use anyhow::Result;
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Opcode, Operand};

use super::listing::{Decode, Decoded, Section};

/// Bytes of an instruction.
const SIZE: usize = 4;

/// A decoder. Instructions are little-endian, even in big-endian files.
#[derive(Default)]
pub(super) struct Aarch64(InstDecoder);

impl Decode for Aarch64 {
    fn decode(&mut self, section: &Section<'_, '_>, at: usize, end: usize) -> Result<Decoded> {
        let bytes = section.bytes.get(at..end).unwrap_or_default();
        let Some(word) = bytes.first_chunk::<SIZE>() else {
            return Ok(Decoded::cut_off(bytes));
        };
        let Ok(instruction) = self.0.decode(&mut U8Reader::new(word)) else {
            let text = format!(".word {:#x}", u32::from_le_bytes(*word));
            return section.as_text(text, at, SIZE);
        };
        let distance = instruction.operands.iter().find_map(|operand| match operand {
            Operand::PCOffset(distance) => Some(*distance),
            _ => None,
        });
        let (mut text, mut remarks, mut target) = (instruction.to_string(), Vec::new(), None);
        for record in section.targets.within(at as u64, (at + SIZE) as u64) {
            match section.targets.operand(record, section.bytes, Some(at as u64))? {
                Some(name) if distance.is_some() => target = Some(name),
                _ => remarks.push(section.targets.remark(record)?),
            }
        }
        if let (Some(distance), None) = (distance, &target) {
            let place = section.address(at);
            // pages are counted from the start of the instruction's own
            let from = if instruction.opcode == Opcode::ADRP { place & !0xfff } else { place };
            let address = from.wrapping_add_signed(distance);
            target = Some(section.name_of(address).unwrap_or_else(|| format!("{address:#x}")));
        }
        if let Some((start, name)) = text.rfind('$').zip(target) {
            text.truncate(start);
            text += &name;
        }
        Ok(Decoded { size: SIZE, text, remarks })
    }
}
