//! Instructions of x86-64 and i386, by iced-x86.

use core::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use iced_x86::{
    ConstantOffsets, Decoder, DecoderOptions, Formatter as _, Instruction, IntelFormatter, OpKind,
    SymbolResolver, SymbolResult,
};

use super::listing::{Decode, Decoded, Section};

/// A decoder of code of so many bits.
pub(super) struct X86 {
    bits: u32,
    formatter: IntelFormatter,
    operands: Rc<RefCell<Operands>>,
}

impl X86 {
    pub(super) fn new(bits: u32) -> Self {
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
        Self { bits, formatter, operands }
    }

    /// Sets what the formatter calls the operands; gives what is no operand.
    fn name_operands(
        &self,
        section: &Section<'_, '_>,
        at: usize,
        instruction: &Instruction,
        places: &ConstantOffsets,
    ) -> Result<Vec<String>> {
        let (start, end) = (at as u64, (at + instruction.len()) as u64);
        let (mut operands, mut remarks) = (Operands::default(), Vec::new());
        for record in section.targets.within(start, end) {
            let at = usize::try_from(record.offset.wrapping_sub(start)).unwrap_or(usize::MAX);
            let (operand, is_counted) =
                if places.has_displacement() && at == places.displacement_offset() {
                    (&mut operands.displacement, instruction.is_ip_rel_memory_operand())
                } else if places.has_immediate() && at == places.immediate_offset() {
                    (&mut operands.immediate, is_branch(instruction))
                } else {
                    remarks.push(section.targets.remark(record)?);
                    continue;
                };
            let counted_from = is_counted.then_some(end);
            match section.targets.operand(record, section.bytes, counted_from)? {
                None => remarks.push(section.targets.remark(record)?),
                name => *operand = name,
            }
        }
        if is_branch(instruction) && operands.immediate.is_none() {
            operands.immediate = section.name_of(instruction.near_branch_target());
        }
        if instruction.is_ip_rel_memory_operand() && operands.displacement.is_none() {
            operands.displacement = section.name_of(instruction.ip_rel_memory_address());
        }
        *self.operands.borrow_mut() = operands;
        Ok(remarks)
    }
}

impl Decode for X86 {
    fn decode(&mut self, section: &Section<'_, '_>, at: usize, end: usize) -> Result<Decoded> {
        let bytes = section.bytes.get(at..end).unwrap_or_default();
        let address = section.address(at);
        let mut decoder = Decoder::with_ip(self.bits, bytes, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let places = decoder.get_constant_offsets(&instruction);
        let remarks = self.name_operands(section, at, &instruction, &places)?;
        let mut text = String::new();
        self.formatter.format(&instruction, &mut text);
        Ok(Decoded { size: instruction.len(), text, remarks })
    }
}

/// Whether an operand is a place in the code.
fn is_branch(instruction: &Instruction) -> bool {
    let kind = instruction.op0_kind();
    matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
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
