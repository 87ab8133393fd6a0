//! `hoist cubin attributes FILE [FUNCTION]`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use elf_core::names::{SHT_CUDA_COMPAT_INFO, SHT_CUDA_INFO};
use fatbin::Sm;
use nvinfo::{Cubin, Function, compat_name};
use serde::Serialize;

use super::look::{Request, each_report};
use super::payload::PayloadValue;
use super::symbols::meant;
use crate::json::JsonArguments;
use crate::kernel_filter::KernelFilter;
use crate::paint;
use crate::pattern::Pattern;
use crate::printable::Printable;
use crate::table::{self, Table};

/// Shows every attribute of `.nv.info`, `.nv.info.K` and `.nv.compat`.
#[derive(Debug, clap::Args)]
pub(super) struct Attributes {
    /// A cubin, an archive of them, or what has cubins inside: a fatbin, a host object, a library.
    file: PathBuf,
    /// Functions whose attributes to show: by name, mangled or not, `gemm*`, or `/REGEX/`.
    function: Option<Pattern>,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    json: JsonArguments,
}

/// The attributes of one section.
#[derive(Debug, Serialize)]
pub struct AttributeSection {
    /// Index of the section.
    pub section: u32,
    /// Its name.
    pub section_name: String,
    /// Its records.
    pub attributes: Vec<AttributeRow>,
}

/// A record.
#[derive(Debug, Serialize)]
pub struct AttributeRow {
    /// File offset.
    pub offset: u64,
    /// Number of the attribute.
    pub number: u8,
    /// `EIATTR_..` or `EICOMPAT_ATTR_..`.
    pub name: Option<&'static str>,
    /// `EIFMT_..`.
    pub format: &'static str,
    /// What the value means.
    pub value: PayloadValue,
}

/// A list of sections.
#[derive(Debug, Serialize)]
struct Sections {
    attribute_sections: Vec<AttributeSection>,
}

/// The attributes of all sections, or of one function's.
///
/// # Errors
/// If they are damaged.
pub fn attributes(cubin: &Cubin<'_>, only: Option<&Function<'_>>) -> Result<Vec<AttributeSection>> {
    let file = cubin.file();
    let mut found = Vec::new();
    for (index, section) in (0u32..).zip(file.sections()) {
        let is_compat = section.r#type == SHT_CUDA_COMPAT_INFO;
        let wanted = match only {
            Some(function) => section.r#type == SHT_CUDA_INFO && section.info == function.section(),
            None => is_compat || section.r#type == SHT_CUDA_INFO,
        };
        if !wanted {
            continue;
        }
        let row = |row: Result<nvinfo::Attribute<'_>, _>| {
            let row = row?;
            Ok(AttributeRow {
                offset: row.at,
                number: row.number,
                name: if is_compat { compat_name(row.number) } else { row.name() },
                format: row.value.format(),
                value: match row.value {
                    // numbers of this table mean other things
                    nvinfo::AttributeValue::Bytes(bytes) if is_compat => {
                        PayloadValue::Bytes { bytes: super::kernel::hex(bytes) }
                    }
                    _ => PayloadValue::of(cubin, row.payload()),
                },
            })
        };
        found.push(AttributeSection {
            section: index,
            section_name: Printable::from(file.section_name(&section)?).to_string(),
            attributes: cubin.attributes_in(&section)?.map(row).collect::<Result<_>>()?,
        });
    }
    Ok(found)
}

impl Attributes {
    pub(super) fn run(&self, arch: &[Sm], out: &mut dyn Write) -> Result<()> {
        let wanted = self.filter.wanted(self.function.as_ref());
        let is_all = wanted.is_empty() && self.filter.sort.is_none() && self.filter.limit.is_none();
        each_report(
            Request::new((&self.file, arch), &self.json, ("function", &wanted)),
            out,
            |cubin| {
                if is_all {
                    return Ok(Some(Sections { attribute_sections: attributes(cubin, None)? }));
                }
                let found = meant(cubin, &self.filter, &wanted)?;
                let mut attribute_sections = Vec::new();
                for one in &found {
                    attribute_sections.extend(attributes(cubin, Some(one))?);
                }
                Ok((!found.is_empty()).then_some(Sections { attribute_sections }))
            },
            |sections, out| sections.attribute_sections.iter().try_for_each(|one| text(one, out)),
        )
    }
}

fn text(section: &AttributeSection, out: &mut dyn Write) -> Result<()> {
    paint::title(out, format_args!("{}", table::line(&section.section_name, "")))?;
    let mut table = Table::new(out);
    for row in &section.attributes {
        let name = row.name.map_or_else(|| format!("attribute {:#x}", row.number), str::to_owned);
        table.row([format!("  {:#06x}", row.offset), name, row.value.text()])?;
    }
    table.end()
}
