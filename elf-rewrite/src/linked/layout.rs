//! Where everything is in the new file: sections of regions that are laid out anew, what the file loses, and a segment that comes
//! behind all others.

use std::collections::BTreeMap;
use std::ops::Range;

use elf_core::names::{PF_R, PF_W, PT_LOAD, PT_PHDR, SHF_ALLOC};
use elf_core::raw64::Phdr;
use zerocopy::byteorder::LE;

use super::content::Content;
use super::gap::gap_end;
use super::header_placement::{Block, HeaderPlacement, PHDR, Tables, header_placement};
use super::moves::{Move, Moved};
use super::packed::{Packed, is_shared};
use super::place::{Place, place};
use super::resize::{Resizes, end, insertion, loads, page, unit, unit_behind};
use super::sections::{ALIGNMENT, Span};
use super::segments::{Loaded, pieces};
use crate::change::Change;
use crate::edits::With;
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};

/// What is to be done to a file.
#[derive(Debug)]
pub(super) struct Task<'c> {
    /// Sections that are laid out anew.
    pub(super) packed: &'c [Packed],
    /// Regions that stay where they are.
    pub(super) fit: Vec<&'c Change>,
    /// Regions that move without the section that they are in.
    pub(super) alone: Vec<&'c Change>,
    /// Which bytes that are free go from the file.
    pub(super) cuts: Cuts,
    /// Which tables move if program headers need their place.
    pub(super) tables: Tables,
}

/// Which bytes that are free go from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cuts {
    /// Also those in a segment, which becomes two.
    All,
    /// Those at the end of a segment.
    Tails,
}

impl Cuts {
    /// Whether those before an offset go.
    fn goes(self, elf: &Elf<'_>, offset: u64) -> bool {
        self == Self::All || loads(elf).any(|load| end(load) == offset)
    }
}

/// A range of the file, and what stands there from now on.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) range: Range<u64>,
    pub(super) content: Content,
}

/// The new file.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) resizes: Resizes,
    pub(super) replaced: Vec<Replaced>,
    /// Where the file becomes longer, and by what: in place of zeros that nothing has, if there are any.
    pub(super) inserted: Option<Replaced>,
    pub(super) segments: Vec<Phdr<LE>>,
    pub(super) sections: BTreeMap<usize, Span>,
    pub(super) fresh: Option<Span>,
    /// What moves, in the order of addresses.
    pub(super) moves: Vec<Move>,
    /// Tables that made room for program headers.
    pub(super) block: Option<Block>,
    /// Offset and bytes of the room for program headers in the new segment, if they go there.
    pub(super) headers: Option<u64>,
    /// Bytes that are free, and are zeros in the file.
    pub(super) zeros: u64,
    loaded: Loaded,
    page: u64,
    /// Where a new segment goes, if there is one.
    insertion: Option<u64>,
}

/// Where program headers go.
#[derive(Clone, Copy, Debug)]
enum Headers<'b> {
    Here,
    /// Here, and these tables elsewhere.
    Without(&'b Block),
    New,
}

/// Lays a file out.
///
/// # Errors
/// If there is no place for what has to move.
pub(super) fn layout(elf: &Elf<'_>, task: &Task<'_>) -> Result<Layout> {
    let first = Layout::new(elf, task, Headers::Here)?;
    match header_placement(elf, first.segments.len(), task.tables) {
        HeaderPlacement::InPlace => Ok(first),
        HeaderPlacement::InPlaceWithout(block) => Layout::new(elf, task, Headers::Without(&block)),
        _ if first.inserted.is_some() => Layout::new(elf, task, Headers::New),
        HeaderPlacement::Elsewhere => {
            let why = "there is no room for its program header";
            Err(Error::new(elf.header.e_phoff.get(), ErrorKind::NoRoom(why)))
        }
    }
}

impl Layout {
    fn new(elf: &Elf<'_>, task: &Task<'_>, headers: Headers<'_>) -> Result<Self> {
        let mut new = Self {
            resizes: Resizes::default(),
            replaced: Vec::new(),
            inserted: None,
            segments: Vec::new(),
            sections: BTreeMap::new(),
            fresh: None,
            moves: Vec::new(),
            block: None,
            headers: None,
            zeros: 0,
            loaded: Loaded::default(),
            page: page(elf)?,
            insertion: None,
        };
        let (stays, goes): (Vec<_>, Vec<_>) =
            task.packed.iter().partition(|one| one.stays(elf, new.page));
        let has_new = !goes.is_empty() || !task.alone.is_empty();
        new.insertion = has_new.then(|| insertion(elf));
        let mut block = match headers {
            Headers::Without(block) => Some(block),
            Headers::Here | Headers::New => None,
        };
        let mut homeless = block.filter(|_| !has_new);
        for one in &stays {
            new.packed(elf, one, &mut homeless, task.cuts)?;
        }
        if homeless.is_some() {
            let why = "there is no room for its program header";
            return Err(Error::new(elf.header.e_phoff.get(), ErrorKind::NoRoom(why)));
        }
        for one in &goes {
            let cuts = task.cuts.goes(elf, one.range.end);
            let (range, size) = new.free(elf, one.range.clone(), 0, cuts)?;
            let mut content = Content::at(one.address);
            content.fill(size);
            new.replaced.push(Replaced { range, content });
        }
        for change in task.fit.iter().chain(&task.alone) {
            let stays = !task.alone.iter().any(|one| core::ptr::eq(*one, *change));
            new.in_place(elf, change, stays, task.cuts)?;
        }
        new.loaded.holes.sort_by_key(|hole| hole.start);
        new.segments = pieces(elf, &new.loaded, &new.resizes, new.page);
        if let Some(insertion) = new.insertion {
            let block = block.take();
            new.segment(elf, (&goes, &task.alone), insertion, (block, headers))?;
        }
        // the segments were laid out without what comes behind
        new.finish();
        Ok(new)
    }

    /// A section that stays; `block` stands behind its regions if there is room.
    fn packed(
        &mut self,
        elf: &Elf<'_>,
        one: &Packed,
        block: &mut Option<&Block>,
        cuts: Cuts,
    ) -> Result<()> {
        let mut content = Content::at(one.address);
        for region in &one.regions {
            let to = content.push(one.alignment, region.new.clone());
            self.moves.extend(moved(elf, region, to, Moved::WithSection)?);
        }
        self.sections.insert(one.section, Span::new(one.address, content.size()));
        let old = one.range.end.saturating_sub(one.range.start);
        if let Some(tables) = *block
            && old.saturating_sub(content.size())
                >= tables.size().saturating_add(self.page.saturating_mul(3))
        {
            self.tables(elf, tables, &mut content);
            *block = None;
        }
        let used = content.size();
        let (range, size) =
            self.free(elf, one.range.clone(), used, cuts.goes(elf, one.range.end))?;
        content.fill(size);
        self.replaced.push(Replaced { range, content });
        Ok(())
    }

    /// A range of which `used` bytes are used from now on, with what is free behind it, and the bytes that it takes.
    fn free(
        &mut self,
        elf: &Elf<'_>,
        range: Range<u64>,
        used: u64,
        cuts: bool,
    ) -> Result<(Range<u64>, u64)> {
        let loaded = range.end.saturating_sub(range.start);
        let unit = unit(elf, range.end)?;
        // behind all that is loaded a new segment has it
        let has_gap = self.insertion != Some(range.end);
        let whole = range.start..if has_gap { gap_end(elf, range.end, false) } else { range.end };
        let old = whole.end.saturating_sub(whole.start);
        if used > loaded {
            self.loaded.longer.push((range.end, used.saturating_sub(loaded)));
        }
        let size = if used > old {
            old.saturating_add(used.saturating_sub(old).next_multiple_of(unit))
        } else if cuts {
            let free = old.saturating_sub(used);
            old.saturating_sub(free.saturating_sub(free % unit))
        } else {
            old
        };
        let is_end = |load: &Phdr<LE>| end(load) == range.end && load.p_filesz == load.p_memsz;
        if used < loaded && (size < old || cuts && loads(elf).any(is_end)) {
            self.loaded.holes.push(range.start.saturating_add(used)..range.end);
        }
        if size != old {
            self.resizes.add(whole.clone(), size);
        }
        self.zeros = self.zeros.saturating_add(size.saturating_sub(used));
        Ok((whole, size))
    }

    /// A region that stays where it is, or leaves zeros: what is free at the end of its section can go.
    fn in_place(&mut self, elf: &Elf<'_>, change: &Change, stays: bool, cuts: Cuts) -> Result<()> {
        let used = if stays { change.new_size() } else { 0 };
        let mut content = Content::at(change.at);
        if used > 0 {
            content.push(1, change.new.clone());
        }
        let section = elf.section_at(change.at);
        let row = section.and_then(|section| Some((section, elf.sections.get(section)?)));
        let free = change.at.saturating_add(used)..change.end();
        let tail = row.filter(|(section, row)| {
            let start = row.sh_offset.get();
            cuts.goes(elf, free.end)
                && start < free.start
                && start.saturating_add(row.sh_size.get()) == free.end
                && row.sh_addr.get() != 0
                && !is_shared(elf, *section, &free)
        });
        let (range, taken) = self.free(elf, change.at..change.end(), used, tail.is_some())?;
        if let Some((section, row)) = tail {
            let size = free.start.saturating_sub(row.sh_offset.get());
            self.sections.insert(section, Span::new(row.sh_addr.get(), size));
        }
        content.fill(taken);
        self.replaced.push(Replaced { range, content });
        Ok(())
    }

    /// Tables that make room for program headers.
    fn tables(&mut self, elf: &Elf<'_>, block: &Block, content: &mut Content) {
        let (size, kept) = (block.size(), With::Kept(block.range.clone()));
        let new = content.push_as(block.address, block.alignment, kept);
        for (index, section) in elf.sections.iter().enumerate() {
            let inside = section.sh_addr.get().wrapping_sub(block.address);
            let is_loaded = section.sh_flags.get() & SHF_ALLOC != 0;
            if is_loaded && inside < size {
                let address = new.saturating_add(inside);
                self.sections.insert(index, Span::new(address, section.sh_size.get()));
            }
        }
        self.moves.push(Move {
            old: block.address,
            size,
            new,
            new_size: size,
            offset: block.range.start,
            kind: Moved::Tables,
        });
        self.block = Some(block.clone());
    }

    /// The new segment.
    fn segment(
        &mut self,
        elf: &Elf<'_>,
        (goes, alone): (&[&Packed], &[&Change]),
        insertion: u64,
        (block, headers): (Option<&Block>, Headers<'_>),
    ) -> Result<()> {
        let is_new = matches!(headers, Headers::New);
        let gap = insertion..gap_end(elf, insertion, true);
        let start = self.resizes.shifted(insertion);
        let offset = start.next_multiple_of(ALIGNMENT);
        let Place { offset, address } = place(elf, &self.segments, (offset, self.page), is_new)?;
        // zeros before it, so that it is aligned, are none of it
        let lead = offset.saturating_sub(start);
        let mut content = Content::at(address.saturating_sub(lead));
        content.fill(lead);
        if is_new {
            let size = (self.segments.len() as u64).saturating_add(1).saturating_mul(PHDR);
            content.push(1, With::Zeros(size));
            self.headers = Some(offset);
        }
        if let Some(block) = block {
            self.tables(elf, block, &mut content);
        }
        let mut flags = PF_R;
        for one in goes {
            let first = content.end().next_multiple_of(one.alignment);
            for region in &one.regions {
                let to = content.push(one.alignment, region.new.clone());
                self.moves.extend(moved(elf, region, to, Moved::WithSection)?);
            }
            let size = content.end().saturating_sub(first);
            self.sections.insert(one.section, Span::new(first, size));
            flags |= if one.writable { PF_W } else { 0 };
        }
        let first = content.end().next_multiple_of(ALIGNMENT);
        for region in alone {
            let to = content.push(ALIGNMENT, region.new.clone());
            self.moves.extend(moved(elf, region, to, Moved::Alone)?);
        }
        let size = content.end().saturating_sub(first);
        self.fresh =
            (!alone.is_empty() && !elf.sections.is_empty()).then(|| Span::new(first, size));
        let size = content.size().saturating_sub(lead);
        let new = Phdr {
            p_type: PT_LOAD.into(),
            p_flags: flags.into(),
            p_offset: offset.into(),
            p_vaddr: address.into(),
            p_paddr: address.into(),
            p_filesz: size.into(),
            p_memsz: size.into(),
            p_align: self.page.into(),
        };
        let unit = unit_behind(elf, insertion)?;
        let free = gap.end.saturating_sub(gap.start);
        let more = content.size().saturating_sub(free).next_multiple_of(unit);
        let whole = free.saturating_add(more);
        content.fill(whole);
        self.resizes.add(gap.clone(), whole);
        self.segments = pieces(elf, &self.loaded, &self.resizes, self.page);
        let last = self.segments.iter().rposition(|segment| segment.p_type == PT_LOAD);
        self.segments.insert(last.map_or(0, |last| last.saturating_add(1)), new);
        self.inserted = Some(Replaced { range: gap, content });
        Ok(())
    }

    /// The offset of what is loaded at an address.
    fn offset(&self, address: u64) -> u64 {
        let found = self.segments.iter().find_map(|load| {
            let behind = address.checked_sub(load.p_vaddr.get())?;
            let there = load.p_type == PT_LOAD && behind < load.p_filesz.get();
            there.then(|| load.p_offset.get().saturating_add(behind))
        });
        found.unwrap_or_default()
    }

    /// Offsets of sections, of tables that moved, and of the program headers themselves.
    fn finish(&mut self) {
        self.moves.sort_by_key(|one| one.old);
        let addresses: Vec<u64> = self.sections.values().map(|span| span.address).collect();
        let offsets: Vec<u64> = addresses.into_iter().map(|address| self.offset(address)).collect();
        for (span, offset) in self.sections.values_mut().zip(offsets) {
            span.offset = offset;
        }
        self.fresh = self.fresh.map(|span| Span { offset: self.offset(span.address), ..span });
        let tables = self.moves.iter().find(|one| one.kind == Moved::Tables);
        if let Some(Move { old, size, new, .. }) = tables.copied() {
            let offset = self.offset(new);
            for segment in &mut self.segments {
                let inside = segment.p_vaddr.get().wrapping_sub(old);
                let is_there = segment.p_type != PT_LOAD && segment.p_filesz.get() != 0;
                if is_there && inside < size {
                    segment.p_offset = offset.saturating_add(inside).into();
                    segment.p_vaddr = new.saturating_add(inside).into();
                    segment.p_paddr = segment.p_vaddr;
                }
            }
        }
        let table = (self.segments.len() as u64).saturating_mul(PHDR);
        let new = self.headers.and_then(|offset| {
            self.segments.iter().find(|load| load.p_type == PT_LOAD && load.p_offset == offset)
        });
        let new = new.map(|load| (load.p_offset, load.p_vaddr));
        for segment in self.segments.iter_mut().filter(|segment| segment.p_type == PT_PHDR) {
            if let Some((offset, address)) = new {
                (segment.p_offset, segment.p_vaddr, segment.p_paddr) = (offset, address, address);
            }
            (segment.p_filesz, segment.p_memsz) = (table.into(), table.into());
        }
    }
}

/// How a region moves; nothing if it stays.
fn moved(elf: &Elf<'_>, region: &Change, to: u64, kind: Moved) -> Result<Option<Move>> {
    let (old, new_size) = (elf.address(region.at)?, region.new_size());
    let kind = match (&region.new, kind) {
        (With::Kept(_), Moved::WithSection) => Moved::Unchanged,
        (_, kind) => kind,
    };
    let one = Move { old, size: region.size, new: to, new_size, offset: region.at, kind };
    Ok((old != to).then_some(one))
}
