//! BE8: instructions are little-endian beside data that are big-endian (AAELF32, "BE8"). Objects have both big-endian; who links them
//! turns the code around, once it is relocated, where mapping symbols say that there is code.

use crate::emit::part::{ImagePart, part};
use crate::emit::resolve::Symbols;
use crate::error::{Error, ErrorKind};
use crate::model::layout::Layout;
use crate::model::scan_result::header_size;
use crate::model::storage::{Needs, ObjectSlot};
use crate::model::{stubs, tls};
use elf_core::names::EF_ARM_BE8;
use elf_core::{Arch, Definition, Mapping, Symbol};

/// What follows an offset of a section, as far as it is known: lent to [`Layout::write_be8`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeMark {
    offset: u64,
    /// Size in bytes of the units that are turned around: 0 of data.
    unit: u8,
}

impl<A: Arch> Layout<'_, '_, A> {
    /// As [`write`](Self::write), with little-endian instructions beside big-endian data (BE8), as Arm processors since Armv7 want them
    /// and those since Armv6 can have them: what linkers do with `--be8`. `marks` are one for each section of the object that has most of
    /// them; what they hold before does not matter.
    ///
    /// Code is where mapping symbols say so (`$a`, `$t`, `$d`): what is before the first one of a section stays as it is.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`ErrorKind::CodeOrder`] if the objects are no big-endian ones of such a machine,
    /// [`ErrorKind::Storage`] if there are too few marks, both before anything is written; [`ErrorKind::Elf`] if the mapping symbols of a
    /// section do not stand in the order of their offsets.
    pub fn write_be8(
        &self,
        image: &mut [u8],
        base: u64,
        marks: &mut [CodeMark],
    ) -> Result<(), Error> {
        if !A::HAS_STATES || !self.is_big_endian() {
            return Err(Error::object(0, ErrorKind::CodeOrder));
        }
        let most = |most: usize, object: &ObjectSlot<'_>| most.max(object.section_count as usize);
        let needed = self.objects.iter().fold(0, most);
        if marks.len() < needed {
            return Err(Error::object(0, ErrorKind::Storage { what: "marks", needed }));
        }
        let image = self.check(image, base)?;
        image.fill(0);
        self.write_part_of(&mut ImagePart::whole(image, base))?;
        self.mark_header(image);
        for (number, object) in (0..usize::MAX).zip(self.objects) {
            let marks = marks.get_mut(..object.section_count as usize).unwrap_or_default();
            self.turn_code(number, object, image, marks)?;
        }
        self.turn_stubs(image);
        Ok(())
    }

    /// Says in the header that `__ehdr_start` means what the code is like.
    fn mark_header(&self, image: &mut [u8]) {
        let Some((group, offset)) = self.found.header else { return };
        let offset = self.spans.group(group).offset.wrapping_add(offset);
        let header = part(image, offset, header_size(A::ADDRESS_SIZE)).unwrap_or_default();
        // e_flags are followed by six numbers of two bytes
        let flags = header.len().wrapping_sub(16);
        let flags = header.get_mut(flags..).and_then(<[u8]>::first_chunk_mut);
        if let Some(flags) = flags {
            *flags = (u32::from_be_bytes(*flags) | EF_ARM_BE8).to_be_bytes();
        }
    }

    /// Turns the code of an object around, from mapping symbol to mapping symbol.
    fn turn_code(
        &self,
        number: usize,
        object: &ObjectSlot<'_>,
        image: &mut [u8],
        marks: &mut [CodeMark],
    ) -> Result<(), Error> {
        marks.fill(CodeMark::default());
        let Some(table) = object.symbols else { return Ok(()) };
        for (index, symbol) in (0..u32::MAX).zip(table.symbols()) {
            let name = |symbol: &Symbol| table.name_of(symbol).ok();
            let meant = name(&symbol).and_then(|name| Mapping::of(A::MACHINE, &symbol, name));
            let Some(mapping) = meant else { continue };
            let Ok(Definition::Section(section)) = table.section_of(index, &symbol) else {
                continue;
            };
            let Some(mark) = marks.get_mut(section as usize) else { continue };
            let next = CodeMark {
                offset: symbol.value,
                unit: match mapping {
                    Mapping::Arm => 4,
                    Mapping::Thumb => 2,
                    _ => 0,
                },
            };
            if next.offset < mark.offset {
                let what = "order of mapping symbols";
                let kind = elf_core::ErrorKind::Invalid { what, value: next.offset };
                let at = self.files.get(number).and_then(|file| file.section(section).ok());
                let at = at.map_or(0, |header| header.offset);
                return Err(Error::elf(number, section)(elf_core::Error { at, kind }));
            }
            self.turn(number, section, core::mem::replace(mark, next), next.offset, image);
        }
        for (section, mark) in (0..u32::MAX).zip(marks) {
            self.turn(number, section, *mark, u64::MAX, image);
        }
        Ok(())
    }

    /// Turns what is from a mark to `end`, or to the end of the section, around.
    fn turn(&self, object: usize, section: u32, mark: CodeMark, end: u64, image: &mut [u8]) {
        if mark.unit == 0 {
            return;
        }
        let size = self.section_size(object, section).unwrap_or(0).min(end);
        let start = self.section(object, section).and_then(|at| at.checked_add(mark.offset));
        if let Some((start, size)) = start.zip(size.checked_sub(mark.offset)) {
            turn(part(image, start, size).unwrap_or_default(), mark.unit.into());
        }
    }

    /// Turns the instructions of stubs around, which end where the first word for a relocation is.
    fn turn_stubs(&self, image: &mut [u8]) {
        let symbols = Symbols::new(self, 0, 0..self.symbols.len(), 0);
        if let Some(call) = tls::call::<A>(&self.found) {
            for first in symbols.runs(0) {
                turn(part(image, first, call.size()).unwrap_or_default(), call.unit);
            }
        }
        for (_, slot) in self.special_definitions().filter(|(_, it)| it.needs.has(Needs::ANY_STUB))
        {
            for first in symbols.stub_runs(slot) {
                for (offset, stub) in stubs::of::<A>(slot.needs) {
                    let size = stub.relocations.first().map_or(stub.size(), |it| it.offset);
                    let code = part(image, first.wrapping_add(offset), size);
                    turn(code.unwrap_or_default(), stub.unit);
                }
            }
        }
    }
}

/// Turns units of so many bytes around; what is left at the end is none.
fn turn(code: &mut [u8], unit: usize) {
    if unit > 0 {
        code.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
}
