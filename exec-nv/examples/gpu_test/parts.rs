//! The sections of a cubin, taken apart and written anew.

use elf_core::names::{
    SHF_ALLOC as ALLOC, SHF_EXECINSTR as EXECUTE, SHF_WRITE as WRITE, SHT_NOBITS as NOBITS,
    SHT_NULL as NULL,
};
use elf_core::raw64::{Ehdr, Phdr, Shdr};
use zerocopy::{FromBytes, IntoBytes};

use crate::bench::Failure;

/// A section: its header, and its bytes in the file.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) header: Shdr,
    pub(crate) bytes: Vec<u8>,
}

impl Part {
    pub(crate) fn kind(&self) -> u32 {
        self.header.sh_type.get()
    }

    pub(crate) fn null() -> Result<Self, Failure> {
        let header = Shdr::read_from_bytes(&[0; 64]).map_err(|_| "a section header")?;
        Ok(Self { header, bytes: Vec::new() })
    }
}

/// `count` bytes from `at`.
fn slice(file: &[u8], at: u64, count: u64) -> Result<&[u8], Failure> {
    let end = at.checked_add(count).ok_or("a part of the cubin")?;
    Ok(file.get(at as usize..end as usize).ok_or("a part of the cubin")?)
}

/// The sections of a cubin.
pub(crate) fn parts(file: &[u8]) -> Result<Vec<Part>, Failure> {
    let (header, _) = Ehdr::read_from_prefix(file).map_err(|_| "no file header")?;
    let header: Ehdr = header;
    let (table, count) = (header.e_shoff.get(), u64::from(header.e_shnum.get()));
    slice(file, table, 64 * count)?
        .chunks_exact(64)
        .map(|row| {
            let header = Shdr::read_from_bytes(row).map_err(|_| "a section header")?;
            let header: Shdr = header;
            let empty = matches!(header.sh_type.get(), NULL | NOBITS);
            let size = if empty { 0 } else { header.sh_size.get() };
            let bytes = if empty { &[][..] } else { slice(file, header.sh_offset.get(), size)? };
            Ok(Part { header, bytes: bytes.to_vec() })
        })
        .collect()
}

/// The permissions of a section in memory, as segments have them.
fn permissions(header: &Shdr) -> u32 {
    let flags = header.sh_flags.get();
    let has = |flag, bit| if flags & flag != 0 { bit } else { 0 };
    4 | has(WRITE, 2) | has(EXECUTE, 1)
}

/// The cubin with these sections, a segment for each of them, or for all of the same permissions.
pub(crate) fn write(original: &[u8], parts: &[Part], grouped: bool) -> Result<Vec<u8>, Failure> {
    let mut out = slice(original, 0, 64)?.to_vec();
    let mut headers: Vec<Shdr> = parts.iter().map(|part| part.header).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    if grouped {
        // what has no bytes comes last in its group
        let key = |part: &Part| {
            let allocated = part.header.sh_flags.get() & ALLOC != 0;
            (allocated, permissions(&part.header), part.kind() == NOBITS)
        };
        order.sort_by_key(|&index| parts.get(index).map(key));
    }
    let mut segments: Vec<(u32, u64, u64, u64)> = Vec::new();
    for index in order {
        let (Some(part), Some(header)) = (parts.get(index), headers.get_mut(index)) else {
            continue;
        };
        if part.kind() == NULL {
            continue;
        }
        out.resize(out.len().next_multiple_of(part.header.sh_addralign.get().max(1) as usize), 0);
        let (offset, size) = (out.len() as u64, part.bytes.len() as u64);
        out.extend_from_slice(&part.bytes);
        header.sh_offset.set(offset);
        if part.kind() != NOBITS {
            header.sh_size.set(size);
        }
        if header.sh_flags.get() & ALLOC == 0 {
            continue;
        }
        let flags = permissions(header);
        match segments.last_mut() {
            Some((last, start, in_file, in_memory)) if grouped && *last == flags => {
                *in_file = offset + size - *start;
                let size = if part.kind() == NOBITS { header.sh_size.get() } else { size };
                *in_memory = offset + size - *start;
            }
            _ => segments.push((flags, offset, size, header.sh_size.get())),
        }
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let section_table = out.len() as u64;
    out.extend_from_slice(headers.as_bytes());
    let segment_table = out.len() as u64;
    let all = 56 * (segments.len() as u64 + 2);
    let tables = [(6, 4, segment_table, all, all), (1, 4, segment_table, all, all)];
    let loads =
        segments.iter().map(|&(flags, at, in_file, in_memory)| (1, flags, at, in_file, in_memory));
    for (kind, flags, offset, in_file, in_memory) in tables.into_iter().chain(loads) {
        let row: Phdr = Phdr {
            p_type: kind.into(),
            p_flags: flags.into(),
            p_offset: offset.into(),
            p_vaddr: 0.into(),
            p_paddr: 0.into(),
            p_filesz: in_file.into(),
            p_memsz: in_memory.into(),
            p_align: 8.into(),
        };
        out.extend_from_slice(row.as_bytes());
    }
    let (header, _) = Ehdr::mut_from_prefix(&mut out).map_err(|_| "no file header")?;
    let header: &mut Ehdr = header;
    header.e_shoff.set(section_table);
    header.e_phoff.set(segment_table);
    header.e_phentsize.set(56);
    header.e_phnum.set(segments.len() as u16 + 2);
    Ok(out)
}
