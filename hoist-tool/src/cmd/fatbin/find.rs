//! `hoist fatbin find KERNEL PATH...`: in which files, regions and architectures a kernel is, and what it needs in each.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, anyhow};

use super::filter::{Code, Where};
use super::kernels::{KernelRow, Request, Wanted, collect, json, or_dash, order};
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::kernel_filter::KernelFilter;
use crate::paint;
use crate::pattern::Pattern;
use crate::sources::Sources;
use crate::table::{Table, lines, tail};

/// Shows in which files, regions and architectures kernels are, with what they need in each.
#[derive(Debug, clap::Args)]
pub struct Find {
    /// Kernels by name, mangled or not, `gemm*`, or `/REGEX/`.
    #[arg(value_name = "KERNEL")]
    kernel: Pattern,
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    code: Code,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    json: JsonArguments,
}

impl Find {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, or no file has such a kernel.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut wanted = self.filter.kernel.clone();
        wanted.push(self.kernel.clone());
        let mut faults = Faults::default();
        let request = Request {
            sources: &self.sources,
            wanted: Wanted::needs(&wanted),
            code: &self.code,
            search: self.place.search(),
        };
        let mut rows = collect(request, &mut faults)?;
        order(&mut rows, &self.filter);
        if rows.is_empty() && faults.is_empty() {
            faults.push(anyhow!("no kernel {} in these files", self.kernel));
        }
        let mut groups: BTreeMap<usize, Vec<&KernelRow>> = BTreeMap::new();
        let mut numbers = BTreeMap::new();
        for row in &rows {
            let next = numbers.len();
            groups.entry(*numbers.entry(&row.name).or_insert(next)).or_default().push(row);
        }
        let limit = self.filter.limit.unwrap_or(usize::MAX);
        if self.json.is_on() {
            let kept: Vec<_> = groups.into_values().take(limit).flatten().collect();
            json(&kept, out)?;
        } else {
            let left_out = groups.len().saturating_sub(limit);
            let shown: Vec<_> = groups.into_values().take(limit).collect();
            let names = shown.iter().filter_map(|group| group.first());
            let names: Vec<_> = names.map(|one| one.readable(self.filter.raw)).collect();
            let titles = lines(&names.iter().map(|name| &**name).collect::<Vec<_>>());
            for (index, (group, title)) in shown.iter().zip(titles).enumerate() {
                out.write_all(if index == 0 { b"" } else { b"\n" })?;
                paint::title(out, format_args!("{title}"))?;
                text(group, out)?;
            }
            if left_out > 0 {
                writeln!(out, "\nand {left_out} more kernels")?;
            }
        }
        faults.result()
    }
}

/// One kernel, wherever it is.
fn text(rows: &[&KernelRow], out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    table.heading(["  arch", "registers", "shared", "stack", "local", "code", "region", "file"])?;
    for row in rows {
        let place = &row.place;
        let part = place.part.map_or_else(String::new, |part| format!(".{part}"));
        let file = match &row.member {
            Some(member) => format!("{}({member})", row.file),
            None => row.file.to_string(),
        };
        table.row([
            format!("  {}", place.arch),
            row.registers_text(),
            or_dash(row.shared),
            row.stack_text(),
            or_dash(row.local),
            row.code_size.to_string(),
            format!("{}.{}{part}", place.region, place.entry),
            tail(&file),
        ])?;
    }
    table.end()
}
