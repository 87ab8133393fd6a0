//! The listing: addresses, bytes and text, whatever the machine.

use std::io::Write;

use anyhow::Result;
use elf_core::{Kind, Mapping, SectionHeader};

use super::code::{Code, Function};
use super::targets::Targets;
use crate::paint;
use crate::printable::Printable;

/// Bytes of an instruction in a line.
const BYTES: usize = 8;

/// The code of one section.
pub(super) struct Section<'c, 'a> {
    pub(super) targets: Targets<'c, 'a>,
    pub(super) bytes: &'a [u8],
    /// Address of the first byte.
    start: u64,
    index: u32,
    header: SectionHeader,
}

/// An instruction.
pub(super) struct Decoded {
    /// Its size in bytes, at least 1.
    pub(super) size: usize,
    /// The instruction, with names for what it means.
    pub(super) text: String,
    /// What else is to say.
    pub(super) remarks: Vec<String>,
}

impl Decoded {
    /// An instruction that ends with what it is in.
    pub(super) fn cut_off(bytes: &[u8]) -> Self {
        Self { size: bytes.len(), text: String::from("(cut off)"), remarks: Vec::new() }
    }
}

/// A machine's instructions.
pub(super) trait Decode {
    /// The instruction `at` bytes from the start of the section; code ends at `end`, behind it.
    fn decode(&mut self, section: &Section<'_, '_>, at: usize, end: usize) -> Result<Decoded>;
}

impl<'c, 'a> Section<'c, 'a> {
    /// The code of section `index`.
    pub(super) fn of(
        code: &'c Code<'a>,
        index: u32,
        header: &SectionHeader,
        kinds: &'static [Kind],
    ) -> Result<Self> {
        Ok(Self {
            targets: Targets::of(code, index, kinds)?,
            bytes: code.file.section_data(header)?,
            start: code.start_of(header),
            index,
            header: *header,
        })
    }

    /// The address `at` bytes from the start of the section.
    pub(super) const fn address(&self, at: usize) -> u64 {
        self.start.wrapping_add(at as u64)
    }

    /// What is `at` bytes from the start of the section, if anything is said of it.
    pub(super) fn mapping(&self, at: usize) -> Option<Mapping> {
        self.targets.code().mapping(self.index, self.address(at)).0
    }

    /// What is at an address that code of this section means.
    pub(super) fn name_of(&self, address: u64) -> Option<String> {
        self.targets.address(self.index, &self.header, address)
    }

    /// An instruction of `size` bytes, nothing of whose text is a name: what refers to it is said behind it.
    pub(super) fn as_text(&self, text: String, at: usize, size: usize) -> Result<Decoded> {
        let mut remarks = Vec::new();
        for record in self.targets.within(at as u64, (at + size) as u64) {
            remarks.push(self.targets.remark(record)?);
        }
        Ok(Decoded { size, text, remarks })
    }

    /// Data among code: a word, or a byte where there is no whole one.
    fn data(&self, at: usize, end: usize) -> Result<Decoded> {
        let bytes = self.bytes.get(at..end).unwrap_or_default();
        let word = bytes.first_chunk::<4>().filter(|_| self.address(at) & 3 == 0);
        let (size, mut text) = match (word, bytes.first()) {
            (Some(word), _) if self.targets.is_big_endian() => {
                (4, format!(".word {:#010x}", u32::from_be_bytes(*word)))
            }
            (Some(word), _) => (4, format!(".word {:#010x}", u32::from_le_bytes(*word))),
            (None, Some(byte)) => (1, format!(".byte {byte:#04x}")),
            (None, None) => return Ok(Decoded::cut_off(bytes)),
        };
        let mut remarks = Vec::new();
        for record in self.targets.within(at as u64, (at + size) as u64) {
            match self.targets.operand(record, self.bytes, None)? {
                Some(name) if size == 4 && remarks.is_empty() => text = format!(".word {name}"),
                _ => remarks.push(self.targets.remark(record)?),
            }
        }
        Ok(Decoded { size, text, remarks })
    }

    /// Prints the instructions of a function.
    pub(super) fn function(
        &self,
        function: &Function<'_>,
        machine: &mut dyn Decode,
        out: &mut dyn Write,
    ) -> Result<()> {
        if !function.name.is_empty() {
            let name = Printable::from(function.name).readable();
            writeln!(out)?;
            paint::title(out, format_args!("{name}:"))?;
        }
        let offset =
            |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let (mut at, end) = (offset(function.start), offset(function.end));
        while at < end {
            let (mapping, until) = self.targets.code().mapping(self.index, self.address(at));
            let until = offset(until.wrapping_sub(self.start)).min(end);
            let mut decoded = match mapping {
                Some(Mapping::Data) => self.data(at, until)?,
                _ => machine.decode(self, at, until)?,
            };
            if !decoded.remarks.is_empty() {
                decoded.text += "  ; ";
                decoded.text += &decoded.remarks.join("; ");
            }
            let next = at.saturating_add(decoded.size.max(1)).min(end);
            let encoded = self.bytes.get(at..next).unwrap_or_default();
            print(self.address(at), encoded, Printable::from(&*decoded.text), out)?;
            at = next;
        }
        Ok(())
    }
}

/// An instruction: its address, its bytes and, in the first line, its text.
fn print(address: u64, encoded: &[u8], text: Printable<'_>, out: &mut dyn Write) -> Result<()> {
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
