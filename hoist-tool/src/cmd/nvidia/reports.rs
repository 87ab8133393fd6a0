//! Symbols and resources as cuobjdump prints them.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use elf_core::File;
use elf_core::names::{STT_FILE, STT_SECTION};
use nvinfo::{ConstantBank, Cubin, KernelNeeds};

use super::options::Request;
use crate::cmd::show::Dump;

/// A name of the specification without what it begins with: `FUNC`.
pub(super) fn short(name: Option<&'static str>) -> &'static str {
    name.map_or("", |name| name.split_once('_').map_or(name, |(_, name)| name))
}

/// `-symbols`.
pub(super) fn symbols(file: File<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\nsymbols:")?;
    let dump = Dump::new(file);
    for table in dump.symbol_tables() {
        for row in dump.symbols(&table?) {
            let row = row?;
            let name = row.name.to_string();
            if row.index == 0 || matches!(row.r#type, STT_SECTION | STT_FILE) {
                continue;
            }
            let other: Vec<_> =
                row.other_names.iter().map(|name| name.replacen("STO_CUDA_", "", 1)).collect();
            let other = if other.is_empty() { "-".to_owned() } else { other.join("|") };
            let undefined = if row.section == 0 { "U" } else { "" };
            writeln!(
                out,
                "{:<14}{:<8}{:<11}{other:<34}{undefined:1}  {name}",
                short(row.type_name),
                short(row.binding_name),
                short(row.visibility_name),
            )?;
        }
    }
    Ok(())
}

/// `-res-usage`, of kernels, in the order of their code.
pub(super) fn resources(
    bytes: &[u8],
    request: &Request,
    seen: &mut BTreeSet<String>,
    out: &mut dyn Write,
) -> Result<()> {
    let cubin = Cubin::parse(bytes)?;
    let banks: Vec<_> = cubin.constant_banks().collect();
    let text = |banks: &mut dyn Iterator<Item = &ConstantBank>| {
        let texts = banks.map(|one| format!(" CONSTANT[{}]:{}", one.bank, one.header.size));
        texts.collect::<String>()
    };
    writeln!(out, "\nResource usage:\n Common:")?;
    let mut global = 0u64;
    for section in cubin.file().sections() {
        let name = cubin.file().section_name(&section)?;
        if name == ".nv.global" || name == ".nv.global.init" {
            global = global.saturating_add(section.size);
        }
    }
    let common = text(&mut banks.iter().filter(|bank| bank.owner.is_none()));
    writeln!(out, "  GLOBAL:{global}{common}")?;
    let symbols = cubin.symbols().map_or(0, |table| table.len());
    let mut room = vec![KernelNeeds::EMPTY; cubin.kernels().count()];
    let mut numbers = vec![0; symbols.saturating_add(cubin.file().sections().len())];
    let mut by_section = std::collections::HashMap::<_, Vec<_>>::new();
    for bank in &banks {
        by_section.entry(bank.owner).or_default().push(bank);
    }
    // cuobjdump goes by the sections of code
    let mut kernels: Vec<_> = cubin.kernel_needs(&mut room, &mut numbers)?.iter().collect();
    kernels.sort_by_key(|kernel| kernel.section);
    for kernel in kernels {
        let (_, name) = cubin.symbol(kernel.symbol)?;
        let name = name.to_string();
        if !request.wants_function(&name) {
            continue;
        }
        let needs = &kernel.resources;
        let own = by_section.get(&Some(kernel.section)).into_iter().flatten().copied();
        let own = text(&mut own.into_iter());
        let stack = match needs.stack {
            Some(stack) => stack.bytes().map_or("UNKNOWN".to_owned(), |bytes| bytes.to_string()),
            None => needs.frame_size.unwrap_or(0).to_string(),
        };
        writeln!(out, " Function {name}:")?;
        writeln!(
            out,
            "  REG:{} STACK:{} SHARED:{} LOCAL:{}{own} TEXTURE:{} SURFACE:{} SAMPLER:{}",
            needs.registers.unwrap_or(0),
            stack,
            needs.shared.saturating_add(needs.reserved_shared),
            needs.local,
            needs.textures,
            needs.surfaces,
            needs.samplers,
        )?;
        seen.insert(name);
    }
    Ok(())
}
