//! Code that wants its thread-local variables near the thread pointer (initial exec), of which there is no room there: its objects once
//! more, with code that asks a TLS descriptor instead.
//!
//! Initial exec is one instruction, `mov` or `add x@gottpoff(%rip), %reg` (Drepper, "ELF Handling For Thread-Local Storage", 4.4.6), in
//! whose seven bytes no call has room, and behind which no register is free. It becomes a jump to code of its own, which keeps
//! all registers, the flags and the 128 bytes below the stack (psABI AMD64, 3.2.2), and jumps back. What code was compiled to have at a fixed offset
//! (local exec) stays that, and is refused.

use archs::reloc_x86::x86_64::{
    R_X86_64_GOTPC32_TLSDESC, R_X86_64_GOTTPOFF, R_X86_64_PLT32, R_X86_64_TLSDESC_CALL,
};
use elf_core::names::{
    EM_X86_64, SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS, SHT_RELA, STB_LOCAL, STB_WEAK, STT_NOTYPE,
    STT_TLS, STV_HIDDEN,
};
use elf_core::{File, Name, Record, SymbolTable};
use std::collections::HashSet;

const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const RELOCATION: usize = 24;

/// The names of the thread-local variables that the files define for one another.
pub(crate) fn variables<'a>(files: &[File<'a>]) -> HashSet<Name<'a>> {
    let mut names = HashSet::new();
    for table in files.iter().filter_map(|file| file.symbol_table().ok().flatten()) {
        let globals = table.symbols().iter().skip(table.first_global());
        let own = globals.filter(|symbol| symbol.r#type() == STT_TLS && !symbol.is_undefined());
        names.extend(own.filter_map(|symbol| table.name_of(&symbol).ok()));
    }
    names
}

/// The object with such code, where it reaches `variables` or what is local; `None` if it has none, or if it is not for this machine.
///
/// Symbols of the object, which is number `number` of the load, are named for that.
pub(crate) fn by_descriptors(
    file: &File<'_>,
    number: usize,
    variables: &HashSet<Name<'_>>,
) -> Option<Vec<u8>> {
    let header = file.header();
    let table = file.symbol_table().ok()??;
    let is_ours = header.machine == EM_X86_64 && file.encoding().is_64();
    if !is_ours || file.sections().len() >= 0xff00 {
        return None;
    }
    let mut object = Object::new(file, table)?;
    for section in file.sections() {
        if section.r#type == SHT_RELA
            && let Ok(Some(records)) = file.relocations(&section)
        {
            for (at, record) in (0u64..).zip(records.iter()) {
                if record.r#type == R_X86_64_GOTTPOFF && is_of_load(&table, &record, variables) {
                    let place = section.offset.checked_add(at.checked_mul(RELOCATION as u64)?)?;
                    object.replace(section.info, place, &record)?;
                }
            }
        }
    }
    object.finish(number)
}

/// Whether the variable is one of the load's, which has no place near the thread pointer. Those of libraries have.
fn is_of_load(table: &SymbolTable<'_>, record: &Record, variables: &HashSet<Name<'_>>) -> bool {
    let Ok(symbol) = table.get(record.symbol) else { return false };
    symbol.binding() == STB_LOCAL
        || !symbol.is_undefined()
        || table.name_of(&symbol).is_ok_and(|name| variables.contains(&name))
}

/// An object that gets a section with code, its relocations, and symbols for that section and those that jump there.
struct Object<'f, 'a> {
    file: &'f File<'a>,
    bytes: Vec<u8>,
    /// The code, and its relocations: offset, symbol, type, addend.
    code: Vec<u8>,
    relocations: Vec<(usize, u64, u32, i64)>,
    /// Sections with jumps, each with a symbol behind that of the code.
    sections: Vec<u32>,
    symbol_table: u32,
    symbols: u64,
}

impl<'f, 'a> Object<'f, 'a> {
    fn new(file: &'f File<'a>, table: SymbolTable<'a>) -> Option<Self> {
        Some(Self {
            file,
            bytes: file.bytes().to_vec(),
            code: Vec::new(),
            relocations: Vec::new(),
            sections: Vec::new(),
            symbol_table: table.section(),
            symbols: table.len() as u64,
        })
    }

    /// Makes the instruction of a record, whose row is at `row` of the file, a jump. `None` if it is no instruction that is known.
    fn replace(&mut self, section: u32, row: u64, record: &Record) -> Option<()> {
        let header = self.file.section(section).ok()?;
        let start = record.offset.checked_sub(3)?;
        let at = usize::try_from(header.offset.checked_add(start)?).ok()?;
        let place: &mut [u8; 7] = self.bytes.get_mut(at..)?.first_chunk_mut()?;
        let [rex @ (0x48 | 0x4c), opcode @ (0x8b | 0x03), modrm, ..] = *place else { return None };
        let register = modrm >> 3 & 7 | (rex & 4) << 1;
        if modrm & 0o307 != 0o005 || register == 4 {
            return None;
        }
        // jmp; a nop of two bytes
        *place = [0xe9, 0, 0, 0, 0, 0x66, 0x90];
        let stub = self.code.len();
        let addend = i64::try_from(stub).ok()?.checked_sub(4)?;
        let row = usize::try_from(row).ok()?;
        let row: &mut [u8; RELOCATION] = self.bytes.get_mut(row..)?.first_chunk_mut()?;
        *row = rela(start.checked_add(1)?, self.symbols, R_X86_64_PLT32, addend);

        let own = self.sections.iter().position(|known| *known == section);
        let own = own.unwrap_or_else(|| {
            self.sections.push(section);
            self.sections.len().saturating_sub(1)
        });
        let origin = self.symbols.checked_add(1)?.checked_add(own as u64)?;
        let is_move = opcode == 0x8b;
        self.code.extend([0x48, 0x8d, 0x64, 0x24, 0x80]); // lea -128(%rsp), %rsp
        if is_move {
            self.code.push(0x9c); // pushfq
        }
        self.code.extend([0x50, 0x48, 0x8d, 0x05]); // push %rax; lea x@tlsdesc(%rip), %rax
        let variable = u64::from(record.symbol);
        let addend = record.addend.unwrap_or(-4);
        self.relocations.push((self.code.len(), variable, R_X86_64_GOTPC32_TLSDESC, addend));
        self.code.extend([0; 4]);
        self.relocations.push((self.code.len(), variable, R_X86_64_TLSDESC_CALL, 0));
        self.code.extend([0xff, 0x10]); // call *x@tlscall(%rax)
        let high = u8::from(register > 7);
        let low = register & 7;
        match (is_move, register) {
            // lea 8(%rsp), %rsp; popfq
            (true, 0) => self.code.extend([0x48, 0x8d, 0x64, 0x24, 0x08, 0x9d]),
            // mov %rax, %reg; pop %rax; popfq
            (true, _) => self.code.extend([0x48 | high, 0x89, 0o300 | low, 0x58, 0x9d]),
            // add (%rsp), %rax
            (false, 0) => self.code.extend([0x48, 0x03, 0x04, 0x24]),
            // xchg %rax, (%rsp); add (%rsp), %reg
            (false, _) => {
                self.code.extend([0x48, 0x87, 0x04, 0x24]);
                self.code.extend([0x48 | high << 2, 0x03, low << 3 | 4, 0x24]);
            }
        }
        let rest: u32 = if is_move { 128 } else { 136 };
        self.code.extend([0x48, 0x8d, 0xa4, 0x24]); // lea rest(%rsp), %rsp
        self.code.extend(rest.to_le_bytes());
        self.code.push(0xe9); // jmp back
        let back = i64::try_from(start).ok()?.checked_add(7)?.checked_sub(4)?;
        self.relocations.push((self.code.len(), origin, R_X86_64_PLT32, back));
        self.code.extend([0; 4]);
        Some(())
    }

    /// The object with what was added; `None` if nothing was.
    fn finish(mut self, number: usize) -> Option<Vec<u8>> {
        if self.code.is_empty() {
            return None;
        }
        let sections = self.file.sections();
        let count = u32::try_from(sections.len()).ok()?;
        let header_of = |index: u32| self.file.section(index).ok();
        let symbols = header_of(self.symbol_table)?;
        let strings = header_of(symbols.link)?;
        let mut names = self.file.section_data(&strings).ok()?.to_vec();
        let mut table = self.file.section_data(&symbols).ok()?.to_vec();
        let code_section = count;
        let targets = core::iter::once(code_section).chain(self.sections.iter().copied());
        for section in targets {
            let name = u32::try_from(names.len()).ok()?;
            names.extend(format!("__hoist_initial_exec_{number}_{section}\0").bytes());
            table.extend(name.to_le_bytes());
            // weak: the section may be another object's, whose group comes first
            table.extend([STB_WEAK << 4 | STT_NOTYPE, STV_HIDDEN]);
            table.extend(u16::try_from(section).ok()?.to_le_bytes());
            table.extend([0; 16]);
        }
        let rows: Vec<u8> = self
            .relocations
            .iter()
            .flat_map(|&(at, symbol, r#type, addend)| rela(at as u64, symbol, r#type, addend))
            .collect();
        let mut headers = Vec::new();
        let start = usize::try_from(self.section_headers()?).ok()?;
        let size = (count as usize).checked_mul(SECTION_HEADER)?;
        headers.extend(self.bytes.get(start..)?.get(..size)?);
        let mut put = |bytes: &[u8]| {
            self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
            let at = self.bytes.len() as u64;
            self.bytes.extend(bytes);
            [at, bytes.len() as u64]
        };
        let moved = [(symbols.link, put(&names)), (self.symbol_table, put(&table))];
        for (section, [offset, size]) in moved {
            let header = headers.chunks_exact_mut(SECTION_HEADER).nth(section as usize)?;
            header.get_mut(24..32)?.copy_from_slice(&offset.to_le_bytes());
            header.get_mut(32..40)?.copy_from_slice(&size.to_le_bytes());
        }
        let flags = SHF_ALLOC | SHF_EXECINSTR;
        let [at, size] = put(&self.code);
        headers.extend(section_header(SHT_PROGBITS, [flags, at, size], (0, 0), (16, 0)));
        let [at, size] = put(&rows);
        let links = (self.symbol_table, code_section);
        headers.extend(section_header(SHT_RELA, [0, at, size], links, (8, RELOCATION as u64)));
        let [at, _] = put(&headers);
        self.bytes.get_mut(40..48)?.copy_from_slice(&at.to_le_bytes());
        let count = u16::try_from(count.checked_add(2)?).ok()?;
        self.bytes.get_mut(60..62)?.copy_from_slice(&count.to_le_bytes());
        debug_assert!(table.len().is_multiple_of(SYMBOL), "whole symbols");
        Some(self.bytes)
    }

    /// Where the file has its section headers (`e_shoff`).
    fn section_headers(&self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes.get(40..)?.first_chunk()?))
    }
}

/// A row of a relocation section (gABI ch. 4, "Relocation").
fn rela(offset: u64, symbol: u64, r#type: u32, addend: i64) -> [u8; RELOCATION] {
    let info = symbol << 32 | u64::from(r#type);
    let mut row = [0; RELOCATION];
    let words = [offset, info, addend.cast_unsigned()];
    row.as_chunks_mut().0.iter_mut().zip(words).for_each(|(place, it)| *place = it.to_le_bytes());
    row
}

/// A section header without a name or an address.
fn section_header(
    r#type: u32,
    [flags, offset, size]: [u64; 3],
    (link, info): (u32, u32),
    (alignment, entry): (u64, u64),
) -> [u8; SECTION_HEADER] {
    let halves = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let words = [halves(0, r#type), flags, 0, offset, size, halves(link, info), alignment, entry];
    let mut header = [0; SECTION_HEADER];
    let places = header.as_chunks_mut().0.iter_mut();
    places.zip(words).for_each(|(place, it)| *place = it.to_le_bytes());
    header
}
