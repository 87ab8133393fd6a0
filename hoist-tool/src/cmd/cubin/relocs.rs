//! `hoist cubin relocs FILE [SECTION]`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use archs::relocation_name;
use fatbin::Sm;
use nvinfo::Cubin;
use reloc_cuda::{Resolver, row};
use serde::Serialize;

use super::look::{Request, each_report};
use super::symbols::{meant, symbol_name};
use crate::json::JsonArguments;
use crate::kernel_filter::KernelFilter;
use crate::paint;
use crate::printable::Printable;
use crate::table::{Table, line};

/// Shows relocations: who resolves them, and which bits they fill.
#[derive(Debug, clap::Args)]
pub(super) struct Relocs {
    /// A cubin, an archive of them, or what has cubins inside: a fatbin, a host object, a library.
    file: PathBuf,
    /// Name of a section: only relocations against it.
    section: Option<String>,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    json: JsonArguments,
}

/// The relocations of one section.
#[derive(Debug, Serialize)]
pub struct CudaRelocations {
    /// Index of the section of the records.
    pub section: u32,
    /// Its name.
    pub section_name: String,
    /// Name of the section that they change.
    pub target_name: String,
    /// The records.
    pub records: Vec<CudaRelocation>,
}

/// A relocation.
#[derive(Debug, Serialize)]
pub struct CudaRelocation {
    /// Offset in the section that it changes.
    pub offset: u64,
    /// Number of the type.
    pub r#type: u32,
    /// `R_CUDA_..` or `R_MERCURY_..`.
    pub type_name: Option<&'static str>,
    /// Index of the symbol.
    pub symbol: u32,
    /// Its name.
    pub symbol_name: String,
    /// The addend; `null` if the place holds it.
    pub addend: Option<i64>,
    /// `linker`, `driver`, `either`; `null` if nobody does.
    pub resolver: Option<&'static str>,
    /// The bits that it fills: first bit, number of bits, bits that are shifted out.
    pub fields: Vec<[u8; 3]>,
}

#[derive(Debug, Serialize)]
struct Sections {
    relocations: Vec<CudaRelocations>,
}

/// All relocations, or those against one section.
///
/// # Errors
/// If the file is damaged.
pub fn relocations(cubin: &Cubin<'_>, only: Option<&str>) -> Result<Vec<CudaRelocations>> {
    let file = cubin.file();
    let mut found = Vec::new();
    for (index, section) in (0u32..).zip(file.sections()) {
        let Some(rows) = file.relocations(&section)? else { continue };
        let target = file.section_name(&file.section(section.info)?)?;
        if only.is_some_and(|name| target != name) {
            continue;
        }
        let records = rows.iter().map(|record| {
            let known = row(record.r#type);
            CudaRelocation {
                offset: record.offset,
                r#type: record.r#type,
                type_name: relocation_name(file.header().machine, record.r#type),
                symbol: record.symbol,
                symbol_name: symbol_name(cubin, record.symbol),
                addend: record.addend,
                resolver: known.and_then(|row| resolver_name(row.resolver)),
                fields: known.map_or_else(Vec::new, |row| {
                    let parts = row.kind.field.parts.iter();
                    parts.map(|bits| [bits.at, bits.width, bits.shift]).collect()
                }),
            }
        });
        found.push(CudaRelocations {
            section: index,
            section_name: Printable::from(file.section_name(&section)?).to_string(),
            target_name: Printable::from(target).to_string(),
            records: records.collect(),
        });
    }
    Ok(found)
}

const fn resolver_name(resolver: Resolver) -> Option<&'static str> {
    match resolver {
        Resolver::Nobody => None,
        Resolver::Linker => Some("linker"),
        Resolver::Driver => Some("driver"),
        Resolver::Either => Some("either"),
    }
}

impl Relocs {
    pub(super) fn run(&self, arch: &[Sm], out: &mut dyn Write) -> Result<()> {
        let wanted = &*self.filter.kernel;
        let is_all = wanted.is_empty() && self.filter.sort.is_none() && self.filter.limit.is_none();
        each_report(
            Request::new((&self.file, arch), &self.json, ("function", wanted)),
            out,
            |cubin| {
                let mut relocations = relocations(cubin, self.section.as_deref())?;
                if is_all {
                    return Ok(Some(Sections { relocations }));
                }
                // of the code of functions that are meant, in their order
                let found = meant(cubin, &self.filter, wanted)?;
                let place = |one: &CudaRelocations| {
                    let target = cubin.file().section(one.section).ok()?.info;
                    found.iter().position(|function| function.section() == target)
                };
                relocations.retain(|one| place(one).is_some());
                relocations.sort_by_key(place);
                Ok((!found.is_empty()).then_some(Sections { relocations }))
            },
            |sections, out| sections.relocations.iter().try_for_each(|one| text(one, out)),
        )
    }
}

fn text(section: &CudaRelocations, out: &mut dyn Write) -> Result<()> {
    paint::title(out, format_args!("{}", line(&section.section_name, "")))?;
    let mut table = Table::new(out);
    for record in &section.records {
        let name = record.type_name.map_or_else(|| record.r#type.to_string(), str::to_owned);
        let addend = record.addend.map_or_else(|| "-".to_owned(), |addend| format!("{addend:#x}"));
        let end = |[at, width, _]: &[u8; 3]| format!("{at}..{}", at + width);
        let bits: Vec<_> = record.fields.iter().map(end).collect();
        table.row([
            format!("  {:#06x}", record.offset),
            name,
            record.symbol_name.clone(),
            addend,
            record.resolver.unwrap_or("-").to_owned(),
            bits.join(" "),
        ])?;
    }
    table.end()
}
