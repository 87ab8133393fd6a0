//! What relocated places mean, in words.

use anyhow::{Context as _, Result};
use archs::relocation_name;
use elf_core::names::STT_SECTION;
use elf_core::{Definition, Kind, Name, Record, Role, SectionHeader, Slot, find};

use super::code::Code;
use crate::explain::name_in;
use crate::printable::Printable;

/// The relocations of one section, by place.
pub(super) struct Targets<'c, 'a> {
    code: &'c Code<'a>,
    records: Vec<Record>,
    kinds: &'static [Kind],
}

impl<'c, 'a> Targets<'c, 'a> {
    /// Those of section `index`; none unless the file is a relocatable object.
    pub(super) fn of(code: &'c Code<'a>, index: u32, kinds: &'static [Kind]) -> Result<Self> {
        let mut records = Vec::new();
        for header in code.relocation_sections(index) {
            records.extend(code.file.relocations(header)?.into_iter().flatten());
        }
        records.sort_by_key(|record| record.offset);
        Ok(Self { code, records, kinds })
    }

    /// The code that they are of.
    pub(super) const fn code(&self) -> &'c Code<'a> {
        self.code
    }

    /// Whether data are big-endian.
    pub(super) fn is_big_endian(&self) -> bool {
        self.code.file.encoding().is_big_endian()
    }

    /// The relocations of the bytes from `start` to `end`.
    pub(super) fn within(&self, start: u64, end: u64) -> &[Record] {
        let from = self.records.partition_point(|record| record.offset < start);
        let to = self.records.partition_point(|record| record.offset < end);
        self.records.get(from..to).unwrap_or_default()
    }

    /// What the operand at the place of `record` means; `section` is its bytes. From `counted_from` the processor counts, if it
    /// is an operand of that sort.
    pub(super) fn operand(
        &self,
        record: &Record,
        section: &[u8],
        counted_from: Option<u64>,
    ) -> Result<Option<String>> {
        let Some(kind) = find(self.kinds, record.r#type) else { return Ok(None) };
        let start = usize::try_from(record.offset).ok();
        let place = start.and_then(|start| section.get(start..)).unwrap_or_default();
        let held = || {
            let field = place.get(..kind.field.bytes())?;
            kind.field.addend_at(field, self.is_big_endian())
        };
        let mut offset = record.addend.or_else(held).unwrap_or(0);
        let formula = match (kind.select, start) {
            (Some(select), Some(start)) => select(section.get(..start).unwrap_or_default()),
            _ => kind.value,
        };
        let distance = formula.minus == Role::Place;
        if let Some(from) = counted_from.filter(|_| distance) {
            offset = offset.wrapping_add_unsigned(from.wrapping_sub(record.offset));
        }
        let suffix = match (formula.of, formula.minus) {
            (Role::Address | Role::Plt, Role::GotBase) => "@gotoff",
            (Role::Address | Role::Plt, _) => "",
            (Role::Got(Slot::Address), _) => "@got",
            (Role::Got(Slot::TpOffset), _) => "@gottpoff",
            (Role::Got(Slot::TlsGd), _) => "@tlsgd",
            (Role::Got(Slot::TlsLd), _) => "@tlsld",
            (Role::Got(Slot::TlsDesc), _) => "@tlsdesc",
            (Role::Size, _) => "@size",
            (Role::TpOffset, _) | (_, Role::TpOffset) => "@tpoff",
            (Role::DtpOffset, _) => "@dtpoff",
            (Role::GotBase, _) => "",
            _ => return Ok(None),
        };
        let name = self.symbol(record.symbol, offset, suffix)?;
        // a distance that the program adds to the place itself
        Ok(Some(if distance && counted_from.is_none() { name + "-." } else { name }))
    }

    /// A relocation that is no operand, as a remark.
    pub(super) fn remark(&self, record: &Record) -> Result<String> {
        let machine = self.code.file.header().machine;
        let name = match relocation_name(machine, record.r#type) {
            Some(name) => String::from(name),
            None => format!("relocation type {}", record.r#type),
        };
        let symbol = self.symbol(record.symbol, record.addend.unwrap_or(0), "")?;
        Ok(if record.symbol == 0 { name } else { format!("{name} {symbol}") })
    }

    /// A symbol and an offset; of a section, what is there.
    fn symbol(&self, index: u32, offset: i64, suffix: &str) -> Result<String> {
        let Some(table) = &self.code.table else { return Ok(String::new()) };
        let context = || format!("symbol {index}");
        let symbol = table.get(index).with_context(context)?;
        let name = name_in(&self.code.file, table, index, &symbol).with_context(context)?;
        let mut place = (name, offset);
        if symbol.r#type() == STT_SECTION
            && let Definition::Section(section) =
                table.section_of(index, &symbol).with_context(context)?
            && let Some((name, offset)) =
                self.code.nearest(section, symbol.value.wrapping_add_signed(offset))
        {
            place = (name, offset.cast_signed());
        }
        Ok(plus(place.0, suffix, place.1))
    }

    /// The place that an instruction of section `index` means by an address.
    pub(super) fn address(
        &self,
        index: u32,
        header: &SectionHeader,
        address: u64,
    ) -> Option<String> {
        let start = self.code.start_of(header);
        let found = if address.wrapping_sub(start) < header.size {
            self.code.nearest(index, address)
        } else if start == 0 {
            None
        } else {
            self.code.at_address(address)
        };
        found.map(|(name, offset)| plus(name, "", offset.cast_signed()))
    }
}

fn plus(name: Name<'_>, suffix: &str, offset: i64) -> String {
    let name = Printable::from(name).readable();
    match offset {
        0 => format!("{name}{suffix}"),
        1.. => format!("{name}{suffix}+{offset:#x}"),
        _ => format!("{name}{suffix}-{:#x}", offset.unsigned_abs()),
    }
}
