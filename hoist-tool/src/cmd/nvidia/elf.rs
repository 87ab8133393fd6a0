//! `-elf`: header, sections, symbols, contents, notes, attributes and relocations as cuobjdump prints them, and tables of unwinding. Other debug
//! information is left out.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;

use anyhow::Result;
use elf_core::names::{
    EM_CUDA, SHT_CUDA_CALLGRAPH, SHT_CUDA_COMPAT_INFO, SHT_CUDA_CONSTANT, SHT_CUDA_CONSTANT_B0,
    SHT_CUDA_CONSTANT_B15, SHT_CUDA_GLOBAL_INIT, SHT_CUDA_INFO, SHT_CUDA_LOCAL, SHT_CUDA_PROTOTYPE,
    SHT_CUDA_RELOCINFO, SHT_CUDA_RESERVED_SHARED, SHT_CUDA_SHARED, SHT_NOBITS, SHT_NOTE,
    SHT_PROGBITS, section_type,
};
use elf_core::{File, Name, SectionHeader};
use fatbin::{Sm, Suffix};
use nvinfo::{AttributeValue, Cubin, HeaderForm, KernelNeeds, LinkStage, Resources, compat_name};

use super::reports::short;
use crate::cmd::show::Dump;

mod actions;
mod attributes;
mod frames;
mod notes;
mod words;

use actions::actions;
use attributes::value;
use frames::frames;
use notes::notes;

/// Prints all of a cubin.
pub(super) fn elf(bytes: &[u8], sm: Sm, out: &mut dyn Write) -> Result<()> {
    let cubin = Cubin::parse(bytes)?;
    let file = *cubin.file();
    header(&cubin, sm, out)?;
    let sections: Vec<_> = (0u32..).zip(file.sections()).collect();
    table(&file, &sections, out)?;
    writeln!(out, "\n.section .strtab\n\n.section .shstrtab\n\n.section .symtab")?;
    symbols(file, out)?;
    let name = |section: &SectionHeader| file.section_name(section).unwrap_or_default();
    let rank = |section: &SectionHeader| match section.r#type {
        // tables of unwinding and debug information are the last
        _ if is_debug(name(section)) => 7,
        SHT_PROGBITS if name(section).as_bytes().starts_with(b".text") => 6,
        SHT_NOTE => 1,
        SHT_CUDA_INFO | SHT_CUDA_COMPAT_INFO => 2,
        SHT_CUDA_CALLGRAPH => 3,
        SHT_CUDA_PROTOTYPE => 4,
        SHT_CUDA_RELOCINFO => 5,
        _ => 0,
    };
    let mut ordered = sections.clone();
    ordered.sort_by_key(|(_, section)| rank(section));
    let mut records_of: HashMap<_, Vec<&SectionHeader>> = HashMap::new();
    for (_, records) in &sections {
        if matches!(type_of(records), "REL" | "RELA" | "CUDA_RESOLVED_RELA") {
            records_of.entry(records.info).or_default().push(records);
        }
    }
    let memory = memories(&cubin)?;
    for (index, section) in &ordered {
        contents(&cubin, section, name(section), memory.get(index).copied(), out)?;
        let is_told = !is_debug(name(section)) || name(section) == ".debug_frame";
        let mut of_it = records_of.remove(index).filter(|_| is_told).unwrap_or_default();
        if name(section) == ".debug_frame" {
            writeln!(out, "\n.section .debug_frame")?;
            if section.file_size() != 0 {
                frames(file.section_data(section)?, &names_at(&cubin, &of_it)?, out)?;
            }
        }
        // REL, RELA, CUDA_RESOLVED_RELA
        of_it.sort_by_key(|records| type_of(records).len());
        for records in of_it {
            relocations(&cubin, records, name(records), out)?;
        }
    }
    Ok(())
}

fn is_debug(name: Name<'_>) -> bool {
    [".debug", ".nv_debug"].iter().any(|start| name.as_bytes().starts_with(start.as_bytes()))
}

/// The type of a section as cuobjdump prints it, which does not know those of Mercury.
fn type_text(section: &SectionHeader) -> Cow<'static, str> {
    match type_of(section) {
        name if name.starts_with("CUDA_MERCURY") || name == "CUDA_CAPMERC" => {
            format!("UNKNOWN: {:>3}", section.r#type & 0xff).into()
        }
        name => name.into(),
    }
}

/// The type of a section by its name in the specification.
fn type_of(section: &SectionHeader) -> &'static str {
    short(section_type(EM_CUDA, section.r#type))
}

fn header(cubin: &Cubin<'_>, sm: Sm, out: &mut dyn Write) -> Result<()> {
    let target = cubin.target();
    let header = cubin.file().header();
    let suffix = if sm.suffix == Suffix::Specific { "a" } else { "" };
    if target.form == HeaderForm::V7 {
        let (bits, number) = (if target.is_64 { 64 } else { 32 }, header.r#type);
        let (abi, flags) = (header.abi_version, header.flags);
        let toolkit = target.toolkit.map_or(0, |toolkit| toolkit.0);
        let head = format!("{bits}bit elf: type={number}, abi={abi}, sm={}{suffix}", sm.number);
        return Ok(writeln!(out, "\n{head}, toolkit={toolkit}, flags = {flags:#x}")?);
    }
    let stage = match target.stage {
        LinkStage::Relocatable => "ET_REL",
        LinkStage::Linked => "ET_EXEC",
        LinkStage::Other(_) => "ET_NONE",
    };
    let bits = if target.is_64 { 64 } else { 32 };
    let (abi, flags) = (header.abi_version, header.flags);
    write!(out, "\n{bits}-bit ELF: type={stage}, ABI={abi}, sm={}{suffix}", sm.number)?;
    if let Some(toolkit) = target.toolkit {
        write!(out, ", toolkit={}.{}", toolkit.major(), toolkit.minor())?;
    }
    Ok(writeln!(out, ", flags={flags:#x}")?)
}

fn table(file: &File<'_>, sections: &[(u32, SectionHeader)], out: &mut dyn Write) -> Result<()> {
    writeln!(out, "Sections:")?;
    writeln!(
        out,
        "Index Offset   Size ES Align                      Type    Flags Link     Info Name"
    )?;
    for (index, section) in sections.iter().skip(1) {
        let SectionHeader { offset, size, entry_size, alignment, link, info, .. } = *section;
        writeln!(
            out,
            "{index:>5x} {offset:>6x} {size:>6x} {entry_size:>2x} {alignment:>2x} {:>28} {:>8x} {link:>4x} {info:>8x} {}",
            type_text(section),
            section.flags.bits(),
            file.section_name(section)?,
        )?;
    }
    Ok(())
}

fn symbols(file: File<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "   Num            Value             Size  Type          Bind    Vis        Other                                Ndx  Name"
    )?;
    let hex = |number: u64| if number == 0 { "0".to_owned() } else { format!("{number:#x}") };
    let dump = Dump::new(file);
    for table in dump.symbol_tables() {
        for row in dump.symbols(&table?) {
            let row = row?;
            let other: Vec<_> =
                row.other_names.iter().map(|name| name.replacen("STO_CUDA_", "", 1)).collect();
            let other = if other.is_empty() { "-".to_owned() } else { other.join("|") };
            let name = row.name.to_string();
            let name = if name.is_empty() { "(null)".to_owned() } else { name };
            writeln!(
                out,
                "{:>6} {:>16} {:>16}  {:<14}{:<8}{:<11}{other:<34}{:>6}  {name}",
                hex(row.index.into()),
                hex(row.value),
                hex(row.size),
                short(row.type_name),
                short(row.binding_name),
                short(row.visibility_name),
                hex(row.section.into()),
            )?;
        }
    }
    Ok(())
}

/// What a section has, by its type; of code also local and shared memory of its function.
fn contents(
    cubin: &Cubin<'_>,
    section: &SectionHeader,
    name: Name<'_>,
    memory: Option<Memory>,
    out: &mut dyn Write,
) -> Result<()> {
    let file = cubin.file();
    let is = |start: &str| name.as_bytes().starts_with(start.as_bytes());
    match section.r#type {
        // constants and variables have types of their own until they are linked
        SHT_PROGBITS
        | SHT_CUDA_CONSTANT
        | SHT_CUDA_CONSTANT_B0..=SHT_CUDA_CONSTANT_B15
        | SHT_CUDA_GLOBAL_INIT
            if !is_debug(name) && !is(".nv.merc") =>
        {
            writeln!(out, "\n\n{name}")?;
            if is(".text") {
                needs(cubin, section, memory.unwrap_or_default(), out)?;
            }
            words(file.section_data(section)?, out)
        }
        SHT_NOBITS | SHT_CUDA_SHARED | SHT_CUDA_RESERVED_SHARED | SHT_CUDA_LOCAL
            if is(".nv.shared") || is(".nv.local") =>
        {
            Ok(writeln!(out, "\n\n{name}\n   No data to be dumped. ")?)
        }
        SHT_NOTE => notes(file.section_data(section)?, section, name, out),
        SHT_CUDA_INFO | SHT_CUDA_COMPAT_INFO => {
            writeln!(out, "\n\n{name}")?;
            let is_compat = section.r#type == SHT_CUDA_COMPAT_INFO;
            for (number, row) in (1u32..).zip(cubin.attributes_in(section)?) {
                let row = row?;
                // as many digits as it has in tens, behind 0x
                writeln!(out, "\t<0x{number}>")?;
                let known = if is_compat { compat_name(row.number) } else { row.name() };
                writeln!(out, "\tAttribute:\t{}", known.unwrap_or(words::UNKNOWN_ATTRIBUTE))?;
                writeln!(out, "\tFormat:\t{}", row.value.format())?;
                if !matches!(row.value, AttributeValue::None(_)) {
                    value(cubin, &row, is_compat, out)?;
                }
            }
            Ok(())
        }
        SHT_CUDA_CALLGRAPH => {
            writeln!(out, "\n\n{name}")?;
            // as they are: numbers of lists stand between
            for row in file.section_data(section)?.as_chunks::<8>().0 {
                let row = u64::from_le_bytes(*row);
                let (first, second) = (row as u32, ((row >> 32) as u32).cast_signed());
                writeln!(out, " <{first},{second}>")?;
            }
            Ok(())
        }
        SHT_CUDA_PROTOTYPE => {
            writeln!(out, "\n\n{name}")?;
            for row in file.section_data(section)?.as_chunks::<8>().0 {
                let row = u64::from_le_bytes(*row);
                let (symbol, text) = (row as u32, (row >> 32) as u32);
                writeln!(out, " <{symbol},{text}({})>", cubin.prototype(text)?)?;
            }
            Ok(())
        }
        SHT_CUDA_RELOCINFO => actions(file.section_data(section)?, name, out),
        _ => Ok(()),
    }
}

/// What a function needs of memory, in bytes.
#[derive(Clone, Copy, Default)]
struct Memory {
    local: u64,
    /// Of the section and of the system.
    shared: u64,
}

impl Memory {
    fn of(needs: &Resources) -> Self {
        Self { local: needs.local, shared: needs.shared.saturating_add(needs.reserved_shared) }
    }
}

/// What the first function in each section of code needs; of all kernels at once, as there may be thousands.
fn memories(cubin: &Cubin<'_>) -> Result<HashMap<u32, Memory>> {
    let symbols = cubin.symbols().map_or(0, |table| table.len());
    let mut room = vec![KernelNeeds::EMPTY; cubin.kernels().count()];
    let mut numbers = vec![0; symbols.saturating_add(cubin.file().sections().len())];
    let kernels = cubin.kernel_needs(&mut room, &mut numbers)?;
    let kernels: HashMap<_, _> = kernels.iter().map(|kernel| (kernel.symbol, kernel)).collect();
    let mut all = HashMap::new();
    for function in cubin.functions().filter(|one| !one.is_subroutine()) {
        if let Entry::Vacant(of_it) = all.entry(function.section()) {
            of_it.insert(match kernels.get(&function.index()) {
                Some(kernel) => Memory::of(&kernel.resources),
                None => Memory::of(&function.resources()?),
            });
        }
    }
    Ok(all)
}

/// Barriers, registers and memory of the function whose code it is.
fn needs(
    cubin: &Cubin<'_>,
    section: &SectionHeader,
    Memory { local, shared }: Memory,
    out: &mut dyn Write,
) -> Result<()> {
    if cubin.target().form == HeaderForm::V7 {
        let (barriers, registers) = (section.flags.bits() >> 20 & 0x7f, section.info >> 24);
        write!(out, "bar = {barriers}\treg = {registers}\t")?;
    }
    Ok(writeln!(out, "lmem={local}\tsmem={shared}")?)
}

/// Words of four bytes, four a line; what is left in the end byte by byte. A line that is full ends twice if it is the last.
fn words(bytes: &[u8], out: &mut dyn Write) -> Result<()> {
    for line in bytes.chunks(16) {
        let (words, rest) = line.as_chunks();
        let words = words.iter().map(|word| format!("{:#010x}", u32::from_le_bytes(*word)));
        let words = words.chain(rest.iter().map(|byte| format!("{byte:#04x}")));
        // behind the last of less than four there is a blank, too
        let end = if line.len() < 16 { " " } else { "" };
        writeln!(out, "{}{end}", words.collect::<Vec<_>>().join(" "))?;
    }
    if bytes.len().is_multiple_of(16) {
        writeln!(out)?;
    }
    Ok(())
}

/// Names of symbols by the offsets at which relocations put their addresses.
fn names_at(cubin: &Cubin<'_>, tables: &[&SectionHeader]) -> Result<HashMap<u64, String>> {
    let mut names = HashMap::new();
    for table in tables {
        for row in cubin.file().relocations(table)?.iter().flat_map(|rows| rows.iter()) {
            names.insert(row.offset, cubin.symbol(row.symbol)?.1.to_string());
        }
    }
    Ok(names)
}

fn relocations(
    cubin: &Cubin<'_>,
    section: &SectionHeader,
    name: Name<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let file = cubin.file();
    writeln!(out, "\n.section {name}\t{}", type_of(section))?;
    let mut line = |offset: u64, symbol: u32, r#type: u32, addend: Option<i64>| {
        let kind = archs::relocation_name(file.header().machine, r#type);
        let (_, symbol) = cubin.symbol(symbol)?;
        write!(out, "{offset:#x}    {symbol}    {}", kind.unwrap_or("unknown"))?;
        match addend {
            Some(addend) => writeln!(out, "    {addend:#x}")?,
            None => writeln!(out)?,
        }
        anyhow::Ok(())
    };
    match file.relocations(section)? {
        Some(rows) => {
            for row in rows.iter() {
                line(row.offset, row.symbol, row.r#type, row.addend)?;
            }
        }
        // rows of `SHT_RELA` (64-bit ELF) in a section that has a type of its own
        None => {
            for row in file.section_data(section)?.as_chunks::<24>().0 {
                let (words, _) = row.as_chunks();
                let [offset, info, addend] =
                    [0, 1, 2].map(|at| words.get(at).copied().map_or(0, u64::from_le_bytes));
                line(offset, (info >> 32) as u32, info as u32, Some(addend.cast_signed()))?;
            }
        }
    }
    Ok(())
}
