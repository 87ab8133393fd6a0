//! Tables of line numbers: a sequence of each for every function.

use super::entity::EntityId;
use super::error::LinkError;
use super::object::{Object, Role, Section};
use super::span::{Span, moved, part_from};
use super::state::State;
use alloc::rc::Rc;
use alloc::vec::Vec;

/// Sections of line numbers: of the source and of PTX, and of the code's own form.
const NAMES: [&[u8]; 2] = [LINES.as_bytes(), b".nv_debug_line_sass"];
/// Lines of the source and of PTX.
const LINES: &str = ".debug_line";
/// Names that debug information refers to.
const STRINGS: &str = ".debug_str";
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
    /// The last word of the header: where in `.debug_str` names of inlined functions begin. Only units with such have it.
    names: Option<u64>,
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

    /// Has lines refer to the names of inlined functions where those are, once everything has its place. Objects up to `sm_89`
    /// have records for that; for later ones nvlink knows it from `sm_100` on, and for `sm_90` takes the first object's names.
    pub(super) fn place_inlined_names(&mut self) -> Result<(), LinkError> {
        for object in Rc::clone(&self.objects).iter() {
            let mut debug = object.with_role(Role::Debug);
            let strings = debug.find(|(_, section)| section.name == STRINGS);
            let strings = strings.and_then(|(number, _)| self.places.get(&(object.index, number)));
            let Some(&(_, start)) = strings else { continue };
            for (number, section) in object.with_role(Role::Debug) {
                let place = self.places.get(&(object.index, number)).copied();
                let Some((out, base)) = place.filter(|_| section.name == LINES) else { continue };
                let records = object.records(number)?;
                let has_record = |at: &u64| records.iter().any(|row| row.offset == *at);
                let spans = self.spans.get(&(object.index, number));
                let names = units(section.data).into_iter().flatten().filter_map(|unit| unit.names);
                let fields = names.filter(|at| !has_record(at)).filter_map(|at| {
                    let at = spans.map_or(Some(at), |spans| moved(spans, at))?;
                    usize::try_from(at.checked_add(base)?).ok()
                });
                for at in fields.collect::<Vec<_>>() {
                    let field = self.outs[out].data.get_mut(at..);
                    if let Some(word) = field.and_then(|field| field.first_chunk_mut()) {
                        *word = u32::from_le_bytes(*word).wrapping_add(start as u32).to_le_bytes();
                    }
                }
            }
        }
        Ok(())
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
        let names = match version < WITH_SIZES {
            true => Reader { ..reader }.after_files(program).and_then(|at| from.checked_add(at)),
            false => None,
        };
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
        units.push(Unit { from, sequences, names });
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

    /// Reads the folders and files of a header that ends at `end`. Where the word behind them is, if there is exactly one.
    fn after_files(&mut self, end: u64) -> Option<u64> {
        while self.text()? {}
        while self.text()? {
            for _ in 0..3 {
                self.leb128()?;
            }
        }
        (end.checked_sub(self.read)? == 4).then_some(self.read)
    }

    /// Reads a text and the NUL behind it; whether there is anything before that.
    fn text(&mut self) -> Option<bool> {
        let size = self.rest.iter().position(|&byte| byte == 0)? as u64;
        self.skip(size.checked_add(1)?)?;
        Some(size > 0)
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
        assert_eq!(found[0].names, None);
        let cut = data.split_off(32);
        assert!(units(&data).is_none(), "{cut:?} belongs to the last sequence");
    }

    #[test]
    fn the_word_behind_the_files_is_found() {
        for (behind, names) in [(&[][..], None), (&[0; 4], Some(25)), (&[0; 8], None)] {
            // version 3, one standard opcode, a folder, a file
            let mut header =
                Vec::from([1, 1, 0xfb, 0x0e, 1, b'd', 0, 0, b'f', 0, 1, 0x80, 1, 0, 0]);
            header.extend(behind);
            let mut data = Vec::from([0, 0, 0, 0, 3, 0, header.len() as u8, 0, 0, 0]);
            data.extend(header);
            data.extend([0, 1, 1]);
            data[0] = data.len() as u8 - 4;
            assert_eq!(units(&data).unwrap()[0].names, names);
        }
    }

    /// Operands are no instructions, whatever they look like, and the last sequence has an end.
    #[test]
    fn operands_are_passed_over() {
        // version 3, two standard opcodes of which the second has an operand; a table without files
        let header = [3, 0, 9, 0, 0, 0, 1, 1, 0xfb, 0x0e, 3, 0, 1, 0, 0];
        let unit = |program: &[u8]| {
            let mut data = Vec::from([(header.len() + program.len()) as u8, 0, 0, 0]);
            data.extend(header.iter().chain(program));
            data
        };
        let found = units(&unit(&[2, 0, 0, 1, 1, 2, 0, 0, 1, 1])).unwrap();
        assert_eq!(found[0].sequences, [(19, 24), (24, 29)]);
        assert!(units(&unit(&[0, 1, 1, 1])).is_none());
        assert!(units(&unit(&[])).is_none());
    }
}
