//! A library's file: its bytes, but for large code, which is mapped from the file instead.
//!
//! Who runs code vouches for it. All else that a library consists of is read by safe functions, too, and by unwinders: that is copied
//! and checked, so that a file that is changed later, or cut, changes no answer and ends no program.

use super::frames;
use crate::error::Error;
use crate::memory::{Mapping, MappingOptions};
use core::ops::Range;
use elf_core::names::{
    DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_CREL, DT_GNU_HASH, DT_HASH, DT_JMPREL,
    DT_REL, DT_RELA, DT_RELR, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM,
    PT_GNU_EH_FRAME, PT_GNU_RELRO, PT_LOAD,
};
use elf_core::{ProgramHeader, SectionFlags, SegmentFlags};
use rustix::fs::{StatVfsMountFlags, fstatvfs};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// From how many bytes on code is mapped: to copy less is as fast.
const LEAST: u64 = 1 << 16;

/// Bytes that hold the headers of most files.
const HEADERS: u64 = 1 << 12;

/// The bytes of a file; zeros where code is mapped.
#[derive(Debug)]
pub(crate) struct FileBytes {
    memory: Mapping,
    size: usize,
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory is ours and readable; nobody writes to it once the value is made.
        let bytes = unsafe { self.memory.bytes(0, self.size as u64) };
        bytes.and_then(|bytes| bytes.get(..self.size)).unwrap_or_default()
    }
}

/// Code that stays in its file.
#[derive(Debug)]
pub(crate) struct FileCode {
    pub(crate) file: File,
    /// By rising offset.
    pub(crate) parts: Vec<CodePart>,
}

/// Whole pages of code.
#[derive(Clone, Debug)]
pub(crate) struct CodePart {
    /// Number of the program header of their segment.
    pub(crate) segment: u32,
    /// Where they are in the segment, in bytes.
    pub(crate) range: Range<usize>,
    /// Where they are in the file, in bytes.
    pub(crate) offset: u64,
}

impl CodePart {
    /// The bytes of the file.
    fn in_file(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.range.len() as u64)
    }
}

/// Reads a file, but for large code if `may_map`.
///
/// # Errors
/// [`Error::File`], or there is no memory.
pub(crate) fn read(path: &Path, may_map: bool) -> Result<(FileBytes, Option<FileCode>), Error> {
    let failed = |cause: io::Error| Error::File { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let options = MappingOptions { size, alignment: 1, ..MappingOptions::default() };
    let mut memory = Mapping::new(&options)?;
    // so much memory there is
    let count = size as usize;
    let bytes = memory.bytes_mut().get_mut(..count).unwrap_or_default();
    let fill = |range: Range<u64>, bytes: &mut [u8]| {
        let place = bytes.get_mut(range.start as usize..range.end as usize).unwrap_or_default();
        file.read_exact_at(place, range.start).map_err(failed)
    };
    let (mut parts, mut end) = (Vec::new(), size);
    if may_map && may_be_run(&file) {
        fill(0..HEADERS.min(size), bytes)?;
        end = behind(bytes).min(size);
        fill(end..size, bytes)?;
        parts = code(bytes);
    }
    let mut at = 0;
    for part in parts.iter().map(CodePart::in_file).chain(std::iter::once(end..end)) {
        fill(at..part.start, bytes)?;
        at = part.end;
    }
    if is_read(bytes, &parts) {
        for part in parts.drain(..) {
            fill(part.in_file(), bytes)?;
        }
    }
    let code = (!parts.is_empty()).then_some(FileCode { file, parts });
    Ok((FileBytes { memory, size: count }, code))
}

/// Whether the system lets code of this file be mapped.
fn may_be_run(file: &File) -> bool {
    fstatvfs(file).is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// The segments that are loaded, with their numbers.
fn loaded(file: &elf_core::File<'_>) -> Vec<(u32, ProgramHeader)> {
    let segments = (0u32..).zip(file.segments().iter());
    segments.filter(|(_, header)| header.r#type == PT_LOAD).collect()
}

/// Where what is not loaded begins at the end of a file: symbols, headers of sections.
fn behind(bytes: &[u8]) -> u64 {
    let Ok(file) = elf_core::File::parse_segments(bytes) else { return u64::MAX };
    let ends = loaded(&file).into_iter();
    ends.map(|(_, header)| header.offset.saturating_add(header.file_size)).max().unwrap_or(0)
}

/// The large code of a file whose headers are there: its sections, or, if it does not say which there are, its segments.
fn code(bytes: &[u8]) -> Vec<CodePart> {
    let Ok(file) = elf_core::File::parse_segments(bytes) else { return Vec::new() };
    let segments = loaded(&file);
    let is_code = |header: &ProgramHeader| {
        header.flags.contains(SegmentFlags::EXECUTE) && !header.flags.contains(SegmentFlags::WRITE)
    };
    let mut ranges = sections(bytes);
    if ranges.is_empty() {
        let segments = segments.iter().map(|(_, header)| header);
        ranges.extend(segments.map(|it| it.offset..it.offset.saturating_add(it.file_size)));
    }
    let page = rustix::param::page_size() as u64;
    let mut parts: Vec<CodePart> = Vec::new();
    for (segment, header) in segments.iter().filter(|(_, header)| is_code(header)) {
        if (header.address ^ header.offset) % page != 0 {
            continue;
        }
        let segment_end = header.offset.saturating_add(header.file_size).min(bytes.len() as u64);
        for range in &ranges {
            let start = range.start.max(header.offset).checked_next_multiple_of(page);
            let Some(start) = start else { continue };
            let end = range.end.min(segment_end);
            let size = end.saturating_sub(end % page).saturating_sub(start);
            if size < LEAST {
                continue;
            }
            let from = (start - header.offset) as usize;
            let range = from..from.saturating_add(size as usize);
            parts.push(CodePart { segment: *segment, range, offset: start });
        }
    }
    parts.sort_by_key(|part| part.offset);
    let apart = |pair: &[CodePart]| match pair {
        [one, two] => one.in_file().end <= two.offset,
        _ => true,
    };
    if parts.windows(2).all(apart) { parts } else { Vec::new() }
}

/// Where sections of code are in a file, side by side ones as one.
fn sections(bytes: &[u8]) -> Vec<Range<u64>> {
    /// Most bytes between them, of padding.
    const PADDING: u64 = 64;
    let Ok(file) = elf_core::File::parse(bytes) else { return Vec::new() };
    let sections = file.sections().iter();
    let code = sections.filter(|section| section.flags.contains(SectionFlags::EXECINSTR));
    let mut all: Vec<_> = code.map(|it| it.offset..it.offset.saturating_add(it.size)).collect();
    all.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in all {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(PADDING) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// Tables that a loader reads from the file.
const TABLES: [u64; 15] = [
    DT_STRTAB,
    DT_SYMTAB,
    DT_HASH,
    DT_GNU_HASH,
    DT_VERSYM,
    DT_VERDEF,
    DT_VERNEED,
    DT_RELR,
    DT_REL,
    DT_RELA,
    DT_JMPREL,
    DT_ANDROID_REL,
    DT_ANDROID_RELA,
    DT_ANDROID_RELR,
    DT_CREL,
];

/// Whether anything begins in the parts that is not their segment's code, or cannot be told.
fn is_read(bytes: &[u8], parts: &[CodePart]) -> bool {
    if parts.is_empty() {
        return false;
    }
    let Ok(file) = elf_core::File::parse_segments(bytes) else { return true };
    let is_others = |part: &CodePart, number: u32, header: &ProgramHeader| match header.r#type {
        PT_GNU_RELRO => false,
        PT_LOAD if part.segment == number => false,
        _ => {
            let (end, part) = (header.offset.saturating_add(header.file_size), part.in_file());
            header.offset < part.end && end > part.start
        }
    };
    let mut headers = (0u32..).zip(file.segments().iter());
    if headers.any(|(number, header)| parts.iter().any(|it| is_others(it, number, &header))) {
        return true;
    }
    let meets = |offset: u64| parts.iter().any(|part| part.in_file().contains(&offset));
    let frames = file.segments().iter().find(|header| header.r#type == PT_GNU_EH_FRAME);
    let frames = frames.and_then(|header| {
        let start = frames::start(file.segment_data(&header).ok()?, header.address)?;
        file.offset_of(start)
    });
    if frames.is_some_and(meets) {
        return true;
    }
    let Ok(Some(dynamic)) = file.dynamic_by_segment() else { return true };
    let mut tables = TABLES.into_iter().filter_map(|tag| file.offset_of(dynamic.value(tag)?));
    tables.any(meets)
}
