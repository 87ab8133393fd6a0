//! A library's file, mapped: its image is made of pages of the file, as the dynamic loader's is.
//!
//! Who runs a library's code vouches for that, and for what it reads and unwinders look at. Safe functions read symbols: of what these
//! consist the library has copies, so that a file that is changed later, or cut, changes no answer and ends no program.

use crate::error::Error;
use crate::memory::{Mapping, MappingOptions, POPULATED};
use core::ops::Range;
use elf_core::names::{
    DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_CREL, DT_GNU_HASH, DT_HASH, DT_JMPREL,
    DT_REL, DT_RELA, DT_RELR, DT_STRSZ, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM,
    PT_DYNAMIC, PT_LOAD, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX,
};
use rustix::fs::{StatVfsMountFlags, fstatvfs};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The bytes of a file.
#[derive(Debug)]
pub(crate) struct FileBytes {
    memory: Mapping,
    size: usize,
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory is ours and readable; who writes to it has the value alone. What is the file's the caller of `read` vouches for.
        let bytes = unsafe { self.memory.bytes(0, self.size as u64) };
        bytes.and_then(|bytes| bytes.get(..self.size)).unwrap_or_default()
    }
}

impl FileBytes {
    /// Makes pages that are mapped from the file copies, whatever becomes of that.
    fn copy(&mut self, file: &File, range: &Range<u64>, path: &Path) -> Result<(), Error> {
        let pages = self.memory.renew(range)?;
        if pages.end - pages.start >= POPULATED as u64 {
            self.memory.populate(pages.start, pages.end - pages.start);
        }
        let (start, end) = (pages.start as usize, self.size.min(pages.end as usize));
        let place = self.memory.bytes_mut().get_mut(start..end).unwrap_or_default();
        let failed = |cause: io::Error| Error::File { path: path.to_owned(), cause };
        file.read_exact_at(place, pages.start).map_err(failed)
    }
}

/// A file of which pages can be mapped.
#[derive(Debug)]
pub(crate) struct FilePages(pub(crate) File);

/// Maps a file if `may_map` and the system lets its code be mapped; else reads it.
///
/// # Errors
/// [`Error::File`], or there is no memory.
///
/// # Safety
/// Nobody writes to the file or makes it shorter as long as the bytes are used; those that tell of symbols are copies.
pub(crate) unsafe fn read(
    path: &Path,
    may_map: bool,
) -> Result<(FileBytes, Option<FilePages>), Error> {
    let failed = |cause: io::Error| Error::File { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    // so much memory there is, or the mapping fails
    let (size, count) = (metadata.len(), metadata.len() as usize);
    if may_map && metadata.is_file() && size > 0 && may_be_run(&file) {
        let memory = Mapping::of_file(&file, size)?;
        let mut bytes = FileBytes { memory, size: count };
        for range in of_symbols(bytes.as_ref()) {
            bytes.copy(&file, &range, path)?;
        }
        return Ok((bytes, Some(FilePages(file))));
    }
    let options = MappingOptions { size, alignment: 1, ..MappingOptions::default() };
    let mut memory = Mapping::new(&options)?;
    memory.populate(0, size);
    let place = memory.bytes_mut().get_mut(..count).unwrap_or_default();
    file.read_exact_at(place, 0).map_err(failed)?;
    Ok((FileBytes { memory, size: count }, None))
}

/// Whether the system lets code of this file be mapped.
fn may_be_run(file: &File) -> bool {
    fstatvfs(file).is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// Tables of symbols.
const TABLES: [u64; 7] =
    [DT_STRTAB, DT_SYMTAB, DT_HASH, DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERNEED];

/// Tables that only loading takes.
const RELOCATIONS: [u64; 8] = [
    DT_RELR,
    DT_REL,
    DT_RELA,
    DT_JMPREL,
    DT_ANDROID_REL,
    DT_ANDROID_RELA,
    DT_ANDROID_RELR,
    DT_CREL,
];

/// Where a file has what tells of its symbols, headers and tables: stretches of it that rise, with less than a page between what is in one.
/// Nothing of a file that is none.
fn of_symbols(bytes: &[u8]) -> Vec<Range<u64>> {
    let Ok(file) = elf_core::File::parse_segments(bytes) else { return Vec::new() };
    let header = *file.header();
    let of = |start: u64, count: usize, size: u16| {
        start..start.saturating_add((count as u64).saturating_mul(size.into()))
    };
    let segments = file.segments();
    let mut ranges = vec![
        of(0, 1, header.header_size),
        of(header.program_headers, segments.len(), header.program_header_size),
    ];
    let stretch = |offset: u64, size: u64| offset..offset.saturating_add(size);
    let dynamic = segments.iter().filter(|it| it.r#type == PT_DYNAMIC);
    ranges.extend(dynamic.map(|it| stretch(it.offset, it.file_size)));
    if let Ok(Some(dynamic)) = file.dynamic_by_segment() {
        let at = |tag: u64| file.offset_of(dynamic.value(tag)?);
        // a table ends where another one begins, or its segment ends
        let mut ends: Vec<u64> = TABLES.into_iter().chain(RELOCATIONS).filter_map(at).collect();
        let loaded = segments.iter().filter(|it| it.r#type == PT_LOAD);
        ends.extend(loaded.map(|it| it.offset.saturating_add(it.file_size)));
        for (tag, start) in TABLES.into_iter().filter_map(|tag| Some((tag, at(tag)?))) {
            let end = ends.iter().copied().filter(|end| *end > start).min().unwrap_or(start);
            let size = if tag == DT_STRTAB { dynamic.value(DT_STRSZ).unwrap_or(0) } else { 0 };
            ranges.push(start..end.max(start.saturating_add(size)));
        }
    }
    if let Ok(file) = elf_core::File::parse(bytes) {
        let sections = file.sections();
        ranges.push(of(header.section_headers, sections.len(), header.section_header_size));
        let symbols = sections
            .iter()
            .filter(|it| matches!(it.r#type, SHT_SYMTAB | SHT_STRTAB | SHT_SYMTAB_SHNDX));
        ranges.extend(symbols.map(|it| stretch(it.offset, it.size)));
    }
    joined(ranges, bytes.len() as u64)
}

/// The same stretches by rising address, cut at the end of the file, those that are close to each other as one.
fn joined(mut ranges: Vec<Range<u64>>, size: u64) -> Vec<Range<u64>> {
    let page = rustix::param::page_size() as u64;
    let mut joined: Vec<Range<u64>> = Vec::new();
    ranges.sort_by_key(|range| range.start);
    for Range { start, end } in ranges {
        let end = end.min(size);
        match joined.last_mut() {
            _ if start >= end => {}
            Some(last) if start <= last.end.saturating_add(page) => last.end = last.end.max(end),
            _ => joined.push(start..end),
        }
    }
    joined
}
