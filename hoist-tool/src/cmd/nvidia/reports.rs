//! Symbols and resources as cuobjdump prints them.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;

use anyhow::Result;
use elf_core::names::{STT_FILE, STT_SECTION};
use elf_core::{File, SectionHeader};
use nvinfo::{ConstantBank, Cubin, Function, KernelNeeds, Resources};

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

/// `-res-usage`, in the order of code. Of functions that are no kernels the file has but the registers that their sections name, before
/// sm_90.
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
    let mut by_section = HashMap::<_, Vec<_>>::new();
    for bank in &banks {
        by_section.entry(bank.owner).or_default().push(bank);
    }
    let kernels = cubin.kernel_needs(&mut room, &mut numbers)?;
    let kernels: HashMap<_, _> = kernels.iter().map(|kernel| (kernel.symbol, kernel)).collect();
    // cuobjdump goes by the sections of code
    let mut functions: Vec<_> = cubin.functions().filter(|one| !one.is_subroutine()).collect();
    functions.sort_by_key(Function::section);
    for function in functions {
        let name = function.name().to_string();
        if !request.wants_function(&name) {
            continue;
        }
        let own = by_section.get(&Some(function.section())).into_iter().flatten().copied();
        let own = text(&mut own.into_iter());
        let Needs { registers, stack, shared, local, places: [textures, surfaces, samplers] } =
            match kernels.get(&function.index()) {
                Some(kernel) => Needs::of(&kernel.resources),
                None => Needs::of_section(function.section_header()),
            };
        writeln!(out, " Function {name}:")?;
        writeln!(
            out,
            "  REG:{registers} STACK:{stack} SHARED:{shared} LOCAL:{local}{own} TEXTURE:{textures} \
             SURFACE:{surfaces} SAMPLER:{samplers}",
        )?;
        if request.functions.contains(&name) {
            seen.insert(name);
        }
    }
    Ok(())
}

/// What is told of a function.
struct Needs {
    registers: u32,
    stack: String,
    shared: u64,
    local: u64,
    /// Textures, surfaces, samplers.
    places: [u32; 3],
}

impl Needs {
    fn of(needs: &Resources) -> Self {
        let stack = match needs.stack {
            Some(stack) => stack.bytes().map_or("UNKNOWN".to_owned(), |bytes| bytes.to_string()),
            // of what is not linked, whatever its own frame
            None => "0".to_owned(),
        };
        Self {
            registers: needs.registers.unwrap_or(0),
            stack,
            shared: needs.shared.saturating_add(needs.reserved_shared),
            local: needs.local,
            places: [needs.textures, needs.surfaces, needs.samplers],
        }
    }

    /// Of a function that is no kernel.
    fn of_section(section: &SectionHeader) -> Self {
        let registers = section.info >> 24;
        Self { registers, stack: "0".to_owned(), shared: 0, local: 0, places: [0; 3] }
    }
}
