//! Any ELF file: header, sections, segments. Symbols and relocations are in `file_tables`.

use crate::border::{Bytes, Text, empty, fallible, give, handle, infallible, needed, place};
use crate::error::{Error, Status, c_string};
use crate::faults::{elf, io};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use elf_core::{Foreign, Name};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

/// An ELF file, to look at. Free it with `hoist_file_free`.
pub struct File {
    parsed: elf_core::File<'static>,
    bytes: Arc<[u8]>,
    label: Box<str>,
    /// Names of types of relocation that were asked for, as text of C.
    types: Mutex<BTreeMap<&'static str, CString>>,
}

/// The header of an ELF file.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FileInfo {
    /// `ET_REL` (1), `ET_EXEC` (2), `ET_DYN` (3) ...
    pub kind: u16,
    /// `EM_X86_64` (62), `EM_AARCH64` (183), `EM_CUDA` (190) ...
    pub machine: u16,
    /// `e_flags`.
    pub flags: u32,
    /// Where a program starts.
    pub entry: u64,
    /// `EI_OSABI`.
    pub os_abi: u8,
    /// `EI_ABIVERSION`.
    pub abi_version: u8,
    /// Whether addresses have 64 bits.
    pub is_64: bool,
    /// Whether numbers have the most significant byte first.
    pub is_big_endian: bool,
}

/// A section header. Pointers are good as long as the file.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FileSection {
    /// Its name.
    pub name: *const c_char,
    /// `SHT_PROGBITS` (1), `SHT_SYMTAB` (2), `SHT_RELA` (4), `SHT_NOBITS` (8) ...
    pub kind: u32,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `SHF_WRITE` (1), `SHF_ALLOC` (2), `SHF_EXECINSTR` (4) ...
    pub flags: u64,
    /// Its address, if the file is linked.
    pub address: u64,
    /// Where its bytes are in the file.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its alignment in bytes.
    pub alignment: u64,
    /// Size of an entry, of tables.
    pub entry_size: u64,
}

/// A program header.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FileSegment {
    /// `PT_LOAD` (1), `PT_DYNAMIC` (2) ...
    pub kind: u32,
    /// `PF_X` (1), `PF_W` (2), `PF_R` (4), added up.
    pub flags: u32,
    /// Where its bytes are in the file.
    pub offset: u64,
    /// Its address.
    pub address: u64,
    /// Its physical address.
    pub physical_address: u64,
    /// How many bytes of it the file has.
    pub file_size: u64,
    /// How many bytes it has in memory.
    pub memory_size: u64,
    /// Its alignment in bytes.
    pub alignment: u64,
}

impl File {
    fn parse(label: &str, bytes: Arc<[u8]>) -> Result<Self, Error> {
        // SAFETY: the bytes are on the heap and not changed; the handle keeps them as long as what was parsed, and gives out neither.
        let fixed: &'static [u8] =
            unsafe { core::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        let parsed = elf_core::File::parse(fixed).map_err(|error| Foreign::explain(fixed, error));
        let parsed = parsed.map_err(|error| elf(&error, label))?;
        Ok(Self { parsed, bytes, label: label.into(), types: Mutex::default() })
    }

    /// The tables, which borrow from the handle.
    pub(crate) const fn parsed(&self) -> &elf_core::File<'_> {
        &self.parsed
    }

    pub(crate) fn damaged(&self, error: elf_core::Error) -> Error {
        elf(&error, &self.label)
    }

    /// A name in the file as text of C: names end in NUL where they stand.
    pub(crate) fn text(&self, name: Name<'_>) -> *const c_char {
        let range = name.as_bytes().as_ptr_range();
        let at = range.end.addr().checked_sub(self.bytes.as_ptr().addr());
        match at.and_then(|at| self.bytes.get(at)) {
            Some(0) if !name.is_empty() => range.start.cast(),
            _ => c"".as_ptr(),
        }
    }

    /// The name of a type of relocation as text of C.
    pub(crate) fn type_name(&self, kind: u32) -> *const c_char {
        let machine = self.parsed.header().machine;
        let Some(name) = archs::relocation_name(machine, kind) else { return c"".as_ptr() };
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        // the text of a `CString` stays where it is when the map grows
        types.entry(name).or_insert_with(|| c_string(name)).as_ptr()
    }

    fn section_row(&self, index: u32) -> Result<FileSection, Error> {
        let header = self.parsed.section(index).map_err(|error| self.damaged(error))?;
        let name = self.parsed.section_name(&header).map_err(|error| self.damaged(error))?;
        Ok(FileSection {
            name: self.text(name),
            kind: header.r#type,
            link: header.link,
            info: header.info,
            flags: header.flags.bits(),
            address: header.address,
            offset: header.offset,
            size: header.size,
            alignment: header.alignment,
            entry_size: header.entry_size,
        })
    }
}

/// The number of a section as the file's own, if it has it.
pub(crate) fn section_number(file: &File, index: usize) -> Result<u32, Error> {
    let count = file.parsed().sections().iter().len();
    let number = u32::try_from(index).ok().filter(|_| index < count);
    number.ok_or_else(|| Error::out_of_range("section", index, count))
}

/// Reads an ELF file, of any machine and kind.
///
/// Errors: `FILE`, `BAD_FILE`, `UNSUPPORTED`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_open(
    path: Text,
    file: Option<&mut MaybeUninit<*mut File>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let file = place(file, "file")?;
        let path = path.path("path")?;
        let bytes = std::fs::read(path).map_err(|cause| io(&cause, path))?;
        give(file, File::parse(&path.to_string_lossy(), bytes.into())?);
        Ok(())
    })
}

/// The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
///
/// Errors: `BAD_FILE`, `UNSUPPORTED`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_parse(
    label: Text,
    data: Bytes,
    size: usize,
    file: Option<&mut MaybeUninit<*mut File>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let file = place(file, "file")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        give(file, File::parse(label, bytes.into())?);
        Ok(())
    })
}

/// The header.
///
/// Errors: `INVALID_ARGUMENT`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_get_info(
    file: Option<&File>,
    info: Option<&mut MaybeUninit<FileInfo>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let info = place(info, "info")?;
        let parsed = handle(file, "file")?.parsed();
        let header = parsed.header();
        *info = FileInfo {
            kind: header.r#type,
            machine: header.machine,
            flags: header.flags,
            entry: header.entry,
            os_abi: header.os_abi,
            abi_version: header.abi_version,
            is_64: parsed.encoding().is_64(),
            is_big_endian: parsed.encoding().is_big_endian(),
        };
        Ok(())
    })
}

/// How many sections the file has, the null section (0) included; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_section_count(file: Option<&File>) -> usize {
    infallible(0, || file.map_or(0, |file| file.parsed().sections().iter().len()))
}

/// Section `index`, as it is numbered in the file: 0 is the null section.
///
/// Errors: `OUT_OF_RANGE`; `BAD_FILE` if its name is damaged.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_section(
    file: Option<&File>,
    index: usize,
    section: Option<&mut MaybeUninit<FileSection>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let section = place(section, "section")?;
        let file = handle(file, "file")?;
        *section = file.section_row(section_number(file, index)?)?;
        Ok(())
    })
}

/// The number of the first section of this name.
///
/// Errors: `NOT_FOUND`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_find_section(
    file: Option<&File>,
    name: Text,
    index: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let index = place(index, "index")?;
        let name = name.get("name")?;
        let parsed = handle(file, "file")?.parsed();
        let is_it = |header: &elf_core::SectionHeader| {
            parsed.section_name(header).is_ok_and(|found| found == name)
        };
        let found = parsed.sections().iter().skip(1).position(|header| is_it(&header));
        *index = found.ok_or_else(|| Error::not_found("section", name))?.saturating_add(1);
        Ok(())
    })
}

/// The bytes of section `index` as the file has them, without relocation or decompression: none of `SHT_NOBITS`. `*data` is NULL if
/// there are none; else good as long as the file.
///
/// Errors: `OUT_OF_RANGE`; `BAD_FILE` if they are not inside the file.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_section_data(
    file: Option<&File>,
    index: usize,
    data: Option<&mut MaybeUninit<*const c_void>>,
    size: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (data, size) = (empty(data), empty(size));
        let (data, size) = (needed(data, "data")?, needed(size, "size")?);
        let file = handle(file, "file")?;
        let index = section_number(file, index)?;
        let header = file.parsed().section(index).map_err(|error| file.damaged(error))?;
        let bytes = file.parsed().section_data(&header).map_err(|error| file.damaged(error))?;
        if !bytes.is_empty() {
            (*data, *size) = (bytes.as_ptr().cast(), bytes.len());
        }
        Ok(())
    })
}

/// How many segments the file has; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_segment_count(file: Option<&File>) -> usize {
    infallible(0, || file.map_or(0, |file| file.parsed().segments().iter().len()))
}

/// Segment `index`, from 0 on.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_segment(
    file: Option<&File>,
    index: usize,
    segment: Option<&mut MaybeUninit<FileSegment>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let segment = place(segment, "segment")?;
        let segments = handle(file, "file")?.parsed().segments();
        let missing = || Error::out_of_range("segment", index, segments.iter().len());
        let header = segments.get(index).ok_or_else(missing)?;
        *segment = FileSegment {
            kind: header.r#type,
            flags: header.flags.bits(),
            offset: header.offset,
            address: header.address,
            physical_address: header.physical_address,
            file_size: header.file_size,
            memory_size: header.memory_size,
            alignment: header.alignment,
        };
        Ok(())
    })
}

/// Frees a file; NULL is none.
///
/// Threads: nobody uses the file any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_free(file: Option<Box<File>>) {
    infallible((), || drop(file));
}
