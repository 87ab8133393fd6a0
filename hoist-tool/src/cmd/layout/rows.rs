//! A layout by name: parts of segments in their order, and what is in none.

use std::collections::HashSet;

use elf_core::names::{self, SHN_X86_64_LCOMMON};
use elf_core::{Arch, Definition, Role, SectionFlags, SegmentFlags, Slot};
use elf_layout::{Layout, SymbolAddress};
use serde::Serialize;

use crate::explain::section_name;
use crate::objects::Objects;
use crate::printable::Printable;

/// Where everything goes. Offsets count from the start of the image; sizes and alignments are in bytes.
#[derive(Debug, Serialize)]
pub struct Placement<'a> {
    /// The machine of the objects.
    pub machine: String,
    /// Size of the image.
    pub size: u64,
    /// Alignment that its address must have.
    pub alignment: u64,
    /// First address that it may not reach, if its code has no room for all addresses.
    pub limit: Option<u64>,
    /// Its segments.
    pub segments: Vec<SegmentRow<'a>>,
    /// Sections at addresses of their own.
    pub fixed: Vec<Part<'a>>,
    /// The entries of the global offset table.
    pub got: Vec<Entry<'a>>,
    /// The stubs.
    pub stubs: Vec<Entry<'a>>,
    /// Sections that are in none of this.
    pub not_loaded: Vec<NotLoaded<'a>>,
    /// Symbols that no object defines.
    pub undefined: Vec<String>,
}

/// A part of the image with one permission.
#[derive(Debug, Serialize)]
pub struct SegmentRow<'a> {
    /// Where it begins.
    pub offset: u64,
    /// Its size.
    pub size: u64,
    /// `rwx`, with `-` for what is not permitted.
    pub permissions: String,
    /// What is in it, in order.
    pub parts: Vec<Part<'a>>,
}

/// What a part of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A section.
    Section,
    /// A common symbol.
    Common,
    /// The global offset table.
    Got,
    /// All stubs.
    Stubs,
}

/// A part of a segment.
#[derive(Debug, Serialize)]
pub struct Part<'a> {
    /// Where it begins.
    pub offset: u64,
    /// Its size.
    pub size: u64,
    /// Its alignment.
    pub alignment: u64,
    /// Bytes before it that are there for its alignment.
    pub padding: u64,
    /// What it is.
    pub what: What,
    /// Name of the section or symbol.
    pub name: Option<Printable<'a>>,
    /// The object it is from.
    pub object: Option<&'a str>,
    /// Index of the section there.
    pub section: Option<u32>,
    /// `SHF_..`.
    pub flag_names: Vec<&'static str>,
    /// Whether it is the zeros of thread-local storage, which take no room: what follows begins where they do.
    pub takes_no_room: bool,
    /// Whether it is zeros, of which objects have no bytes.
    pub zeros: bool,
}

/// A GOT entry or a stub.
#[derive(Debug, Serialize)]
pub struct Entry<'a> {
    /// Where it is.
    pub offset: u64,
    /// The symbol it is for.
    pub symbol: Printable<'a>,
    /// The object that names the symbol.
    pub object: &'a str,
    /// What it holds.
    pub content: String,
}

/// A section that is not loaded.
#[derive(Debug, Serialize)]
pub struct NotLoaded<'a> {
    /// The object it is from.
    pub object: &'a str,
    /// Its index there.
    pub section: u32,
    /// Its name.
    pub name: Printable<'a>,
    /// Why it is not loaded.
    pub reason: Reason,
}

/// Why a section is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is not needed in memory (no `SHF_ALLOC`).
    NotAllocated,
    /// It says so itself (`SHF_EXCLUDE`).
    Excluded,
    /// It is in a section group of which another object's copy is taken.
    Copy,
    /// It has no bytes.
    Empty,
}

impl<'a> Placement<'a> {
    /// What `layout`, which is one of `objects`, says.
    pub(super) fn of<A: Arch>(
        layout: &Layout<'a, '_, A>,
        objects: &'a Objects<'a>,
        undefined: Vec<String>,
    ) -> Self {
        let name = |object, symbol| objects.symbol_name(object, symbol).unwrap_or_default().into();
        let got = layout.got_entries().map(|entry| Entry {
            offset: entry.offset,
            symbol: name(entry.object, entry.symbol),
            object: objects.label(entry.object),
            content: content(entry.content),
        });
        let stubs = layout.stubs().map(|stub| Entry {
            offset: stub.offset,
            symbol: name(stub.object, stub.symbol),
            object: objects.label(stub.object),
            content: String::from("jump"),
        });
        let mut placement = Self {
            machine: objects.machine().to_string(),
            size: layout.size(),
            alignment: layout.alignment(),
            limit: layout.limit(),
            segments: Vec::new(),
            fixed: Vec::new(),
            got: got.collect(),
            stubs: stubs.collect(),
            not_loaded: Vec::new(),
            undefined,
        };
        let mut parts = additions(layout);
        placement.sections(layout, objects, &mut parts);
        commons(layout, objects, &mut parts);
        placement.segments = segments(layout, parts);
        placement
    }

    /// Every section is a part of a segment, or fixed, or not loaded.
    fn sections<A: Arch>(
        &mut self,
        layout: &Layout<'a, '_, A>,
        objects: &'a Objects<'a>,
        parts: &mut Vec<Part<'a>>,
    ) {
        let fixed: HashSet<_> =
            layout.fixed_sections().map(|fixed| (fixed.object, fixed.section)).collect();
        for (number, file) in objects.files().iter().enumerate() {
            let object = objects.label(number);
            for (section, header) in (0u32..).zip(file.sections()).skip(1) {
                let name = section_name(file, section).unwrap_or_default().into();
                let flags = header.flags;
                let reason = match layout.section(number, section) {
                    Some(offset) if header.size > 0 => {
                        let takes_no_room =
                            flags.contains(SectionFlags::TLS) && header.r#type == names::SHT_NOBITS;
                        let part = Part {
                            offset,
                            size: layout.section_size(number, section).unwrap_or(header.size),
                            alignment: header.alignment.max(1),
                            padding: 0,
                            what: What::Section,
                            name: Some(name),
                            object: Some(object),
                            section: Some(section),
                            flag_names: names::section_flags(file.header().machine)
                                .names(flags.bits())
                                .collect(),
                            takes_no_room,
                            zeros: header.r#type == names::SHT_NOBITS,
                        };
                        if fixed.contains(&(number, section)) {
                            self.fixed.push(part)
                        } else {
                            parts.push(part)
                        }
                        continue;
                    }
                    Some(_) => Reason::Empty,
                    None if flags.contains(SectionFlags::EXCLUDE) => Reason::Excluded,
                    None if flags.contains(SectionFlags::ALLOC) => Reason::Copy,
                    None => Reason::NotAllocated,
                };
                self.not_loaded.push(NotLoaded { object, section, name, reason });
            }
        }
    }
}

/// What the layout adds: the GOT and the stubs.
fn additions<'a, A: Arch>(layout: &Layout<'a, '_, A>) -> Vec<Part<'a>> {
    let part = |what, offset, size, alignment| Part {
        offset,
        size,
        alignment,
        padding: 0,
        what,
        name: None,
        object: None,
        section: None,
        flag_names: Vec::new(),
        takes_no_room: false,
        zeros: false,
    };
    let (offset, size) = layout.got();
    let mut parts = Vec::new();
    if size > 0 {
        parts.push(part(What::Got, offset, size, A::ADDRESS_SIZE));
    }
    let alignment = A::STUBS.iter().map(|stub| stub.alignment).max().unwrap_or(1);
    let mut stubs: Vec<_> = layout.stubs().map(|stub| (stub.offset, stub.size)).collect();
    stubs.sort_unstable();
    // each run of stubs, of which there are several if there is much code
    for run in stubs.chunk_by(|one, next| one.0.saturating_add(one.1) == next.0) {
        let size = run.iter().map(|(_, size)| size).sum();
        let offset = run.first().map_or(0, |(offset, _)| *offset);
        parts.push(part(What::Stubs, offset, size, alignment));
    }
    parts
}

/// Common symbols where they are defined.
fn commons<'a, A: Arch>(
    layout: &Layout<'a, '_, A>,
    objects: &'a Objects<'a>,
    parts: &mut Vec<Part<'a>>,
) {
    for number in 0..objects.files().len() {
        let Some(table) = objects.symbols(number) else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols()) {
            let definition = table.section_of(index, &symbol);
            let is_common = matches!(
                definition,
                Ok(Definition::Common | Definition::Reserved(SHN_X86_64_LCOMMON))
            );
            if !is_common || layout.definition(number, index) != Some((number, index)) {
                continue;
            }
            let Some(SymbolAddress::Image(offset)) = layout.symbol(number, index) else { continue };
            parts.push(Part {
                offset,
                size: symbol.size,
                alignment: symbol.value.max(1),
                padding: 0,
                what: What::Common,
                name: table.name_of(&symbol).ok().map(Printable::from),
                object: Some(objects.label(number)),
                section: None,
                flag_names: Vec::new(),
                takes_no_room: false,
                zeros: true,
            });
        }
    }
}

/// The parts in the order of their offsets, by segment, with what is between them.
fn segments<'a, A: Arch>(
    layout: &Layout<'a, '_, A>,
    mut parts: Vec<Part<'a>>,
) -> Vec<SegmentRow<'a>> {
    parts.sort_by_key(|part| part.offset);
    let mut parts = parts.into_iter().peekable();
    let mut segments = layout.segments().peekable();
    let mut rows = Vec::new();
    while let Some(segment) = segments.next() {
        let next = segments.peek().map_or(u64::MAX, |next| next.offset);
        let mut row = SegmentRow {
            offset: segment.offset,
            size: segment.size,
            permissions: permissions(segment.flags),
            parts: Vec::new(),
        };
        let mut end = segment.offset;
        while let Some(mut part) = parts.next_if(|part| part.offset < next) {
            part.padding = part.offset.saturating_sub(end);
            if !part.takes_no_room {
                end = end.max(part.offset.saturating_add(part.size));
            }
            row.parts.push(part);
        }
        rows.push(row);
    }
    rows
}

/// `rwx`, with `-` for what is not permitted.
fn permissions(flags: SegmentFlags) -> String {
    let letters =
        [(SegmentFlags::READ, 'r'), (SegmentFlags::WRITE, 'w'), (SegmentFlags::EXECUTE, 'x')];
    letters.map(|(flag, letter)| if flags.contains(flag) { letter } else { '-' }).iter().collect()
}

/// What a GOT entry holds, in words.
fn content(slot: Slot) -> String {
    match slot {
        Slot::Address => String::from("address"),
        slot => Role::Got(slot)
            .to_string()
            .replace("GOT entry of the ", "")
            .replace("GOT entries of ", ""),
    }
}
