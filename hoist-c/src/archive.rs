//! Archives of objects, to look at.

use crate::border::{Bytes, Text, empty, fallible, give, handle, infallible, needed, place, row};
use crate::error::{Error, Status, c_string};
use crate::faults::{elf, io};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;
use std::ffi::CString;

/// An archive (`.a`), to look at. Free it with `hoist_archive_free`.
pub struct Archive {
    bytes: Vec<u8>,
    members: Vec<(CString, Option<Range<usize>>)>,
}

impl Archive {
    fn parse(label: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        let damaged = |error| elf(&error, label);
        let mut members = Vec::new();
        for member in elf_core::archive::Archive::parse(&bytes).map_err(damaged)?.members() {
            let member = member.map_err(damaged)?;
            let range = member.data.map(|data| {
                let start = data.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
                start..start.saturating_add(data.len())
            });
            members.push((c_string(member.name.as_bytes()), range));
        }
        Ok(Self { bytes, members })
    }
}

/// Reads an archive, thin ones included.
///
/// Errors: `FILE`, `BAD_FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_archive_open(
    path: Text,
    archive: Option<&mut MaybeUninit<*mut Archive>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let archive = place(archive, "archive")?;
        let path = path.path("path")?;
        let bytes = std::fs::read(path).map_err(|cause| io(&cause, path))?;
        give(archive, Archive::parse(&path.to_string_lossy(), bytes)?);
        Ok(())
    })
}

/// The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
///
/// Errors: `BAD_FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_archive_parse(
    label: Text,
    data: Bytes,
    size: usize,
    archive: Option<&mut MaybeUninit<*mut Archive>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let archive = place(archive, "archive")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        give(archive, Archive::parse(label, bytes.to_vec())?);
        Ok(())
    })
}

/// How many members that are files the archive has; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_archive_member_count(archive: Option<&Archive>) -> usize {
    archive.map_or(0, |archive| archive.members.len())
}

/// Member `index`, from 0 on: its name and its bytes. Of a thin archive's members, which are files of their own, `*data` is NULL.
/// Pointers are good as long as the archive.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_archive_member(
    archive: Option<&Archive>,
    index: usize,
    name: Option<&mut MaybeUninit<*const c_char>>,
    data: Option<&mut MaybeUninit<*const c_void>>,
    size: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (name, data, size) = (empty(name), empty(data), empty(size));
        let name = needed(name, "name")?;
        let (data, size) = (needed(data, "data")?, needed(size, "size")?);
        let archive = handle(archive, "archive")?;
        let (text, range) = row(&archive.members, index, "member")?;
        *name = text.as_ptr();
        if let Some(bytes) = range.clone().and_then(|range| archive.bytes.get(range)) {
            (*data, *size) = (bytes.as_ptr().cast(), bytes.len());
        }
        Ok(())
    })
}

/// Frees an archive; NULL is none.
///
/// Threads: nobody uses the archive any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_archive_free(archive: Option<Box<Archive>>) {
    infallible((), || drop(archive));
}
