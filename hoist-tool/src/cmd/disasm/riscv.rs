//! Instructions of RISC-V, by rvdasm, whose text is that of GNU objdump, and of what that does not know.

use anyhow::Result;
use elf_core::File;
use elf_core::names::SHT_RISCV_ATTRIBUTES;
use rvdasm::disassembler::{Disassembler, Xlen};

use super::listing::{Decode, Decoded, Section};

mod extensions;

/// A decoder of code for registers of 32 or 64 bits.
pub(super) struct Riscv {
    decoder: Disassembler,
    is_64: bool,
    /// Whether there are the instructions of Zcmp or Zcmt in the place of those of Zcd.
    has_tables: bool,
}

impl Riscv {
    /// For code of `file`.
    pub(super) fn new(file: &File<'_>) -> Self {
        let is_64 = file.encoding().is_64();
        let decoder = Disassembler::new(if is_64 { Xlen::XLEN64 } else { Xlen::XLEN32 });
        let mut attributes = file.sections().iter().filter(|it| it.r#type == SHT_RISCV_ATTRIBUTES);
        let has_tables = attributes.any(|section| {
            let bytes = file.section_data(&section).unwrap_or_default();
            bytes.windows(5).any(|name| matches!(name, b"_zcmp" | b"_zcmt"))
        });
        Self { decoder, is_64, has_tables }
    }

    /// What rvdasm does not know.
    fn extension(&self, word: u32, size: usize) -> Option<String> {
        match size {
            2 => extensions::short(word, self.is_64, self.has_tables),
            _ => extensions::long(word, self.is_64),
        }
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
        let extension = self.extension(word, size);
        let known = extension.is_none().then(|| self.decoder.disassmeble_one(word)).flatten();
        let Some(instruction) = known else {
            let text = extension.unwrap_or_else(|| format!(".insn {word:#x}"));
            let mut decoded = section.as_text(text, at, size)?;
            decoded.remarks.retain(|remark| is_remarkable(remark));
            return Ok(decoded);
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
        remarks.retain(|remark| is_remarkable(remark));
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

/// Whether it is not said of nearly every instruction: what a linker may do is not what it does.
fn is_remarkable(remark: &str) -> bool {
    remark != "R_RISCV_RELAX"
}
