//! Tables of line numbers: a sequence of each for every function.

use super::entity::EntityId;
use super::object::{Object, Section};
use super::span::{Span, part_from};
use super::state::State;
use alloc::vec::Vec;

/// Sections of line numbers: of the source and of PTX, and of the code's own form.
const NAMES: [&[u8]; 2] = [b".debug_line", b".nv_debug_line_sass"];
/// The first standard opcode after all of which operands are LEB128: `DW_LNS_fixed_advance_pc` has a half.
const FIXED_ADVANCE_PC: u8 = 9;
const END_SEQUENCE: u8 = 1;
/// The version whose headers have the sizes of addresses and segment selectors.
const WITH_SIZES: u16 = 5;
/// The first version whose headers tell the operations of an instruction.
const WITH_OPERATIONS: u16 = 4;

/// The lines of one compilation: header and sequences, by offset.
struct Unit {
    from: u64,
    sequences: Vec<(u64, u64)>,
}

impl State<'_> {
    /// The parts of a section of line numbers that stay, from `sm_100` on: sequences of functions that stay, in the order of
    /// their symbols. Nothing, if the section is another one, or is not understood: then all of it does.
    pub(super) fn live_lines(
        &self,
        object: &Object<'_>,
        number: u32,
        section: &Section<'_>,
    ) -> Option<(Vec<Span>, Vec<u8>)> {
        if self.sm < 100 || !is_lines(section.name.as_bytes()) {
            return None;
        }
        let units = units(section.data)?;
        let records = object.records(number).ok()?;
        let records: Vec<_> = records.into_iter().flat_map(|(_, rows)| rows).collect();
        let function_of = |from: u64, end: u64| -> Option<EntityId> {
            let ours = records.iter().find(|record| (from..end).contains(&record.offset));
            object.entity(ours?.symbol)
        };
        let (mut spans, mut data) = (Vec::new(), Vec::new());
        let mut take = |data: &mut Vec<u8>, from: u64, end: u64| {
            let size = end.saturating_sub(from);
            let span = Span { from, to: data.len() as u64, size };
            data.extend_from_slice(span.of(section.data));
            spans.push(span);
        };
        for unit in units {
            let start = data.len();
            let header_end = unit.sequences.first()?.0;
            take(&mut data, unit.from, header_end);
            let mut stay: Vec<_> = unit
                .sequences
                .into_iter()
                .map(|(from, end)| (function_of(from, end), from, end))
                .filter(|(id, ..)| id.is_none_or(|id| self.is_unwound(id, object.index)))
                .collect();
            stay.sort_by_key(|&(id, ..)| id.map(|id| (!self.entities[id].local, id)));
            stay.iter().for_each(|&(_, from, end)| take(&mut data, from, end));
            if stay.is_empty() {
                data.extend([0, 1, END_SEQUENCE]);
            }
            let length = u32::try_from(data.len().checked_sub(start)?.checked_sub(4)?).ok()?;
            *data.get_mut(start..)?.first_chunk_mut()? = length.to_le_bytes();
        }
        Some((spans, data))
    }
}

/// Whether a section of this name has line numbers.
pub(super) fn is_lines(name: &[u8]) -> bool {
    NAMES.contains(&name)
}

/// The units of a section; `None` if one is of another form.
fn units(data: &[u8]) -> Option<Vec<Unit>> {
    let (mut units, mut from) = (Vec::new(), 0u64);
    while let Some(unit) = part_from(data, from) {
        let mut reader = Reader { rest: unit, read: 0 };
        let length = u64::from(u32::from_le_bytes(reader.take()?));
        let end = length.checked_add(4).filter(|&end| end <= unit.len() as u64)?;
        let version = u16::from_le_bytes(reader.take()?);
        if version >= WITH_SIZES {
            reader.take::<2>()?;
        }
        let header = u64::from(u32::from_le_bytes(reader.take()?));
        let program = reader.read.checked_add(header).filter(|&program| program <= end)?;
        let [_instruction] = reader.take()?;
        if version >= WITH_OPERATIONS {
            reader.take::<1>()?;
        }
        let [_is_statement, _base, _range, first_special] = reader.take()?;
        let mut operands = Vec::new();
        for _ in 1..first_special {
            operands.push(reader.take::<1>()?[0]);
        }
        reader.skip(program.checked_sub(reader.read)?)?;
        let (mut sequences, mut start) = (Vec::new(), reader.read);
        while reader.read < end {
            let is_end = reader.instruction(first_special, &operands)?;
            if is_end {
                sequences.push((from.checked_add(start)?, from.checked_add(reader.read)?));
                start = reader.read;
            }
        }
        if start != end || sequences.is_empty() {
            return None;
        }
        units.push(Unit { from, sequences });
        from = from.checked_add(end)?;
    }
    Some(units)
}

/// Reads a line number program.
struct Reader<'d> {
    rest: &'d [u8],
    read: u64,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        self.read = self.read.checked_add(N as u64)?;
        Some(*bytes)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        self.read = self.read.checked_add(count)?;
        Some(())
    }

    fn leb128(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let [byte] = self.take()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift = shift.checked_add(7)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    /// Reads an instruction; whether it ends a sequence.
    fn instruction(&mut self, first_special: u8, operands: &[u8]) -> Option<bool> {
        match self.take::<1>()? {
            [0] => {
                let size = self.leb128()?;
                let [opcode] = self.take()?;
                self.skip(size.checked_sub(1)?)?;
                return Some(opcode == END_SEQUENCE);
            }
            [opcode] if opcode >= first_special => {}
            [FIXED_ADVANCE_PC] => self.skip(2)?,
            [opcode] => {
                let count = operands.get(usize::from(opcode).checked_sub(1)?)?;
                for _ in 0..*count {
                    self.leb128()?;
                }
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::units;
    use alloc::vec::Vec;

    #[test]
    fn sequences_are_found() {
        // version 3, three standard opcodes: 1 copies, 2 advances the address, 3 the line
        let header = [3, 0, 9, 0, 0, 0, 1, 1, 0xfb, 0x0e, 4, 0, 1, 1, 0];
        let program = [1, 2, 0x85, 1, 9, 0, 1, 1, 3, 0x7f, 1, 0, 1, 1];
        let mut data = Vec::from([29, 0, 0, 0]);
        data.extend(header.into_iter().chain(program));
        let found = units(&data).unwrap();
        assert_eq!(found[0].sequences, [(19, 27), (27, 33)]);
        let cut = data.split_off(32);
        assert!(units(&data).is_none(), "{cut:?} belongs to the last sequence");
    }
}
