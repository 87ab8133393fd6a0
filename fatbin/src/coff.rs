//! The sections of programs, libraries and objects of Windows that may hold device code (Microsoft, "PE Format").
//!
//! The names of sections in programs and libraries are cut to 8 bytes: `.nv_fatbin` is `.nv_fatb`.

use crate::container::Place;
use crate::error::Error;
use crate::object::{Step, is_target_section};
use crate::scan::{Look, Scan, Search};
use crate::span::Span;
use elf_core::Name;
use zerocopy::byteorder::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The COFF file header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header {
    machine: U16,
    sections: U16,
    time: U32,
    symbols: U32,
    symbol_count: U32,
    optional_header_size: U16,
    characteristics: U16,
}
const _: () = assert!(size_of::<Header>() == 20 && align_of::<Header>() == 1);

/// A section header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Section {
    name: [u8; 8],
    virtual_size: U32,
    address: U32,
    size: U32,
    offset: U32,
    relocations: U32,
    line_numbers: U32,
    relocation_count: U16,
    line_number_count: U16,
    characteristics: U32,
}
const _: () = assert!(size_of::<Section>() == 40 && align_of::<Section>() == 1);

/// Where a program says how far its header is.
const NEW_HEADER: u64 = 0x3c;
/// `IMAGE_FILE_MACHINE_AMD64`, `IMAGE_FILE_MACHINE_ARM64`.
const MACHINES: [u16; 2] = [0x8664, 0xaa64];
/// `IMAGE_SCN_CNT_INITIALIZED_DATA`.
const INITIALIZED_DATA: u32 = 0x40;
const SYMBOL_SIZE: u64 = 18;

/// A walk over the sections: first those that tools make for device code, then, if wanted, ordinary data.
#[derive(Clone, Debug)]
pub(crate) struct CoffWalk<'a> {
    span: Span<'a>,
    sections: &'a [Section],
    /// The names that do not fit a header; offsets count from its start.
    strings: Option<Span<'a>>,
    place: Place<'a>,
    search: Search,
    searching: bool,
    found: bool,
    next: u32,
}

impl<'a> CoffWalk<'a> {
    /// None if the file is none of Windows.
    pub(crate) fn new(span: Span<'a>, place: Place<'a>, search: Search) -> Option<Self> {
        let at = if span.bytes().starts_with(b"MZ") {
            let at: &U32 = span.row("MS-DOS header", NEW_HEADER).ok()?;
            let new = span.tail(at.get().into())?;
            if !new.bytes().starts_with(b"PE\0\0") {
                return None;
            }
            u64::from(at.get()).saturating_add(4)
        } else {
            0
        };
        let header: &Header = span.row("COFF header", at).ok()?;
        let is_object = at == 0;
        if !MACHINES.contains(&header.machine.get())
            || (is_object && header.optional_header_size.get() != 0)
        {
            return None;
        }
        let table = at
            .saturating_add(size_of::<Header>() as u64)
            .saturating_add(header.optional_header_size.get().into());
        let sections: &[Section] =
            span.rows("section headers", table, header.sections.get().into()).ok()?;
        let symbols = u64::from(header.symbol_count.get()).saturating_mul(SYMBOL_SIZE);
        let strings = (header.symbols.get() != 0)
            .then(|| span.tail(u64::from(header.symbols.get()).saturating_add(symbols)))
            .flatten();
        let (searching, found, next) = (false, false, 0);
        Some(Self { span, sections, strings, place, search, searching, found, next })
    }

    /// The next section of this pass that may hold device code.
    pub(crate) fn step(&mut self) -> Step<'a> {
        loop {
            let index = self.next;
            self.next = index.saturating_add(1);
            let section = usize::try_from(index).ok().and_then(|index| self.sections.get(index));
            match section.map(|section| self.section(index, section)) {
                Some(None) => {}
                Some(Some(Ok(scan))) => return Step::Section(scan),
                Some(Some(Err(error))) => return Step::Error(error),
                None if self.searching || !self.searches() => return Step::End,
                None => (self.searching, self.next) = (true, 0),
            }
        }
    }

    /// Whether ordinary data are searched.
    fn searches(&self) -> bool {
        match self.search {
            Search::Never => false,
            Search::Otherwise => !self.found,
            Search::Always => true,
        }
    }

    /// A section, if it is one for this pass.
    fn section(&mut self, index: u32, section: &'a Section) -> Option<Result<Scan<'a>, Error>> {
        let name = self.name(section);
        let is_data = section.characteristics.get() & INITIALIZED_DATA != 0;
        let look = match (named(name), self.searching) {
            (Some(look), false) => look,
            (None, true) if is_data => Look::Anything { address: section.address.get().into() },
            _ => return None,
        };
        if section.size.get() == 0 {
            return None;
        }
        self.found |= !self.searching;
        let place =
            Place { section: Some((index, Name(name))), searched: self.searching, ..self.place };
        let (offset, size) = (section.offset.get().into(), section.size.get().into());
        let bytes = self.span.part("section data", offset, size);
        Some(bytes.map(|bytes| Scan::new(bytes, place, look)))
    }

    /// The name of a section: in its header, or where a number in decimal says.
    fn name(&self, section: &'a Section) -> &'a [u8] {
        let own = Span::new(&section.name, 0).until_nul().unwrap_or(&section.name);
        let digits = own.strip_prefix(b"/").filter(|digits| !digits.is_empty());
        let number = digits.and_then(|digits| {
            digits.iter().try_fold(0_u64, |number, &digit| {
                let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
                number.checked_mul(10)?.checked_add(digit.into())
            })
        });
        let long = self.strings.zip(number).and_then(|(strings, at)| strings.tail(at)?.until_nul());
        long.unwrap_or(own)
    }
}

/// What a section that tools make for device code holds.
fn named(name: &[u8]) -> Option<Look> {
    match name {
        b".nv_fatb" | b".nv_fatbin" | b"__nv_rel" | b"__nv_relfatbin" => Some(Look::Regions),
        b".hip_fat" | b".hip_fatbin" => Some(Look::Bundles),
        b"__CLANG_" => Some(Look::Target),
        _ if is_target_section(name) => Some(Look::Target),
        _ if name.starts_with(b".llvm.of") => Some(Look::Offload),
        _ => None,
    }
}
