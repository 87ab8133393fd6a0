//! What an image at an address has: where its code is, its symbols, constants of the process.

use crate::Host;
use crate::external::External;
use crate::symbols::LoadSymbols;
use core::cell::OnceCell;
use core::ops::Range;
use elf_core::{Arch as _, Definition, File, SectionHeader, SegmentFlags};
use elf_layout::{Layout, Segment, SymbolAddress};
use std::collections::HashSet;

/// A section of an object that is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Its index.
    pub(crate) section: u32,
    pub(crate) address: u64,
    /// Size in bytes, without what has gone from its code.
    pub(crate) size: u64,
}

/// The sections that are in memory, object by object, for an image at `base`.
pub(crate) fn sections(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Box<[Placed]>> {
    let of = |(object, file): (usize, &File<'_>)| {
        let sections = 0..u32::try_from(file.sections().len()).unwrap_or(u32::MAX);
        let placed = sections.filter_map(|section| {
            let address = base.wrapping_add(layout.section(object, section)?);
            Some(Placed { section, address, size: layout.section_size(object, section)? })
        });
        placed.collect()
    };
    layout.files().iter().enumerate().map(of).collect()
}

/// Addresses and sizes of the symbols of each object whose code has become shorter, for an image at `base`; none of the other objects, in which
/// symbols are where their sections are, as far from the start as in the file.
pub(crate) fn moved(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Box<[(u64, u64)]>> {
    if !elf_core::shrinks(Host::KINDS) {
        return Vec::new();
    }
    let of = |(object, file): (usize, &File<'_>)| {
        let is_shorter = |(section, header): (u32, SectionHeader)| {
            layout.section_size(object, section).is_some_and(|size| size < header.size)
        };
        let table = file.symbol_table().ok().flatten();
        let table = table.filter(|_| (0u32..).zip(file.sections().iter()).any(is_shorter));
        let symbols = table.iter().flat_map(|table| {
            (0u32..).zip(table.symbols().iter()).map(move |(index, symbol)| {
                let place = match table.section_of(index, &symbol) {
                    Ok(Definition::Section(section)) => layout.place(object, section, symbol.value),
                    _ => None,
                };
                let address = place.map_or(0, |place| base.wrapping_add(place));
                (address, layout.symbol_size(object, index).unwrap_or(symbol.size))
            })
        });
        symbols.collect()
    };
    layout.files().iter().enumerate().map(of).collect()
}

/// Where symbols are that the objects do not define.
pub(crate) struct Externals<'l> {
    layout: &'l Layout<'l, 'l, Host>,
    answers: OnceCell<HashSet<u64>>,
    all: OnceCell<HashSet<u64>>,
}

impl<'l> Externals<'l> {
    /// Those of a layout, which are looked for when somebody asks.
    pub(crate) const fn new(layout: &'l Layout<'l, 'l, Host>) -> Self {
        Self { layout, answers: OnceCell::new(), all: OnceCell::new() }
    }

    /// Whether one is at this address.
    pub(crate) fn contains(&self, address: u64) -> bool {
        // symbols at fixed addresses are the rarer ones, and found where they are not defined
        let answers = || self.layout.answers().collect();
        let all = || undefined(self.layout).collect();
        self.answers.get_or_init(answers).contains(&address)
            || self.all.get_or_init(all).contains(&address)
    }
}

/// The addresses of symbols that an object does not define, as far as they do not move with the image.
fn undefined<'l>(layout: &'l Layout<'l, 'l, Host>) -> impl Iterator<Item = u64> + 'l {
    let of = move |(object, file): (usize, &File<'_>)| -> Vec<u64> {
        let Ok(Some(table)) = file.symbol_table() else { return Vec::new() };
        let symbols = (0u32..).zip(table.symbols()).skip(table.first_global());
        let undefined = symbols.filter(|(_, symbol)| symbol.is_undefined());
        let addresses = undefined.filter_map(|(index, _)| match layout.symbol(object, index) {
            Some(SymbolAddress::Absolute(address)) => Some(address),
            _ => None,
        });
        addresses.collect()
    };
    layout.files().iter().enumerate().flat_map(of)
}

/// The segments of an image at `base`.
pub(crate) fn segments(
    layout: &Layout<'_, '_, Host>,
    base: u64,
) -> Box<[(Range<u64>, SegmentFlags)]> {
    let range = |segment: Segment| {
        let start = base.wrapping_add(segment.offset);
        (start..start.wrapping_add(segment.size), segment.flags)
    };
    layout.segments().map(range).collect()
}

/// Where the code of an image at `base` is.
pub(crate) fn code(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Range<u64>> {
    let segments = layout.segments();
    let code = segments.filter(|segment| segment.flags.contains(SegmentFlags::EXECUTE));
    let range = |segment: Segment| {
        let start = base.wrapping_add(segment.offset);
        start..start.wrapping_add(segment.size)
    };
    code.map(range).collect()
}

/// Fills the room that the layout has for constants of the process.
pub(crate) fn copy_constants(
    layout: &Layout<'_, '_, Host>,
    image: &mut [u8],
    links: &mut LoadSymbols<'_>,
) {
    for copy in layout.copies() {
        let file = layout.files().get(copy.object);
        let table = file.and_then(|file| file.symbol_table().ok()?);
        let name = table.and_then(|table| table.name_of(&table.get(copy.symbol).ok()?).ok());
        let external = name.and_then(|name| links.find(name));
        let Some(data) = external.as_ref().and_then(External::bytes) else { continue };
        let place = usize::try_from(copy.offset).ok().and_then(|offset| image.get_mut(offset..));
        if let Some(place) = place.and_then(|rest| rest.get_mut(..data.len())) {
            place.copy_from_slice(data);
        }
    }
}

/// Addresses of the symbols that are not local, for an image at `base`; 0 for what has none.
pub(crate) fn globals(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Box<[u64]>> {
    let addresses = |(object, file): (usize, &File<'_>)| {
        let Ok(Some(table)) = file.symbol_table() else { return Box::default() };
        let first = u32::try_from(table.first_global()).unwrap_or(u32::MAX);
        layout.addresses(object, first, base).map(Option::unwrap_or_default).collect()
    };
    layout.files().iter().enumerate().map(addresses).collect()
}
