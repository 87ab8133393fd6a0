//! The linked file as bytes.

use super::info::{Numbers, number};
use super::order::OutSymbol;
use super::out::{Class, Info, Link, Meaning, OutId, OutRecord, Outs, align};
use super::strings::Strings;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use elf_core::names::{ELFOSABI_CUDA_V2, EM_CUDA, ET_EXEC, ET_REL, PT_LOAD, PT_PHDR, SHT_NOBITS};

const HEADER: u64 = 64;
const SECTION_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;

/// Numbers of sections in the file, which begin behind the null section.
pub(super) struct Sections {
    pub(super) order: Vec<OutId>,
    numbers: BTreeMap<OutId, u32>,
}

impl Sections {
    /// By class; banks and memory without contents as they are first `needed`, the others as they were made.
    pub(super) fn of(outs: &Outs, needed: &[OutId]) -> Self {
        let place = |id| needed.iter().position(|&one| one == id);
        let mut order: Vec<_> = outs
            .iter()
            .map(|(id, out)| {
                let by_symbol = matches!(out.class, Class::Banks | Class::NoBits);
                (out.class, by_symbol.then(|| place(id)).flatten(), id)
            })
            .collect();
        order.sort();
        let order: Vec<_> = order.into_iter().map(|(_, _, id)| id).collect();
        let numbers = order.iter().copied().zip(1..).collect();
        Self { order, numbers }
    }

    pub(super) fn number(&self, id: OutId) -> u32 {
        self.numbers.get(&id).copied().unwrap_or(0)
    }

    fn of_class(&self, outs: &Outs, class: Class) -> u32 {
        let found = self.order.iter().find(|&&id| outs[id].class == class);
        found.map_or(0, |&id| self.number(id))
    }
}

/// The symbol table's bytes.
pub(super) fn symbol_table(
    symbols: &[OutSymbol],
    sections: &Sections,
    names: &mut Strings,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for symbol in symbols {
        let number = |id| sections.number(id) as u16;
        let section = symbol.section.map_or(symbol.number, number);
        bytes.extend_from_slice(&names.add(&symbol.name).to_le_bytes());
        bytes.extend_from_slice(&[symbol.info, symbol.other]);
        bytes.extend_from_slice(&section.to_le_bytes());
        bytes.extend_from_slice(&symbol.value.to_le_bytes());
        bytes.extend_from_slice(&symbol.size.to_le_bytes());
    }
    bytes
}

/// The bytes of records.
pub(super) fn records(list: &[OutRecord], numbers: &Numbers) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in list {
        let symbol = u64::from(number(numbers, record.symbol));
        bytes.extend_from_slice(&record.offset.to_le_bytes());
        bytes.extend_from_slice(&(symbol << 32 | u64::from(record.r#type)).to_le_bytes());
        if let Some(addend) = record.addend {
            bytes.extend_from_slice(&addend.to_le_bytes());
        }
    }
    bytes
}

/// A part of the file that is loaded.
struct Segment {
    r#type: u32,
    flags: u32,
    start: u64,
    file: u64,
    memory: u64,
}

/// What kind of file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// One that is linked later.
    Relocatable,
    /// One that can be loaded, for this architecture.
    Linked(u32),
}

/// Puts everything together: `flags` are those of the header, less the number of the note.
pub(super) fn file(
    outs: &Outs,
    sections: &Sections,
    numbers: &Numbers,
    (flags, [all, locals], stage): (u32, [u32; 2], Stage),
) -> Vec<u8> {
    let mut names = Strings::new();
    let mut bytes = alloc::vec![0; HEADER as usize];
    let mut headers = alloc::vec![0; SECTION_HEADER as usize];
    let mut offsets = BTreeMap::new();
    // names are in the first section, and all have to be known before
    let name_offsets: Vec<_> = sections.order.iter().map(|&id| names.add(&outs[id].name)).collect();
    let mut table = Some(names.into_bytes());
    for (&id, name) in sections.order.iter().zip(name_offsets) {
        let out = &outs[id];
        let shared = out.shares.and_then(|id| offsets.get(&id).zip(Some(&outs[id])));
        let offset = shared.map_or_else(|| align(bytes.len() as u64, out.alignment), |(at, _)| *at);
        if shared.is_none() {
            bytes.resize(usize::try_from(offset).unwrap_or(usize::MAX), 0);
        }
        let names = if out.class == Class::SectionNames { table.take() } else { None };
        let data = names.as_deref().unwrap_or(&out.data);
        bytes.extend_from_slice(data);
        let size = shared.map_or(out.memory, |(_, own)| own.size()).max(data.len() as u64);
        offsets.insert(id, offset);
        let link = match out.link {
            Link::None => 0,
            Link::Strings => sections.of_class(outs, Class::Strings),
            Link::Symbols => sections.of_class(outs, Class::Symbols),
            Link::ToolNote => sections.of_class(outs, Class::ToolNote),
            Link::MercurySymbols => sections.of_class(outs, Class::MercurySymbols),
        };
        let info = match out.info {
            Info::None => 0,
            Info::Section(id) => sections.number(id),
            Info::Symbol(id, high) => number(numbers, Meaning::Entity(id)) | high,
            Info::Symbols => all,
            Info::Locals => locals,
            Info::Compat => sections.of_class(outs, Class::Compat),
        };
        let words = [out.flags, 0, offset, size];
        headers.extend_from_slice(&name.to_le_bytes());
        headers.extend_from_slice(&out.r#type.to_le_bytes());
        headers.extend(words.into_iter().flat_map(u64::to_le_bytes));
        headers.extend_from_slice(&link.to_le_bytes());
        headers.extend_from_slice(&info.to_le_bytes());
        headers.extend([out.alignment, out.entry_size].into_iter().flat_map(u64::to_le_bytes));
    }
    let at = align(bytes.len() as u64, 8);
    bytes.resize(usize::try_from(at).unwrap_or(usize::MAX), 0);
    bytes.append(&mut headers);
    let end = bytes.len() as u64;
    let (r#type, segments) = match stage {
        Stage::Relocatable => (ET_REL, Vec::new()),
        Stage::Linked(sm) => (ET_EXEC, segments(outs, sections, &offsets, (end, sm))),
    };
    let program_headers = if segments.is_empty() { 0 } else { end };
    for segment in &segments {
        bytes.extend_from_slice(&segment.r#type.to_le_bytes());
        bytes.extend_from_slice(&segment.flags.to_le_bytes());
        let words = [segment.start, 0, 0, segment.file, segment.memory, 8];
        bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
    }
    let note = sections.of_class(outs, Class::CudaNote).min(0xff);
    let count = u16::try_from(sections.order.len().saturating_add(1)).unwrap_or(u16::MAX);
    let counts = [segments.len() as u16, count];
    let header = header(r#type, [program_headers, at], flags | note << 24, counts);
    if let Some(place) = bytes.first_chunk_mut() {
        *place = header;
    }
    bytes
}

/// What is loaded: banks and code, variables if there are any, and the headers of this themselves; from `sm_100` on by permission.
fn segments(
    outs: &Outs,
    sections: &Sections,
    offsets: &BTreeMap<OutId, u64>,
    (at, sm): (u64, u32),
) -> Vec<Segment> {
    const X: u32 = 1;
    const W: u32 = 2;
    const R: u32 = 4;
    let span = |r#type, flags, classes: &[Class]| {
        let ours = sections.order.iter().filter(|&&id| classes.contains(&outs[id].class));
        let ours: Vec<_> = ours.filter_map(|id| Some((*offsets.get(id)?, &outs[*id]))).collect();
        let start = ours.first().map_or(at, |one| one.0);
        let in_file = ours.iter().filter(|(_, out)| out.r#type != SHT_NOBITS);
        let end = in_file.map(|(offset, out)| offset.saturating_add(out.size())).max();
        let file = end.map_or(0, |end| end.saturating_sub(start));
        let zeros = ours.iter().filter(|(_, out)| out.r#type == SHT_NOBITS);
        let memory =
            zeros.fold(file, |end, (_, out)| align(end, out.alignment).saturating_add(out.size()));
        Segment { r#type, flags, start, file, memory }
    };
    let itself = |r#type, flags, count: u64| {
        let size = count.saturating_mul(PROGRAM_HEADER);
        Segment { r#type, flags, start: at, file: size, memory: size }
    };
    const DATA: &[Class] = &[Class::Initialized, Class::NoBits];
    let has =
        |classes: &[Class]| sections.order.iter().any(|&id| classes.contains(&outs[id].class));
    let (has_data, has_banks) = (has(DATA), has(&[Class::Banks]));
    let data = has_data.then(|| span(PT_LOAD, R | W, DATA));
    let count = u64::from(has_data).saturating_add(3);
    if sm < 100 {
        let mut all = Vec::from([itself(PT_PHDR, R | X, count)]);
        all.push(span(PT_LOAD, R | X, &[Class::Banks, Class::Text]));
        all.extend(data);
        all.push(itself(PT_LOAD, R | X, count));
        return all;
    }
    let count = count.saturating_add(1).saturating_add(has_banks.into());
    let mut all = Vec::from([itself(PT_PHDR, R, count), itself(PT_LOAD, R, count)]);
    if has_banks {
        all.push(span(PT_LOAD, R, &[Class::Banks]));
    }
    all.push(span(PT_LOAD, R | X, &[Class::Text]));
    all.extend(data);
    all.push(span(PT_LOAD, R, &[Class::LateBanks]));
    all
}

fn header(
    r#type: u16,
    [program_headers, section_headers]: [u64; 2],
    flags: u32,
    [segments, sections]: [u16; 2],
) -> [u8; 64] {
    let mut bytes = Vec::from(*b"\x7fELF\x02\x01\x01");
    bytes.extend_from_slice(&[ELFOSABI_CUDA_V2, 8, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([r#type, EM_CUDA].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.extend([0, program_headers, section_headers].into_iter().flat_map(u64::to_le_bytes));
    bytes.extend_from_slice(&flags.to_le_bytes());
    let sizes =
        [HEADER as u16, PROGRAM_HEADER as u16, segments, SECTION_HEADER as u16, sections, 1];
    bytes.extend(sizes.into_iter().flat_map(u16::to_le_bytes));
    bytes.first_chunk().copied().unwrap_or([0; 64])
}
