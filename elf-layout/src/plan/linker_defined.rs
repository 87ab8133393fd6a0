//! Symbols that linkers define where nobody else does, and which are no section's: where code, data and the image end. Which sections
//! of one name start and end where is said in `runs`.

use crate::error::{Error, ErrorKind};
use crate::model::features::LINKER_DEFINED;
use crate::model::options::{ImageMode, Options};
use crate::model::scan_result::{ScanResult, header_size};
use crate::model::spans::{Group, Spans};
use crate::model::storage::{Needs, SymbolSlot, SymbolState};
use crate::plan::runs::key;
use elf_core::Name;
use elf_core::names::{EM_ARM, EM_RISCV};

/// A place of the image that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Edge {
    /// Where the image starts; also what is empty starts and ends there.
    Start,
    /// An ELF header.
    Header,
    /// Where code ends.
    CodeEnd,
    /// Where initialized data end.
    DataEnd,
    /// Where zeros start.
    ZeroStart,
    /// Where the image ends.
    End,
    /// What code of RISC-V counts from: 0x800 bytes behind the start of the data, so that offsets with a sign reach 4 KiB of them.
    GlobalPointer,
}

/// Names of edges, those of arrays without any section among them. The C library calls its own relocations of indirect functions by
/// way of `__rela_iplt_start`; a layout has none, because its caller resolves them.
const NAMES: &[(&str, Edge)] = &[
    ("_end", Edge::End),
    ("end", Edge::End),
    ("_etext", Edge::CodeEnd),
    ("etext", Edge::CodeEnd),
    ("__etext", Edge::CodeEnd),
    ("_edata", Edge::DataEnd),
    ("edata", Edge::DataEnd),
    ("__bss_start", Edge::ZeroStart),
    ("__executable_start", Edge::Start),
    ("__ehdr_start", Edge::Header),
    ("__rela_iplt_start", Edge::Start),
    ("__rela_iplt_end", Edge::Start),
    ("__rel_iplt_start", Edge::Start),
    ("__rel_iplt_end", Edge::Start),
    ("__global_pointer$", Edge::GlobalPointer),
];

/// Whether a layout defines this name itself if neither an object nor the caller does: `_end`, `_etext`, `_edata`, each with and
/// without the underscore, `__bss_start`, `__executable_start`, `__ehdr_start`, `__rela_iplt_start` and `__rela_iplt_end`, and
/// where arrays of functions start and end (`__init_array_start`). Each image has its own: a caller that looks names up in
/// libraries must not answer with theirs. RISC-V's `__global_pointer$` is one of them in an [executable](crate::Options::executable) alone: code
/// that is loaded into a process shares the register with it.
///
/// `__start_NAME` and `__stop_NAME` depend on the objects: where one of them has a section of that name which is loaded, the caller
/// is not asked.
#[must_use]
pub fn is_linker_defined(name: Name<'_>) -> bool {
    LINKER_DEFINED && (edge(name).is_some() || key::is_of_array(name))
}

fn edge(name: Name<'_>) -> Option<Edge> {
    NAMES.iter().find(|(own, _)| name == *own).map(|(_, edge)| *edge)
}

/// Defines a symbol of which neither an object nor the caller knows anything: whether it has this meaning.
pub(crate) fn define(
    name: Name<'_>,
    slot: &mut SymbolSlot,
    (spans, found): (&mut Spans, &mut ScanResult),
    options: &Options,
    (machine, address_size): (u16, u64),
) -> Result<bool, Error> {
    if !LINKER_DEFINED {
        return Ok(false);
    }
    let Some(edge) = edge(name).or_else(|| {
        let is_empty = key::is_of_array(name) && (machine == EM_ARM || !key::is_of_arm(name));
        is_empty.then_some(Edge::Start)
    }) else {
        return Ok(false);
    };
    if edge == Edge::GlobalPointer && !(machine == EM_RISCV && options.executable) {
        return Ok(false);
    }
    slot.state = SymbolState::Defined;
    if edge == Edge::Header {
        let header = match found.header {
            Some(header) => header,
            None => {
                let group = match options.mode {
                    ImageMode::Segments { .. } => Group::ReadOnly,
                    ImageMode::Packed { .. } => Group::Packed,
                };
                let offset = spans.append(group, header_size(address_size), 8);
                (group, offset.ok_or_else(|| Error::object(0, ErrorKind::TooLarge))?)
            }
        };
        found.header = Some(header);
        (slot.group, slot.value) = header;
        return Ok(true);
    }
    (slot.group, slot.value) = (Group::Fixed, edge as u64);
    slot.needs = slot.needs.with(Needs::EDGE);
    found.edges = true;
    Ok(true)
}

/// Bytes from the start of the data to where code of RISC-V counts from.
const GP_OFFSET: u64 = 0x800;

/// Gives edges their place, now that all else has one.
pub(crate) fn place(symbols: &mut [SymbolSlot], spans: &Spans, found: &ScanResult) {
    if !LINKER_DEFINED || !found.edges {
        return;
    }
    let (_, slots) = found.special.within(symbols, 0, usize::MAX);
    for slot in slots {
        if slot.needs.has(Needs::EDGE) && slot.group == Group::Fixed {
            slot.value = offset(slot.value, spans);
        }
    }
}

/// Bytes from the start of the image to an edge. What is empty has no place of its own: it ends where what is before it does.
fn offset(edge: u64, spans: &Spans) -> u64 {
    let end = |group| spans.group(group).offset.saturating_add(spans.group(group).size);
    let last = |groups: &[Group]| groups.iter().fold(0, |last, group| end(*group).max(last));
    let is = |other: Edge| edge == other as u64;
    let (data, zeros) = (spans.group(Group::Data), spans.group(Group::Zero));
    if is(Edge::Start) {
        0
    } else if is(Edge::GlobalPointer) {
        data.offset.saturating_add(GP_OFFSET)
    } else if is(Edge::End) || spans.group(Group::Packed).size > 0 {
        spans.size
    } else if is(Edge::CodeEnd) {
        last(&[Group::Text, Group::Stubs])
    } else if is(Edge::ZeroStart) && zeros.size > 0 {
        zeros.offset
    } else {
        use Group::{Copies, Data, Got, ReadOnly, Stubs, Text, TlsData};
        last(&[Text, Stubs, ReadOnly, Copies, Got, TlsData, Data])
    }
}
