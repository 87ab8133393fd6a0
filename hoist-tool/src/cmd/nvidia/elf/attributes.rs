//! Attributes of `.nv.info` and `.nv.compat` as cuobjdump prints them.

use std::io::Write;

use anyhow::Result;
use nvinfo::{AttributeValue, Cubin, Mbarrier, Payload, compat_name};

use super::words::{ENTRY_FRAGMENTS, INSTRUCTIONS, LANGUAGES, SPARSE, STUBS, named};

/// The value of an attribute.
pub(super) fn value(
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
                Some("EIATTR_SPARSE_MMA_MASK") if !is_compat && number != 0 => {
                    let used = SPARSE.iter().filter(|(bit, _)| number & bit != 0);
                    let used = used.map(|(_, name)| format!(" {name}"));
                    format!("Used Sparse Variants :{}", used.collect::<String>())
                }
                Some("EIATTR_STUB_FUNCTION_KIND") if !is_compat => {
                    let name = named(&STUBS, number);
                    let end = if name.is_empty() { "" } else { "\n" };
                    format!("{name}{end}")
                }
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
        ("EIATTR_LANGUAGE", _) => {
            writeln!(out, "\tValue:\tLanguage:\t{}\n", names(bytes, &LANGUAGES))?;
        }
        ("EIATTR_AT_ENTRY_FRAGMENTS", _) => {
            let names = names(bytes, &ENTRY_FRAGMENTS);
            writeln!(out, "\tValue:\tAt Entry Fragments :\t{names}\n")?;
        }
        ("EIATTR_INSTR_OFFSETS", Payload::Offsets(words)) => {
            let mut words = words.into_iter();
            let kind = named(&INSTRUCTIONS, words.next().unwrap_or(0));
            writeln!(out, "\tValue:\tInstruction Kind : {kind}")?;
            words.try_for_each(|offset| writeln!(out, "\t\t{offset:#x}"))?;
        }
        ("EIATTR_SHARED_SCRATCH", Payload::Numbers(words)) if words.len() >= 2 => {
            let (start, size) = (words.get(0).unwrap_or(0), words.get(1).unwrap_or(0));
            writeln!(out, "\tValue:\tstart offset: {start:#x}\tsize: {size}")?;
        }
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
        ("EIATTR_KPARAM_INFO_V2", Payload::Parameter(one)) => {
            let nvinfo::KernelParameter { index, ordinal, offset, size, space, .. } = one;
            let alignment = one.pointee_alignment;
            writeln!(
                out,
                "\tValue:\tIndex : {index:#x}\tOrdinal : {ordinal:#x}\tOffset  : {offset:#x}\tSize    : {size:#x}\n\
                 \t\tPointee's logAlignment : {alignment:#x}\tSpace : {space:#x}\t"
            )?;
        }
        (_, Payload::Branches(branches)) => {
            writeln!(out, "\tValue:\t")?;
            for branch in branches {
                let targets: Vec<_> = branch.targets.into_iter().collect();
                let (at, count) = (branch.offset, targets.len());
                let kind = if branch.kind == 1 { " (kind_call)" } else { "" };
                writeln!(
                    out,
                    "\t\tOffset of Indirect Branch: {at:#x}{kind}\t Number of targets: {count}"
                )?;
                let what = if count == 0 { "" } else { "Targets: " };
                writeln!(out, "\t\t{what}{}\n", list(&mut targets.into_iter()))?;
            }
        }
        (_, Payload::Mbarriers(barriers)) => {
            writeln!(out, "\tValue:\t")?;
            barriers.into_iter().try_for_each(|one| barrier(&one, out))?;
        }
        (_, Payload::RegisterMap(pairs)) => {
            let text = pairs.into_iter().map(|(at, register)| format!("({at:#x}, {register})  "));
            writeln!(out, "\tValue:\t{}", text.collect::<String>())?;
        }
        (_, Payload::Resumes(pairs)) => {
            let text = pairs.into_iter().map(|(number, at)| format!("({number}, {at:#x})  "));
            writeln!(out, "\tValue:\t{}", text.collect::<String>())?;
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

/// Words of four bytes by their names, a blank before each.
fn names(bytes: &[u8], names: &[&'static str]) -> String {
    let words = bytes.as_chunks().0.iter();
    words.map(|word| format!(" {}", named(names, u32::from_le_bytes(*word)))).collect()
}

/// An instruction on a barrier in shared memory.
fn barrier(one: &Mbarrier, out: &mut dyn Write) -> Result<()> {
    let Mbarrier { offset, register, uniform_register, immediate, stride, .. } = *one;
    let kind = one.kind_name().unwrap_or("Unknown Instruction");
    let added = if immediate == 0 { String::new() } else { format!(" + {immediate}") };
    Ok(writeln!(
        out,
        "\t{offset:#x}\t:\tInstruction Kind : {kind}\t(R{register} + UR{uniform_register}{added})\t\
         Stride : MBARRIER_STRIDE_X{stride}"
    )?)
}
