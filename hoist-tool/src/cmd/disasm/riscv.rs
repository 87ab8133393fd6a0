//! Instructions of RISC-V, by rvdasm, whose text is that of GNU objdump.

use anyhow::Result;
use rvdasm::disassembler::{Disassembler, Xlen};

use super::listing::{Decode, Decoded, Section};

/// A decoder of code for registers of 32 or 64 bits.
pub(super) struct Riscv(Disassembler);

impl Riscv {
    pub(super) fn new(is_64: bool) -> Self {
        Self(Disassembler::new(if is_64 { Xlen::XLEN64 } else { Xlen::XLEN32 }))
    }
}

impl Decode for Riscv {
    fn decode(&mut self, section: &Section<'_, '_>, at: usize, end: usize) -> Result<Decoded> {
        let bytes = section.bytes.get(at..end).unwrap_or_default();
        let mut word = [0; 4];
        let size = match bytes.first() {
            Some(first) if first & 3 != 3 => 2,
            // 11111 begins what is longer, of which nobody has assigned any
            _ => 4,
        };
        let Some(code) = bytes.get(..size) else { return Ok(Decoded::cut_off(bytes)) };
        word.iter_mut().zip(code).for_each(|(to, from)| *to = *from);
        let word = u32::from_le_bytes(word);
        let Some(instruction) = self.0.disassmeble_one(word) else {
            let text = format!(".insn {word:#x}");
            return Ok(Decoded { size, text, remarks: Vec::new() });
        };
        let place = section.address(at);
        let (mut text, mut remarks, mut target) = (instruction.asm(place), Vec::new(), None);
        let is_branch = instruction.is_branch() || instruction.is_direct_jump();
        for record in section.targets.within(at as u64, (at + size) as u64) {
            match section.targets.operand(record, section.bytes, Some(at as u64))? {
                Some(name) if is_branch => target = Some(name),
                _ => remarks.push(section.targets.remark(record)?),
            }
        }
        // of nearly every instruction: what a linker may do is not what it does
        remarks.retain(|remark| remark != "R_RISCV_RELAX");
        if is_branch && let Some(start) = text.rfind("0x") {
            let address = text.get(start + 2..).and_then(|it| u64::from_str_radix(it, 16).ok());
            let name = target.or_else(|| section.name_of(address?));
            if let Some(name) = name {
                text.truncate(start);
                text += &name;
            }
        }
        Ok(Decoded { size, text: text.replace(',', ", "), remarks })
    }
}
