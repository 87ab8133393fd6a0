//! Attributes of `.nv.info` and `.nv.compat` as cuobjdump prints them.

use std::io::Write;

use anyhow::Result;
use nvinfo::{AttributeValue, Cubin, Payload, compat_name};

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
