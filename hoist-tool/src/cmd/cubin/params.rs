//! `hoist cubin params FILE KERNEL`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use fatbin::Sm;
use nvinfo::Function;
use serde::Serialize;

use super::index::Index;
use super::look::{Request, each_report};
use super::symbols::meant;
use crate::json::JsonArguments;
use crate::kernel_filter::KernelFilter;
use crate::kernel_name::KernelName;
use crate::paint;
use crate::pattern::Pattern;
use crate::table::{Table, line};

/// Shows the parameters of a kernel.
#[derive(Debug, clap::Args)]
pub(super) struct Params {
    /// A cubin, an archive of them, or what has cubins inside: a fatbin, a host object, a library.
    file: PathBuf,
    /// Kernels by name, mangled or not, `gemm*`, or `/REGEX/`; all if nothing is said.
    kernel: Option<Pattern>,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    json: JsonArguments,
}

/// A parameter.
#[derive(Debug, Serialize)]
pub struct ParameterRow {
    /// Position, from 0.
    pub ordinal: u16,
    /// Offset from the first one.
    pub offset: u16,
    /// Its size.
    pub size: u16,
    /// Offset in constant bank 0, if the file says where they begin.
    pub bank_offset: Option<u32>,
    /// Alignment of what a pointer points to, in bytes.
    pub pointee_alignment: Option<u64>,
    /// Number of the space that a pointer points to; 0 if not known.
    pub space: u8,
    /// Whether it is in shared memory.
    pub in_shared_memory: bool,
}

/// The parameters of a kernel.
#[derive(Debug, Serialize)]
struct OfKernel {
    #[serde(flatten)]
    name: KernelName,
    parameters: Vec<ParameterRow>,
}

#[derive(Debug, Serialize)]
struct Kernels {
    kernels: Vec<OfKernel>,
}

/// The parameters of a kernel, by rising ordinal.
fn parameters(index: &Index, kernel: &Function<'_>) -> Result<Vec<ParameterRow>> {
    let base = index.needs(kernel)?.parameter_bank.map(|bank| u32::from(bank.offset));
    let mut rows = Vec::new();
    for found in index.parameters(kernel)? {
        let found = found?;
        rows.push(ParameterRow {
            ordinal: found.ordinal,
            offset: found.offset,
            size: found.size,
            bank_offset: base.map(|base| base + u32::from(found.offset)),
            pointee_alignment: match found.pointee_alignment {
                0 => None,
                power => 1u64.checked_shl(power.into()),
            },
            space: found.space,
            in_shared_memory: found.in_shared_memory,
        });
    }
    rows.sort_by_key(|row| row.ordinal);
    Ok(rows)
}

impl Params {
    pub(super) fn run(&self, arch: &[Sm], out: &mut dyn Write) -> Result<()> {
        let wanted = self.filter.wanted(self.kernel.as_ref());
        each_report(
            Request::new((&self.file, arch), &self.json, ("function", &wanted)),
            out,
            |cubin| {
                let found = meant(cubin, &self.filter, &wanted)?;
                let index = Index::of(cubin, &[])?;
                let of_kernel = |one: &Function<'_>| {
                    let name = KernelName::of(one.name());
                    let parameters = parameters(&index, one)?;
                    anyhow::Ok(OfKernel { name, parameters })
                };
                let kernels: Vec<_> = found.iter().map(of_kernel).collect::<Result<_>>()?;
                Ok((!kernels.is_empty()).then_some(Kernels { kernels }))
            },
            |found, out| {
                for one in &found.kernels {
                    if found.kernels.len() > 1 {
                        let name = line(one.name.readable(self.filter.raw), "");
                        paint::title(out, format_args!("{name}"))?;
                    }
                    text(&one.parameters, out)?;
                }
                Ok(())
            },
        )
    }
}

fn text(rows: &[ParameterRow], out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    table.heading(["ordinal", "offset", "size", "in bank 0", "points to"])?;
    for row in rows {
        let bank = row.bank_offset.map_or("-".to_owned(), |offset| format!("{offset:#x}"));
        let mut points = Vec::new();
        points.extend(row.pointee_alignment.map(|bytes| format!("aligned to {bytes}")));
        points.extend((row.space != 0).then(|| format!("space {}", row.space)));
        let points = if points.is_empty() { "-".to_owned() } else { points.join(", ") };
        let offset = format!("{:#x}", row.offset);
        table.row([row.ordinal.to_string(), offset, row.size.to_string(), bank, points])?;
    }
    table.end()
}
