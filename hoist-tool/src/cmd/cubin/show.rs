//! `hoist cubin show FILE [KERNEL]`.

use std::cmp::Ordering;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use fatbin::Sm;
use nvinfo::Cubin;

use super::kernel::Kernel;
use super::look::{Placed, Request, all_reports, each_report, print_all};
use super::shown::{Shown, report};
use super::{svg, text};
use crate::json::JsonArguments;
use crate::kernel_filter::{KernelFilter, KernelOrder};
use crate::output;
use crate::panel;
use crate::pattern::Pattern;

/// Shows kernels and what they need, then the module.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// A cubin, an archive of them, or what has cubins inside: a fatbin, a host object, a library.
    file: PathBuf,
    /// Kernels in detail: by name, mangled or not, `gemm*`, or `/REGEX/`.
    kernel: Option<Pattern>,
    #[command(flatten)]
    filter: KernelFilter,
    /// Threads of a block that occupancy is given for: otherwise those that the kernel names, or 256.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    #[command(flatten)]
    json: JsonArguments,
    /// Draws what kernels take, and how many warps an SM runs by the size of their blocks, as an SVG file.
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    svg: bool,
    /// The file to draw to; otherwise standard output.
    #[arg(short, long, value_name = "FILE", requires = "svg")]
    output: Option<PathBuf>,
}

impl Show {
    pub(crate) fn run(&self, arch: &[Sm], out: &mut dyn Write) -> Result<()> {
        let wanted = self.filter.wanted(self.kernel.as_ref());
        let request = Request::new((&self.file, arch), &self.json, ("kernel", &wanted));
        let make = |cubin: &Cubin<'_>| report(cubin, &wanted, self.threads);
        let is_chosen = self.filter.sort.is_some() || self.filter.limit.is_some();
        let text = |shown: &Shown, out: &mut dyn Write| text::shown(shown, self.filter.raw, out);
        if !self.svg && !is_chosen {
            return each_report(request, out, make, text);
        }
        let (mut all, done) = all_reports(request, make);
        choose(&self.filter, &mut all);
        if self.svg {
            done?;
            return self.draw(&all, out);
        }
        print_all(request, &all, out, text)?;
        done
    }

    /// One picture of all kernels.
    fn draw(&self, all: &[Placed<Shown>], out: &mut dyn Write) -> Result<()> {
        let mut panels = Vec::new();
        for one in all {
            let place = one.place().concat();
            let kernels = one.report.kernels.iter();
            let more = kernels.map(|one| svg::panel(one, &place, self.filter.raw)).collect();
            svg::add(&mut panels, more)?;
        }
        output::text(self.output.as_deref(), out, |out| panel::write("kernels", &panels, out))
    }
}

/// Puts the kernels of each cubin in order, and leaves out those that are beyond the limit in the order of all; and then cubins of
/// which none is left.
fn choose(filter: &KernelFilter, all: &mut Vec<Placed<Shown>>) {
    let order = |one: &Kernel, other: &Kernel| match filter.sort {
        None => Ordering::Equal,
        Some(KernelOrder::Size) => other.code_size.cmp(&one.code_size),
        Some(KernelOrder::Registers) => other.registers.cmp(&one.registers),
        Some(KernelOrder::Name) => readable(one, filter.raw).cmp(readable(other, filter.raw)),
    };
    all.iter_mut().for_each(|one| one.report.kernels.sort_by(order));
    let Some(limit) = filter.limit else { return };
    let kernels =
        (0..).zip(&*all).flat_map(|(at, one)| one.report.kernels.iter().map(move |one| (at, one)));
    let mut kernels: Vec<(usize, _)> = kernels.collect();
    kernels.sort_by(|(_, one), (_, other)| order(one, other));
    let mut counts = vec![0; all.len()];
    for (at, _) in kernels.into_iter().take(limit) {
        counts.get_mut(at).into_iter().for_each(|count| *count += 1);
    }
    all.iter_mut().zip(counts).for_each(|(one, count)| one.report.kernels.truncate(count));
    let is_one = all.len() == 1;
    all.retain(|one| is_one || !one.report.kernels.is_empty());
}

fn readable(kernel: &Kernel, raw: bool) -> &str {
    if raw { &kernel.name } else { kernel.readable() }
}
