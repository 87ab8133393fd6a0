//! Which memory a load gets: its own, or room in an arena.

use crate::Host;
use crate::error::Error;
use crate::memory::{CodeArena, MOST, Mapping, MappingOptions, Need};
use elf_core::names::{SHN_COMMON, STT_GNU_IFUNC};
use elf_core::{File, SectionFlags, SegmentFlags};
use elf_layout::Layout;

/// Memory for a layout: as wished for, that which is there `ahead` if it will do; or, if it was laid out for an arena, in `arena`, for which
/// its segments are moved.
pub(super) fn memory_for(
    layout: &mut Layout<'_, '_, Host>,
    arena: Option<&CodeArena>,
    ahead: Option<Mapping>,
    mapping_options: &MappingOptions<'_>,
) -> Result<Mapping, Error> {
    let Some(arena) = arena.filter(|_| layout.options().spread > 0) else {
        return match ahead.and_then(|ahead| ahead.cut_to(mapping_options)) {
            Some(memory) => Ok(memory),
            None => Mapping::new(mapping_options),
        };
    };
    let segments: Vec<_> = layout.segments().collect();
    let write_execute = SegmentFlags::WRITE | SegmentFlags::EXECUTE;
    if segments.iter().any(|segment| segment.flags.contains(write_execute)) {
        return Err(Error::WriteExecute);
    }
    let MappingOptions { alignment, limit, near, .. } = *mapping_options;
    let need = Need { segments: &segments, alignment, limit, near };
    let (memory, offsets) = Mapping::in_arena(arena, &need)?;
    let mut offsets = offsets.into_iter();
    layout.place_segments(|_| offsets.next()).map_err(Error::Layout)?;
    Ok(memory)
}

/// Least alignment of what is in an arena, in bytes.
pub(super) const GRAIN: u64 = 16;

/// Whether files are for an arena, as far as their tables tell: sections, what symbols may add, and nothing that is written later.
pub(super) fn is_small(files: &[File<'_>]) -> bool {
    /// Bytes of a GOT entry or two and a stub.
    const ADDITIONS: u64 = 64;
    let mut size = 0u64;
    for file in files {
        for section in file.sections().iter().filter(|it| it.flags.contains(SectionFlags::ALLOC)) {
            let is_plain = section.alignment <= 4096 && section.address == 0;
            if !is_plain {
                return false;
            }
            size = size.saturating_add(section.size).saturating_add(section.alignment);
        }
        if size > u64::from(MOST) {
            return false;
        }
        let Ok(Some(table)) = file.symbol_table() else { continue };
        for symbol in table.symbols() {
            if symbol.r#type() == STT_GNU_IFUNC {
                return false;
            }
            let is_common = symbol.shndx == SHN_COMMON;
            let common = if is_common { symbol.size.saturating_add(symbol.value) } else { 0 };
            size = size.saturating_add(ADDITIONS).saturating_add(common);
        }
    }
    size <= u64::from(MOST)
}
