//! Instructions of x86-64 and i386, by iced-x86.

use core::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use anyhow::Result;
use elf_core::{Kind, SectionHeader};
use iced_x86::{
    ConstantOffsets, Decoder, DecoderOptions, Formatter as _, Instruction, IntelFormatter, OpKind,
    SymbolResolver, SymbolResult,
};

use super::code::{Code, Function};
use super::targets::Targets;
use crate::printable::Printable;

/// Bytes of an instruction in a line.
const BYTES: usize = 8;

/// The code of one section.
pub(super) struct Listing<'c, 'a> {
    targets: Targets<'c, 'a>,
    bytes: &'a [u8],
    /// Address of the first byte.
    start: u64,
    bits: u32,
    index: u32,
    header: SectionHeader,
    formatter: IntelFormatter,
    operands: Rc<RefCell<Operands>>,
}

impl<'c, 'a> Listing<'c, 'a> {
    /// The code of section `index`.
    pub(super) fn of(
        code: &'c Code<'a>,
        index: u32,
        header: &SectionHeader,
        bits: u32,
        kinds: &'static [Kind],
    ) -> Result<Self> {
        let operands = Rc::new(RefCell::new(Operands::default()));
        let resolver = Box::new(Resolver(Rc::clone(&operands)));
        let mut formatter = IntelFormatter::with_options(Some(resolver), None);
        let options = formatter.options_mut();
        options.set_uppercase_hex(false);
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_space_after_operand_separator(true);
        options.set_space_between_memory_add_operators(true);
        options.set_branch_leading_zeros(false);
        options.set_show_branch_size(false);
        Ok(Self {
            targets: Targets::of(code, index, kinds)?,
            bytes: code.file.section_data(header)?,
            start: code.start_of(header),
            bits,
            index,
            header: *header,
            formatter,
            operands,
        })
    }

    /// Prints the instructions of a function.
    pub(super) fn function(&mut self, function: &Function<'_>, out: &mut dyn Write) -> Result<()> {
        if !function.name.is_empty() {
            writeln!(out, "\n{}:", Printable::from(function.name))?;
        }
        let range = (usize::try_from(function.start), usize::try_from(function.end));
        let bytes =
            if let (Ok(start), Ok(end)) = range { self.bytes.get(start..end) } else { None };
        let bytes = bytes.unwrap_or_default();
        let address = self.start.wrapping_add(function.start);
        let mut decoder = Decoder::with_ip(self.bits, bytes, address, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut text = String::new();
        while decoder.can_decode() {
            let at = decoder.position();
            decoder.decode_out(&mut instruction);
            let encoded = bytes.get(at..decoder.position()).unwrap_or_default();
            let remarks =
                self.name_operands(&instruction, &decoder.get_constant_offsets(&instruction))?;
            text.clear();
            self.formatter.format(&instruction, &mut text);
            if !remarks.is_empty() {
                text = format!("{text}  ; {}", remarks.join("; "));
            }
            print(instruction.ip(), encoded, &text, out)?;
        }
        Ok(())
    }

    /// Sets what the formatter calls the operands; gives what is no operand.
    fn name_operands(
        &mut self,
        instruction: &Instruction,
        places: &ConstantOffsets,
    ) -> Result<Vec<String>> {
        let start = instruction.ip().wrapping_sub(self.start);
        let end = instruction.next_ip().wrapping_sub(self.start);
        let (mut operands, mut remarks) = (Operands::default(), Vec::new());
        for record in self.targets.within(start, end) {
            let at = usize::try_from(record.offset.wrapping_sub(start)).unwrap_or(usize::MAX);
            let (operand, is_counted) =
                if places.has_displacement() && at == places.displacement_offset() {
                    (&mut operands.displacement, instruction.is_ip_rel_memory_operand())
                } else if places.has_immediate() && at == places.immediate_offset() {
                    (&mut operands.immediate, is_branch(instruction))
                } else {
                    remarks.push(self.targets.remark(record)?);
                    continue;
                };
            *operand = match self.targets.operand(record, self.bytes, is_counted.then_some(end))? {
                None => {
                    remarks.push(self.targets.remark(record)?);
                    continue;
                }
                name => name,
            };
        }
        let name = |address| self.targets.address(self.index, &self.header, address);
        if is_branch(instruction) && operands.immediate.is_none() {
            operands.immediate = name(instruction.near_branch_target());
        }
        if instruction.is_ip_rel_memory_operand() && operands.displacement.is_none() {
            operands.displacement = name(instruction.ip_rel_memory_address());
        }
        *self.operands.borrow_mut() = operands;
        Ok(remarks)
    }
}

/// Whether an operand is a place in the code.
fn is_branch(instruction: &Instruction) -> bool {
    matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    )
}

/// An instruction: its address, its bytes and, in the first line, its text.
fn print(address: u64, encoded: &[u8], text: &str, out: &mut dyn Write) -> Result<()> {
    for (line, bytes) in encoded.chunks(BYTES).enumerate() {
        let mut digits = String::new();
        for byte in bytes {
            digits.push_str(&format!("{byte:02x} "));
        }
        let address = address.wrapping_add((line * BYTES) as u64);
        match line {
            0 => writeln!(out, "{address:8x}  {digits:0$} {text}", BYTES * 3)?,
            _ => writeln!(out, "{address:8x}  {}", digits.trim_end())?,
        }
    }
    Ok(())
}

/// Names for the operands of the instruction at hand.
#[derive(Default)]
struct Operands {
    displacement: Option<String>,
    /// Or the target of a branch.
    immediate: Option<String>,
}

/// Tells the formatter the names.
struct Resolver(Rc<RefCell<Operands>>);

impl SymbolResolver for Resolver {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let operands = self.0.borrow();
        let name = match instruction.op_kind(instruction_operand?) {
            OpKind::Memory => &operands.displacement,
            _ => &operands.immediate,
        };
        Some(SymbolResult::with_string(address, name.clone()?))
    }
}
