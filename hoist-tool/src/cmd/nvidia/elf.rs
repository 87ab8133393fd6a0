//! `-elf`: header, sections, symbols, contents, notes, attributes and relocations as cuobjdump prints them. Debug information and the
//! table of relocation actions are left out.

use std::borrow::Cow;
use std::io::Write;

use anyhow::Result;
use elf_core::names::{
    EM_CUDA, SHT_CUDA_CALLGRAPH, SHT_CUDA_COMPAT_INFO, SHT_CUDA_INFO, SHT_NOBITS, SHT_NOTE,
    SHT_PROGBITS, section_type,
};
use elf_core::{File, Name, SectionHeader};
use fatbin::{Sm, Suffix};
use nvinfo::{
    AttributeValue, Cubin, CubinNote, CubinNotes, HeaderForm, LinkStage, Payload, compat_name,
};

use super::reports::short;
use crate::cmd::show::Dump;

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
        SHT_PROGBITS | SHT_NOBITS if !name(section).as_bytes().starts_with(b".text") => 0,
        SHT_NOTE => 1,
        SHT_CUDA_INFO => 2,
        SHT_CUDA_COMPAT_INFO => 3,
        SHT_CUDA_CALLGRAPH => 4,
        _ => 5,
    };
    let mut ordered = sections.clone();
    ordered.sort_by_key(|(_, section)| rank(section));
    for (index, section) in &ordered {
        contents(&cubin, section, name(section), out)?;
        let of_it = sections.iter().filter(|(_, records)| {
            records.info == *index
                && matches!(type_of(records), "REL" | "RELA" | "CUDA_RESOLVED_RELA")
        });
        let is_debug = [".debug", ".nv_debug"]
            .iter()
            .any(|start| name(section).as_bytes().starts_with(start.as_bytes()));
        let is_told = !is_debug || name(section) == ".debug_frame";
        for (_, records) in of_it.filter(|_| is_told) {
            relocations(&cubin, records, name(records), out)?;
        }
    }
    Ok(())
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
    if target.form == HeaderForm::V7 {
        let (bits, number) = (if target.is_64 { 64 } else { 32 }, header.r#type);
        let (abi, sm, flags) = (header.abi_version, sm.number, header.flags);
        let toolkit = target.toolkit.map_or(0, |toolkit| toolkit.0);
        let head = format!("{bits}bit elf: type={number}, abi={abi}, sm={sm}");
        return Ok(writeln!(out, "\n{head}, toolkit={toolkit}, flags = {flags:#x}")?);
    }
    let stage = match target.stage {
        LinkStage::Relocatable => "ET_REL",
        LinkStage::Linked => "ET_EXEC",
        LinkStage::Other(_) => "ET_NONE",
    };
    let suffix = if sm.suffix == Suffix::Specific { "a" } else { "" };
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
    Ok(writeln!(out)?)
}

/// What a section has, by its type.
fn contents(
    cubin: &Cubin<'_>,
    section: &SectionHeader,
    name: Name<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let file = cubin.file();
    let is = |start: &str| name.as_bytes().starts_with(start.as_bytes());
    match section.r#type {
        SHT_PROGBITS if !is(".debug") && !is(".nv_debug") && !is(".nv.merc") => {
            writeln!(out, "\n\n{name}")?;
            if is(".text") {
                memory(cubin, section, out)?;
            }
            words(file.section_data(section)?, out)
        }
        SHT_NOBITS if is(".nv.shared") || is(".nv.local") => {
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
                writeln!(out, "\tAttribute:\t{}", known.unwrap_or("unknown Attribute"))?;
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
        _ => Ok(()),
    }
}

/// Local and shared memory of the function whose code it is.
fn memory(cubin: &Cubin<'_>, section: &SectionHeader, out: &mut dyn Write) -> Result<()> {
    let mut functions = cubin.functions();
    let function = functions.find(|one| one.section_header() == section && !one.is_subroutine());
    let needs = function.map(|one| one.resources()).transpose()?;
    let (local, shared) = needs
        .map_or((0, 0), |needs| (needs.local, needs.shared.saturating_add(needs.reserved_shared)));
    if cubin.target().form == HeaderForm::V7 {
        let (barriers, registers) = (section.flags.bits() >> 20 & 0x7f, section.info >> 24);
        write!(out, "bar = {barriers}\treg = {registers}\t")?;
    }
    Ok(writeln!(out, "lmem={local}\tsmem={shared}")?)
}

/// Words of four bytes, four a line.
fn words(bytes: &[u8], out: &mut dyn Write) -> Result<()> {
    for line in bytes.chunks(16) {
        let words = line.chunks(4).map(|bytes| {
            let mut word = [0; 4];
            word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            // as many digits as there are bytes
            let width = bytes.len() * 2 + 2;
            format!("{:#0width$x}", u32::from_le_bytes(word))
        });
        // behind the last of less than four there is a blank, too
        let end = if line.len() < 16 { " " } else { "" };
        writeln!(out, "{}{end}", words.collect::<Vec<_>>().join(" "))?;
    }
    Ok(())
}

fn notes(bytes: &[u8], section: &SectionHeader, name: Name<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n\n.section {name}")?;
    // owner, description and type stand before what nvinfo tells
    let sizes = bytes_of_notes(bytes);
    for (number, (note, size)) in (1u32..).zip(CubinNotes::new(bytes, section.offset).zip(sizes)) {
        let note = note?;
        writeln!(out, "Entry: {number}\n  Owner                  Data size        Description")?;
        match note {
            CubinNote::Tool(tool) => {
                writeln!(
                    out,
                    "  NVIDIA Corp            {size:<17}NVIDIA CUDA Toolkit Information"
                )?;
                match tool.toolkit() {
                    Some(toolkit) => {
                        let (major, minor) = (toolkit.major(), toolkit.minor());
                        writeln!(out, "\tTool Kit Version: {major}.{minor}")?;
                    }
                    None => writeln!(out, "\tNote Version: {}", tool.version)?,
                }
                writeln!(out, "\tTool Name: {}", tool.name)?;
                writeln!(out, "\tTool Version: {}", tool.release)?;
                writeln!(out, "\tTool Branch: {}", tool.branch)?;
                writeln!(out, "\tTool Command Line Arguments: {}", tool.arguments)?;
            }
            CubinNote::Cuda { version, virtual_sm, toolkit } => {
                writeln!(out, "  NVIDIA Corp            {size:<17}NVIDIA CUDA Information")?;
                writeln!(out, "\tNote Version: {version}\n\tCUDA Virtual SM: sm_{virtual_sm}")?;
                if let Some(toolkit) = toolkit {
                    let (major, minor) = (toolkit.major(), toolkit.minor());
                    writeln!(out, "\tCUDA Tool Kit Version: {major}.{minor}")?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sizes of the descriptions of notes (gABI ch. 5, "Note Section").
fn bytes_of_notes(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
        let (name, size) = (word(0)?, word(4)?);
        let padded = |size: u32| usize::try_from(size).ok()?.checked_next_multiple_of(4);
        let whole = padded(name)?.checked_add(padded(size)?)?.checked_add(12)?;
        bytes = bytes.get(whole..)?;
        Some(size)
    })
}

/// The value of an attribute.
fn value(
    cubin: &Cubin<'_>,
    row: &nvinfo::Attribute<'_>,
    is_compat: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let name = |symbol: u32| cubin.symbol(symbol).map(|(_, name)| name).unwrap_or_default();
    let list = |words: &mut dyn Iterator<Item = u32>| {
        words.map(|word| format!("{word:#x} ")).collect::<String>()
    };
    let raw = |bytes: &[u8]| {
        let (words, _) = bytes.as_chunks();
        list(&mut words.iter().map(|word| u32::from_le_bytes(*word)))
    };
    let bytes = match row.value {
        AttributeValue::Bytes(bytes) => bytes,
        _ => {
            let number = row.number_value().unwrap_or(0);
            let kind = if is_compat { compat_name(row.number) } else { row.name() };
            let text = match kind {
                Some("EIATTR_NVSAL_SW_WAR") => format!(" {number:#x}"),
                Some("EICOMPAT_ATTR_FINALIZER_VERSION") => {
                    format!("{}.{}.{}", number >> 10, number >> 6 & 0xf, number & 0x3f)
                }
                _ => format!("{number:#x}"),
            };
            return Ok(writeln!(out, "\tValue:\t{text}")?);
        }
    };
    if is_compat {
        return Ok(writeln!(out, "\tValue:\t{}", raw(bytes))?);
    }
    match (row.name().unwrap_or_default(), row.payload()) {
        ("EIATTR_LANGUAGE", _) => writeln!(out, "\tValue:\tLanguage:\t PTX\n")?,
        ("EIATTR_REGCOUNT", Payload::OfSymbol { symbol, value }) => {
            writeln!(
                out,
                "\tValue:\tfunction: {}({symbol:#x})\tregister count: {value}",
                name(symbol)
            )?;
        }
        (
            kind @ ("EIATTR_FRAME_SIZE" | "EIATTR_MIN_STACK_SIZE"),
            Payload::OfSymbol { symbol, value },
        ) => {
            let what = if kind == "EIATTR_FRAME_SIZE" { "frame size" } else { "min stack size" };
            writeln!(out, "\tValue:\tfunction: {}({symbol:#x})\t{what}: {value:#x}", name(symbol))?;
        }
        ("EIATTR_EXTERNS", Payload::Symbols(symbols)) => {
            let symbols = symbols.into_iter().map(|one| format!("{}({one:#x})\t", name(one)));
            writeln!(out, "\tValue:\texterns:\t{}", symbols.collect::<String>())?;
        }
        ("EIATTR_KPARAM_INFO", Payload::Parameter(one)) => {
            let nvinfo::KernelParameter { index, ordinal, offset, size, space, .. } = one;
            let (alignment, bank) = (one.pointee_alignment, one.bank.unwrap_or(0));
            let place = if one.in_shared_memory { "SMEM" } else { "CBANK" };
            writeln!(
                out,
                "\tValue:\tIndex : {index:#x}\tOrdinal : {ordinal:#x}\tOffset  : {offset:#x}\tSize    : {size:#x}\n\
                 \t\tPointee's logAlignment : {alignment:#x}\tSpace : {space:#x}\tcbank : {bank:#x}\tParameter Space : {place}\t"
            )?;
        }
        (_, Payload::Branches(branches)) => {
            writeln!(out, "\tValue:\t")?;
            for branch in branches {
                let targets: Vec<_> = branch.targets.into_iter().collect();
                let (at, count) = (branch.offset, targets.len());
                writeln!(
                    out,
                    "\t\tOffset of Indirect Branch: {at:#x}\t Number of targets: {count}"
                )?;
                writeln!(out, "\t\tTargets: {}\n", list(&mut targets.into_iter()))?;
            }
        }
        (_, Payload::SpillRefills(pairs)) => {
            let places =
                pairs.into_iter().map(|(_, at)| format!("SpillRefill : \tOffset : {at:#x}"));
            writeln!(out, "\tValue:\t{}", places.collect::<Vec<_>>().join("\n\t\t"))?;
        }
        _ => writeln!(out, "\tValue:\t{}", raw(bytes))?,
    }
    Ok(())
}

fn relocations(
    cubin: &Cubin<'_>,
    section: &SectionHeader,
    name: Name<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let file = cubin.file();
    let Some(rows) = file.relocations(section)? else { return Ok(()) };
    writeln!(out, "\n.section {name}\t{}", type_of(section))?;
    for row in rows.iter() {
        let (offset, kind) =
            (row.offset, archs::relocation_name(file.header().machine, row.r#type));
        let (_, symbol) = cubin.symbol(row.symbol)?;
        write!(out, "{offset:#x}    {symbol}    {}", kind.unwrap_or("unknown"))?;
        match row.addend {
            Some(addend) => writeln!(out, "    {addend:#x}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}
