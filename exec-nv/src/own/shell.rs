//! A cubin that has everything of one kernel but its code.

use std::collections::BTreeSet;

use elf_core::names::{
    PF_R, PF_W, PF_X, PT_LOAD, PT_PHDR, SHF_CUDA_MERCURY, SHT_CUDA_CALLGRAPH, SHT_CUDA_COMPAT_INFO,
    SHT_CUDA_INFO, SHT_CUDA_PROTOTYPE, SHT_NOBITS, SHT_NOTE, SHT_REL, SHT_RELA, SHT_STRTAB,
    SHT_SYMTAB, STT_SECTION,
};
use elf_core::raw64::{Ehdr, Phdr, Shdr, Sym};
use elf_core::{Definition, Name, SectionFlags, SectionHeader, Symbol};
use nvinfo::{Attribute, AttributeValue, Attributes, Cubin, Function, Payload};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::entry::{ENTRY_SIZE, EXIT_OFFSET, entry};
use super::error::OwnError;
use super::plan::{Plan, is_bank};
use super::reach::reached;
use crate::error::Error;

/// A cubin that can be launched as `kernel` is, with the same registers, shared and local memory, barriers, parameters and
/// constants, whose code goes on where the kernel is in the image at `base`. `image` is what [`Plan::write`] gave for `base`.
///
/// Sections and symbols keep their numbers: those that are not needed are null. Relocations of constants against what only the
/// driver knows stay, for the driver.
///
/// # Errors
/// [`Error::NoKernel`], [`Error::Cubin`]; [`Error::Own`] for kernels with textures, and those that call the driver's functions other
/// than through constants.
pub fn shell(plan: &Plan<'_>, image: &[u8], base: u64, kernel: &str) -> Result<Vec<u8>, Error> {
    let cubin = Cubin::parse(plan.bytes())?;
    let Some(kernel) = cubin.kernel(Name(kernel.as_bytes())) else {
        let kernels = cubin.kernels().map(|kernel| kernel.name().to_string()).collect();
        return Err(Error::NoKernel { name: kernel.into(), kernels });
    };
    plan.check_kernel(&kernel)?;
    let code = plan.section(kernel.section()).ok_or(DAMAGED_CODE)?;
    let address = base.checked_add(code).and_then(|code| code.checked_add(kernel.symbol().value));
    let address = address.ok_or(DAMAGED_CODE)?;
    let reached = reached(&cubin, kernel.index())?;
    Shell { plan, cubin, kernel, image, address, reached }.write()
}

/// `EIATTR_EXIT_INSTR_OFFSETS`.
const EXIT_INSTR_OFFSETS: u8 = 0x1c;
/// `EIATTR_COOP_GROUP_INSTR_OFFSETS`, and `EIATTR_COOP_GROUP_MASK_REGIDS`, which has a register for each of its offsets.
const COOP_GROUP: [u8; 2] = [0x28, 0x29];

/// The largest alignment of a section in a shell.
const LARGEST_ALIGNMENT: usize = 1 << 16;

const DAMAGED_CODE: OwnError = OwnError::Damaged { what: "the place of the code" };

struct Shell<'s, 'a> {
    plan: &'s Plan<'a>,
    cubin: Cubin<'a>,
    kernel: Function<'a>,
    image: &'s [u8],
    address: u64,
    /// Symbols of the functions that the kernel may get to.
    reached: BTreeSet<u32>,
}

/// What a section holds in the shell.
enum Content {
    /// It is not there.
    Null,
    /// It takes no bytes in the file.
    NoBits,
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Shell<'_, '_> {
    fn write(&self) -> Result<Vec<u8>, Error> {
        let file = self.cubin.file();
        let contents: Vec<(SectionHeader, Content)> = (0..u32::MAX)
            .zip(file.sections())
            .map(|(index, section)| Ok((section, self.content(index, &section)?)))
            .collect::<Result<_, Error>>()?;
        let symbols = self.symbols(&contents)?;

        let mut out = self.file_header()?.as_bytes().to_vec();
        let (mut headers, mut segments) = (Vec::new(), Vec::new());
        for (section, content) in &contents {
            let bytes = match content {
                Content::Null => {
                    headers.push(header(&SectionHeader::default(), 0, 0));
                    continue;
                }
                Content::NoBits => &[][..],
                Content::Bytes(_) if section.r#type == SHT_SYMTAB => symbols.as_bytes(),
                Content::Bytes(bytes) => bytes,
            };
            let alignment = usize::try_from(section.alignment.max(1)).unwrap_or(usize::MAX);
            if alignment > LARGEST_ALIGNMENT {
                return Err(OwnError::Damaged { what: "the alignment of a section" }.into());
            }
            out.resize(out.len().next_multiple_of(alignment), 0);
            let offset = out.len() as u64;
            out.extend_from_slice(bytes);
            let is_empty = matches!(content, Content::NoBits);
            let size = if is_empty { section.size } else { bytes.len() as u64 };
            headers.push(header(section, offset, size));
            if section.flags.contains(SectionFlags::ALLOC) {
                segments.push(segment(section, offset, bytes.len() as u64, size));
            }
        }
        out.resize(out.len().next_multiple_of(8), 0);
        let section_table = out.len() as u64;
        out.extend_from_slice(headers.as_bytes());
        let segment_table = out.len() as u64;
        let all =
            (segments.len() as u64).saturating_add(2).saturating_mul(size_of::<Phdr>() as u64);
        let table = |r#type| program_header((r#type, PF_R), segment_table, all, all);
        out.extend_from_slice([table(PT_PHDR), table(PT_LOAD)].as_bytes());
        out.extend_from_slice(segments.as_bytes());

        let count = segments.len().saturating_add(2) as u16;
        if let Ok((header, _)) = Ehdr::mut_from_prefix(&mut out) {
            let header: &mut Ehdr = header;
            header.e_shoff.set(section_table);
            header.e_phoff.set(segment_table);
            header.e_phnum.set(count);
            header.e_phentsize.set(size_of::<Phdr>() as u16);
        }
        Ok(out)
    }

    fn file_header(&self) -> Result<Ehdr, Error> {
        let (header, _) = Ehdr::read_from_prefix(self.plan.bytes())
            .map_err(|_| OwnError::Damaged { what: "the file header" })?;
        Ok(header)
    }

    /// What a section of the file holds in the shell.
    fn content(&self, index: u32, section: &SectionHeader) -> Result<Content, Error> {
        let file = self.cubin.file();
        if section.flags.bits() & SHF_CUDA_MERCURY != 0 {
            return Ok(Content::Null);
        }
        let name = file.section_name(section)?;
        let (text, name) = (self.kernel.section(), name.as_bytes());
        let data = || file.section_data(section);
        Ok(match section.r#type {
            SHT_STRTAB | SHT_SYMTAB | SHT_NOTE | SHT_CUDA_COMPAT_INFO => {
                Content::Bytes(data()?.to_vec())
            }
            SHT_CUDA_INFO if name == b".nv.info" => Content::Bytes(self.module_info(section)?),
            SHT_CUDA_INFO if section.info == text => Content::Bytes(self.kernel_info(section)?),
            SHT_CUDA_INFO if self.is_reached(section.info) => {
                Content::Bytes(self.function_info(section)?)
            }
            SHT_CUDA_CALLGRAPH => Content::Bytes(self.calls(data()?)),
            SHT_CUDA_PROTOTYPE => Content::Bytes(self.prototypes(data()?)),
            SHT_REL | SHT_RELA if self.is_our_bank(section.info)? => {
                let bytes = self.open_relocations(section)?;
                if bytes.is_empty() { Content::Null } else { Content::Bytes(bytes) }
            }
            SHT_REL | SHT_RELA => Content::Null,
            _ if index == text => Content::Bytes(entry(self.address).to_vec()),
            // nothing runs there: the section is what the function's records and symbol refer to
            _ if self.is_reached(index) => Content::Bytes(entry(self.address).to_vec()),
            _ if self.is_our_bank(index)? => Content::Bytes(self.relocated(index, section)?),
            _ if name.starts_with(b".nv.shared.reserved.") => Content::NoBits,
            _ if section.info == text
                && [&b".nv.shared."[..], b".nv.local."]
                    .iter()
                    .any(|prefix| name.starts_with(prefix)) =>
            {
                Content::NoBits
            }
            _ => Content::Null,
        })
    }

    /// Whether a section is a constant bank of the kernel or of the module.
    fn is_our_bank(&self, index: u32) -> Result<bool, Error> {
        let file = self.cubin.file();
        let section = file.section(index)?;
        let is_ours = section.info == 0 || section.info == self.kernel.section();
        let is_plain = section.flags.bits() & SHF_CUDA_MERCURY == 0;
        Ok(is_plain && is_ours && is_bank(file.section_name(&section)?))
    }

    /// The bytes of a section as they are in the image.
    fn relocated(&self, index: u32, section: &SectionHeader) -> Result<Vec<u8>, Error> {
        let place = self.plan.section(index).and_then(|start| {
            let start = usize::try_from(start).ok()?;
            self.image.get(start..)?.get(..usize::try_from(section.size).ok()?)
        });
        Ok(place.ok_or(OwnError::Damaged { what: "the place of a constant bank" })?.to_vec())
    }

    /// The relocations of a bank that only the driver can apply: their records as they are.
    fn open_relocations(&self, section: &SectionHeader) -> Result<Vec<u8>, Error> {
        let file = self.cubin.file();
        let data = file.section_data(section)?;
        let size = usize::try_from(section.entry_size).unwrap_or(0).max(1);
        let mut open = Vec::new();
        for (record, bytes) in
            file.relocations(section)?.into_iter().flatten().zip(data.chunks(size))
        {
            if self.cubin.symbol(record.symbol)?.0.is_undefined() && record.symbol != 0 {
                open.extend_from_slice(bytes);
            }
        }
        Ok(open)
    }

    /// `.nv.info` with what it says of the kernel, what that may get to, and the module.
    fn module_info(&self, section: &SectionHeader) -> Result<Vec<u8>, Error> {
        self.info(section, |row| match row.payload() {
            Payload::OfSymbol { symbol, .. } => {
                symbol == self.kernel.index() || self.reached.contains(&symbol)
            }
            _ => true,
        })
    }

    /// `.nv.info.F` without what it says of places in the code.
    fn function_info(&self, section: &SectionHeader) -> Result<Vec<u8>, Error> {
        self.info(section, |row| {
            let of_code = row.payload().code_offsets().next().is_some();
            !of_code && row.number != EXIT_INSTR_OFFSETS && !COOP_GROUP.contains(&row.number)
        })
    }

    /// `.nv.info.K` without what it says of places in the code, but for the end of threads.
    fn kernel_info(&self, section: &SectionHeader) -> Result<Vec<u8>, Error> {
        let mut bytes = self.function_info(section)?;
        let exits = [4, EXIT_INSTR_OFFSETS, 4, 0];
        bytes.extend_from_slice(&exits);
        bytes.extend_from_slice(&EXIT_OFFSET.to_le_bytes());
        Ok(bytes)
    }

    /// The records of a section that `is_kept`.
    fn info(
        &self,
        section: &SectionHeader,
        is_kept: impl Fn(&Attribute<'_>) -> bool,
    ) -> Result<Vec<u8>, Error> {
        let data = self.cubin.file().section_data(section)?;
        let rows: Attributes<'_> = self.cubin.attributes_in(section)?;
        let mut kept = Vec::with_capacity(data.len());
        for row in rows {
            let row = row?;
            let size = match row.value {
                AttributeValue::Bytes(bytes) => bytes.len().saturating_add(4),
                _ => 4,
            };
            let start =
                usize::try_from(row.at.saturating_sub(section.offset)).unwrap_or(usize::MAX);
            let record = data.get(start..).and_then(|rest| rest.get(..size));
            if is_kept(&row) {
                kept.extend_from_slice(record.unwrap_or_default());
            }
        }
        Ok(kept)
    }

    /// Whether a section is the code of a function that the kernel may get to.
    fn is_reached(&self, section: u32) -> bool {
        section != 0
            && self.reached.iter().any(|&index| {
                self.cubin
                    .symbol(index)
                    .is_ok_and(|(symbol, _)| self.section_of(index, &symbol) == Some(section))
            })
    }

    /// Whether a function's symbol is in the shell.
    fn is_there(&self, function: u32) -> bool {
        function == self.kernel.index() || self.reached.contains(&function)
    }

    /// The call graph without functions that are not there. The second word of a row is a function in the lists -1 and -4, a text
    /// in -2 and -3.
    fn calls(&self, data: &[u8]) -> Vec<u8> {
        let mut list = 0;
        let is_kept = |row: &&[u8; 8]| {
            let (first, second) = words(row);
            if first == 0 && second.cast_signed() < 0 {
                list = second.cast_signed();
                return true;
            }
            self.is_there(first) && (!matches!(list, -1 | -4) || self.is_there(second))
        };
        data.as_chunks().0.iter().filter(is_kept).flatten().copied().collect()
    }

    /// The prototypes of functions that are there.
    fn prototypes(&self, data: &[u8]) -> Vec<u8> {
        let is_kept = |row: &&[u8; 8]| self.is_there(words(row).0);
        data.as_chunks().0.iter().filter(is_kept).flatten().copied().collect()
    }

    /// The symbol table: each symbol as it is, or null.
    fn symbols(&self, contents: &[(SectionHeader, Content)]) -> Result<Vec<Sym>, Error> {
        let damaged = || OwnError::Damaged { what: "the symbol table" };
        let table = contents.iter().find(|(section, _)| section.r#type == SHT_SYMTAB);
        let Some((_, Content::Bytes(bytes))) = table else { return Ok(Vec::new()) };
        let rows = <[Sym]>::ref_from_bytes(bytes).map_err(|_| damaged())?;
        let is_there = |section: u32| {
            let content = contents.get(section as usize).map(|(_, content)| content);
            !matches!(content, None | Some(Content::Null))
        };
        let text = self.kernel.section();
        let keep = |(index, row): (u32, &Sym)| -> Result<Sym, Error> {
            let (symbol, name) = self.cubin.symbol(index)?;
            let section = self.section_of(index, &symbol);
            let is_kept = if self.is_there(index) {
                true
            } else if symbol.is_undefined() {
                self.names(index)? || name.as_bytes().starts_with(b".nv.reservedSmem")
            } else {
                section.is_some_and(is_there)
                    && (section != Some(text) || symbol.r#type() == STT_SECTION)
            };
            let mut row = if is_kept { *row } else { Sym::new_zeroed() };
            if self.is_there(index) && !symbol.is_undefined() {
                row.st_value.set(0);
                row.st_size.set(ENTRY_SIZE as u64);
            }
            Ok(row)
        };
        (0..u32::MAX).zip(rows).map(keep).collect()
    }

    fn section_of(&self, index: u32, symbol: &Symbol) -> Option<u32> {
        match self.cubin.symbols()?.section_of(index, symbol) {
            Ok(Definition::Section(section)) => Some(section),
            _ => None,
        }
    }

    /// Whether the kernel, or one of its banks, names an undefined symbol.
    fn names(&self, index: u32) -> Result<bool, Error> {
        for row in self.kernel.attributes()? {
            if let Payload::Symbols(symbols) = row?.payload()
                && symbols.into_iter().any(|symbol| symbol == index)
            {
                return Ok(true);
            }
        }
        let file = self.cubin.file();
        for section in file.sections() {
            if matches!(section.r#type, SHT_REL | SHT_RELA)
                && section.flags.bits() & SHF_CUDA_MERCURY == 0
                && self.is_our_bank(section.info)?
                && file.relocations(&section)?.into_iter().flatten().any(|row| row.symbol == index)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The two words of a row.
const fn words(row: &[u8; 8]) -> (u32, u32) {
    let row = u64::from_le_bytes(*row);
    (row as u32, (row >> 32) as u32)
}

/// The header of a section that is at `offset` now.
fn header(section: &SectionHeader, offset: u64, size: u64) -> Shdr {
    Shdr {
        sh_name: section.name.into(),
        sh_type: section.r#type.into(),
        sh_flags: section.flags.bits().into(),
        sh_addr: section.address.into(),
        sh_offset: offset.into(),
        sh_size: size.into(),
        sh_link: section.link.into(),
        sh_info: section.info.into(),
        sh_addralign: section.alignment.into(),
        sh_entsize: section.entry_size.into(),
    }
}

/// What a loader takes of a section, as the CUDA tools write it: at address 0.
fn segment(section: &SectionHeader, offset: u64, in_file: u64, in_memory: u64) -> Phdr {
    let has = |flag, bit| if section.flags.contains(flag) { bit } else { 0 };
    let flags = PF_R | has(SectionFlags::WRITE, PF_W) | has(SectionFlags::EXECINSTR, PF_X);
    let in_memory = if section.r#type == SHT_NOBITS { in_memory } else { in_file };
    program_header((PT_LOAD, flags), offset, in_file, in_memory)
}

fn program_header((r#type, flags): (u32, u32), offset: u64, in_file: u64, in_memory: u64) -> Phdr {
    Phdr {
        p_type: r#type.into(),
        p_flags: flags.into(),
        p_offset: offset.into(),
        p_vaddr: 0.into(),
        p_paddr: 0.into(),
        p_filesz: in_file.into(),
        p_memsz: in_memory.into(),
        p_align: 8.into(),
    }
}
