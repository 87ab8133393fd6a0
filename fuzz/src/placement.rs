//! What holds of every layout, whatever the files.

use elf_core::names::SHT_NOBITS;
use elf_core::{Arch, Definition, File, SectionFlags, SectionHeader, SegmentFlags};
use elf_layout::{ImageMode, Layout, Options, SymbolAddress};

/// Bytes of the image, and what is there.
type Part = (u64, u64, String);

/// Checks that sections, common symbols, GOT and stubs are aligned, inside the image, apart, and in segments of their
/// permission, which are apart and on pages of their own.
pub fn check<A: Arch>(layout: &Layout<'_, '_, A>, options: &Options) {
    let packed = matches!(options.mode, ImageMode::Packed { .. });
    let mut parts: Vec<Part> = Vec::new();
    let mut segments: Vec<_> = layout.segments().collect();
    check_segments(layout, options, &segments);
    let fixed: Vec<_> = layout.fixed_sections().collect();
    assert!(fixed.is_sorted_by_key(|fixed| fixed.segment.offset), "by rising address");
    for (object, file) in layout.files().iter().enumerate() {
        for (index, header) in (0u32..).zip(file.sections()) {
            let Some(offset) = layout.section(object, index) else { continue };
            assert!(header.flags.contains(SectionFlags::ALLOC));
            if header.address != 0 {
                let base = options.base.unwrap_or(0);
                assert_eq!(offset.wrapping_add(base), header.address, "it stands at its address");
                assert!(fixed.iter().any(|at| (at.object, at.section) == (object, index)));
            } else {
                let least = match options.mode {
                    ImageMode::Packed { section_alignment } => section_alignment,
                    ImageMode::Segments { .. } => 1,
                };
                let alignment = header.alignment.max(least);
                assert_eq!(offset % alignment, 0, "object {object} section {index}");
                let aligned = header.size == 0 || alignment <= layout.alignment();
                assert!(aligned, "so that addresses are aligned as well");
            }
            // thread-local zeros occupy no memory
            if !packed && is_thread_zero(&header) && header.address == 0 {
                continue;
            }
            let size = layout.section_size(object, index).expect("of a section that is loaded");
            if size > 0 {
                parts.push((offset, size, format!("section {index} of object {object}")));
                if header.address == 0 {
                    let flags = if packed { all() } else { permission(&header) };
                    let whole = || whole(layout, file, &header);
                    inside_or(&mut segments, offset, size, flags, &whole);
                }
            }
        }
        commons(layout, object, file, &mut parts);
    }
    let (got, size) = layout.got();
    if size > 0 {
        assert_eq!(got % A::ADDRESS_SIZE, 0);
        parts.push((got, size, "the GOT".into()));
        inside(&mut segments, got, size, SegmentFlags::READ);
    }
    let mut end = got;
    for entry in layout.got_entries() {
        assert!(entry.offset >= end, "one after the other");
        end = entry.offset + entry.content.entries() * A::ADDRESS_SIZE;
    }
    assert!(end <= got + size, "in the GOT");
    for copy in layout.copies() {
        assert_eq!(copy.offset % 64, 0, "as much as compilers give to data");
        parts.push((copy.offset, 1, format!("copy of {}", copy.symbol)));
        inside(&mut segments, copy.offset, 1, SegmentFlags::READ);
    }
    for stub in layout.stubs() {
        let alignment = A::STUBS.iter().map(|stub| stub.alignment).min().unwrap_or(1);
        assert_eq!(stub.offset % alignment, 0);
        parts.push((stub.offset, stub.size, format!("stub of {}", stub.symbol)));
        inside(&mut segments, stub.offset, stub.size, SegmentFlags::READ | SegmentFlags::EXECUTE);
    }
    parts.sort();
    let mut last: Part = (0, 0, String::new());
    for part in parts {
        assert!(last.0 + last.1 <= part.0, "{} overlaps {}", part.2, last.2);
        last = part;
    }
    assert!(last.0 + last.1 <= layout.size(), "{} leaves the image", last.2);
}

const fn all() -> SegmentFlags {
    SegmentFlags::READ.union(SegmentFlags::WRITE).union(SegmentFlags::EXECUTE)
}

fn is_thread_zero(header: &SectionHeader) -> bool {
    header.flags.contains(SectionFlags::TLS) && header.r#type == SHT_NOBITS
}

/// The permission that a section asks for. Initial values of thread-local storage are only read.
fn permission(header: &SectionHeader) -> SegmentFlags {
    let mut flags = SegmentFlags::READ;
    if !header.flags.contains(SectionFlags::TLS) {
        flags.set(SegmentFlags::WRITE, header.flags.contains(SectionFlags::WRITE));
        flags.set(SegmentFlags::EXECUTE, header.flags.contains(SectionFlags::EXECINSTR));
    }
    flags
}

/// Whether some segment of this permission holds the bytes; in a packed layout the only one does.
fn inside(segments: &mut [elf_layout::Segment], offset: u64, size: u64, flags: SegmentFlags) {
    inside_or(segments, offset, size, flags, &|| flags);
}

/// The same of a section that may have the permission of others with which it stands together.
fn inside_or(
    segments: &mut [elf_layout::Segment],
    offset: u64,
    size: u64,
    flags: SegmentFlags,
    whole: &dyn Fn() -> SegmentFlags,
) {
    let found = segments
        .iter()
        .find(|segment| segment.offset <= offset && offset + size <= segment.offset + segment.size);
    let found = found.expect("in a segment");
    assert_eq!(found.flags & flags, flags, "permission is granted");
    let is_exact = found.flags == flags || found.flags == all();
    assert!(is_exact || found.flags == whole(), "and no more than that");
}

/// The permission that sections of one name, or arrays of one type, ask for together.
fn whole<A: Arch>(
    layout: &Layout<'_, '_, A>,
    file: &File<'_>,
    header: &SectionHeader,
) -> SegmentFlags {
    let name = file.section_name(header).unwrap_or_default();
    let is_member = |object: usize, (index, other): &(u32, SectionHeader)| {
        let is_placed = layout.section(object, *index).is_some() && other.address == 0;
        let file = layout.files().get(object);
        let is_named = || file.is_some_and(|file| file.section_name(other) == Ok(name));
        let is_array = || other.r#type == header.r#type && header.r#type > SHT_NOBITS;
        is_placed && !other.flags.contains(SectionFlags::TLS) && (is_named() || is_array())
    };
    layout.files().iter().enumerate().fold(permission(header), |flags, (object, file)| {
        let members = (0u32..).zip(file.sections()).filter(|one| is_member(object, one));
        members.fold(flags, |sum, (_, member)| sum | permission(&member))
    })
}

/// Segments are apart and each starts on a page of its own.
fn check_segments<A: Arch>(
    layout: &Layout<'_, '_, A>,
    options: &Options,
    segments: &[elf_layout::Segment],
) {
    let page = match options.mode {
        ImageMode::Segments { page_size } => page_size,
        ImageMode::Packed { .. } => 1,
    };
    let mut end = 0;
    for segment in segments {
        assert!(segment.offset % page == 0 && segment.offset >= end, "on a page of its own");
        end = (segment.offset + segment.size).next_multiple_of(page);
        assert!(segment.offset + segment.size <= layout.size(), "inside the image");
    }
    assert!(layout.alignment().is_power_of_two() && layout.alignment() >= page);
}

/// Common symbols that this object defines for all.
fn commons<A: Arch>(
    layout: &Layout<'_, '_, A>,
    object: usize,
    file: &File<'_>,
    parts: &mut Vec<Part>,
) {
    let Ok(Some(table)) = file.symbol_table() else { return };
    // the first symbol is none, whatever it says
    for (index, symbol) in (0u32..).zip(table.symbols()).skip(1) {
        let is_common = table.section_of(index, &symbol) == Ok(Definition::Common);
        if !is_common || layout.definition(object, index) != Some((object, index)) {
            continue;
        }
        let Some(SymbolAddress::Image(offset)) = layout.symbol(object, index) else {
            panic!("a common symbol is in the image")
        };
        if symbol.value.is_power_of_two() {
            assert_eq!(offset % symbol.value, 0, "symbol {index} of object {object}");
        }
        if symbol.size > 0 {
            parts.push((offset, symbol.size, format!("symbol {index} of object {object}")));
        }
    }
}
