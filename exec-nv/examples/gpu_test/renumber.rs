//! A cubin without its null sections and null symbols: all others have new numbers, wherever one is written.
//!
//! The notes of CUDA 13 are sections 5 and 6 in all that its tools write, and cuobjdump 13.5 takes a file for invalid in which they are
//! elsewhere: what is in front of them stays, null or not.

use elf_core::names::{
    SHF_EXECINSTR, SHT_CUDA_CALLGRAPH, SHT_CUDA_INFO, SHT_CUDA_PROTOTYPE, SHT_NOTE, SHT_NULL,
    SHT_REL, SHT_RELA, SHT_SYMTAB,
};
use elf_core::raw64::{Ehdr, Sym};
use nvinfo::{Cubin, Payload};
use zerocopy::{FromBytes, IntoBytes};

use crate::bench::Failure;
use crate::parts::{Part, parts, write};

/// Bits of `sh_info` of code that are a symbol's number; those above are registers.
const SYMBOL: u32 = 0x00ff_ffff;
/// First of the section numbers that are none: `SHN_LORESERVE`.
const RESERVED: u16 = 0xff00;

/// The new number of each old one; 0 for those that are gone.
struct Numbers(Vec<u32>);

impl Numbers {
    fn of(is_kept: impl Iterator<Item = bool>) -> Self {
        let mut next = 0;
        let number = |(index, is_kept)| {
            let kept = index == 0 || is_kept;
            next += u32::from(kept && index != 0);
            if kept { next } else { 0 }
        };
        Self((0..usize::MAX).zip(is_kept).map(number).collect())
    }

    /// The new number.
    fn get(&self, old: u32) -> Result<u32, Failure> {
        match self.0.get(old as usize) {
            Some(0) if old != 0 => Err(format!("number {old} is used and null").into()),
            Some(new) => Ok(*new),
            None => Err(format!("number {old} is past the {} there are", self.0.len()).into()),
        }
    }

    /// How many of the first `count` old ones are kept.
    fn kept(&self, count: u32) -> u32 {
        self.0.iter().take(count as usize).skip(1).filter(|new| **new != 0).count() as u32 + 1
    }
}

/// Puts the new number of a symbol where the old one is: the word at `at`.
fn renumber(bytes: &mut [u8], at: usize, symbols: &Numbers) -> Result<(), Failure> {
    let word = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>());
    let word = word.ok_or("a symbol's number outside its section")?;
    *word = symbols.get(u32::from_le_bytes(*word))?.to_le_bytes();
    Ok(())
}

/// Symbols that records of `.nv.info` name.
fn records(cubin: &Cubin<'_>, part: &mut Part, old: u32, symbols: &Numbers) -> Result<(), Failure> {
    let section = cubin.file().section(old)?;
    for row in cubin.attributes_in(&section)? {
        let row = row?;
        // behind format, number and size
        let start = (row.at - section.offset) as usize + 4;
        let count = match row.payload() {
            // the bank's symbol comes first
            Payload::OfSymbol { .. } | Payload::ParameterBank(_) => 1,
            Payload::Symbols(words) => words.into_iter().count(),
            _ => 0,
        };
        for word in 0..count {
            renumber(&mut part.bytes, start + 4 * word, symbols)?;
        }
    }
    Ok(())
}

/// Functions in rows of two words: negative numbers begin lists, and name none. The second word is a function in some lists of a call
/// graph, and a text in the others and in prototypes.
fn rows(part: &mut Part, symbols: &Numbers) -> Result<(), Failure> {
    let (is_graph, mut list) = (part.kind() == SHT_CUDA_CALLGRAPH, 0);
    for at in (0..part.bytes.len()).step_by(8) {
        let row = part.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let row = u64::from_le_bytes(*row.ok_or("half a row of functions")?);
        let (first, second) = (row as u32, ((row >> 32) as u32).cast_signed());
        if is_graph && first == 0 && second < 0 {
            list = second;
            continue;
        }
        renumber(&mut part.bytes, at, symbols)?;
        if is_graph && matches!(list, -1 | -4) {
            renumber(&mut part.bytes, at + 4, symbols)?;
        }
    }
    Ok(())
}

/// The table of symbols without null ones.
fn table(part: &mut Part, sections: &Numbers, symbols: &Numbers) -> Result<(), Failure> {
    let rows = <[Sym]>::ref_from_bytes(&part.bytes).map_err(|_| "a symbol table")?;
    let mut kept = Vec::new();
    for (index, (row, new)) in rows.iter().zip(&symbols.0).enumerate() {
        if index != 0 && *new == 0 {
            continue;
        }
        let mut row = *row;
        if row.st_shndx.get() < RESERVED {
            row.st_shndx.set(sections.get(row.st_shndx.get().into())? as u16);
        }
        kept.push(row);
    }
    part.bytes = kept.as_bytes().to_vec();
    let locals = symbols.kept(part.header.sh_info.get());
    part.header.sh_info.set(locals);
    Ok(())
}

/// The cubin with new numbers of sections and symbols.
pub(crate) fn renumbered(file: &[u8]) -> Result<Vec<u8>, Failure> {
    let (cubin, mut all) = (Cubin::parse(file)?, parts(file)?);
    let fixed = all.iter().rposition(|part| part.kind() == SHT_NOTE).unwrap_or(0);
    let is_there = |(index, part): (usize, &Part)| index <= fixed || part.kind() != SHT_NULL;
    let sections = Numbers::of(all.iter().enumerate().map(is_there));
    let names = all.iter().find(|part| part.kind() == SHT_SYMTAB).ok_or("no symbols")?;
    let rows_of_names = <[Sym]>::ref_from_bytes(&names.bytes).map_err(|_| "a symbol table")?;
    let is_named = |row: &Sym| row.as_bytes().iter().any(|byte| *byte != 0);
    let symbols = Numbers::of(rows_of_names.iter().map(is_named));
    for (old, part) in (0u32..).zip(&mut all) {
        let (link, info) = (part.header.sh_link.get(), part.header.sh_info.get());
        part.header.sh_link.set(sections.get(link)?);
        match part.kind() {
            SHT_NULL => continue,
            SHT_SYMTAB => table(part, &sections, &symbols)?,
            _ if part.header.sh_flags.get() & SHF_EXECINSTR != 0 => {
                part.header.sh_info.set(info & !SYMBOL | symbols.get(info & SYMBOL)?);
            }
            _ => part.header.sh_info.set(sections.get(info)?),
        }
        match part.kind() {
            SHT_CUDA_INFO => records(&cubin, part, old, &symbols)?,
            SHT_CUDA_CALLGRAPH | SHT_CUDA_PROTOTYPE => rows(part, &symbols)?,
            SHT_REL | SHT_RELA => {
                let size = if part.kind() == SHT_REL { 16 } else { 24 };
                for row in (0..part.bytes.len()).step_by(size) {
                    // the upper half of `r_info`
                    renumber(&mut part.bytes, row + 12, &symbols)?;
                }
            }
            _ => {}
        }
    }
    let mut new = sections.0.iter().enumerate().map(|(old, new)| old == 0 || *new != 0);
    all.retain(|_| new.next().unwrap_or(true));
    let mut start = file.get(..64).ok_or("no file header")?.to_vec();
    let (header, _) = Ehdr::mut_from_prefix(&mut start).map_err(|_| "no file header")?;
    let header: &mut Ehdr = header;
    header.e_shnum.set(all.len() as u16);
    header.e_shstrndx.set(sections.get(header.e_shstrndx.get().into())? as u16);
    write(&start, &all, false)
}
