//! `hoist cubin show FILE [KERNEL]`.

use std::cmp::Reverse;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use fatbin::Sm;

use super::kernel::Kernel;
use super::look::{Request, each_report};
use super::shown::report;
use super::text;
use crate::kernel_filter::{KernelFilter, Sort};
use crate::pattern::Pattern;

/// Shows kernels and what they need, then the module.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// A cubin, an archive of them, or what has cubins inside: a fatbin, a host object, a library.
    file: PathBuf,
    /// Kernels in detail: by name, mangled or not, `gemm*`, or `/REGEX/`.
    kernel: Option<Pattern>,
    #[command(flatten)]
    filter: KernelFilter,
    /// Threads of a block that occupancy is given for: otherwise those that the kernel names, or 256.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(&self, arch: Option<Sm>, out: &mut dyn Write) -> Result<()> {
        let mut wanted = self.filter.kernel.clone();
        wanted.extend(self.kernel.clone());
        each_report(
            Request { file: &self.file, arch, json: self.json, what: "kernel", wanted: &wanted },
            out,
            |cubin| {
                let mut shown = report(cubin, &wanted, self.threads)?;
                if let Some(shown) = &mut shown {
                    order(&self.filter, &mut shown.kernels);
                }
                Ok(shown)
            },
            |shown, out| text::shown(shown, self.filter.raw, out),
        )
    }
}

/// Puts kernels in order, and leaves out those beyond the limit.
fn order(filter: &KernelFilter, kernels: &mut Vec<Kernel>) {
    match filter.sort {
        None => {}
        Some(Sort::Size) => kernels.sort_by_key(|one| Reverse(one.code_size)),
        Some(Sort::Registers) => kernels.sort_by_key(|one| Reverse(one.registers)),
        Some(Sort::Name) => kernels.sort_by(|one, other| one.readable().cmp(other.readable())),
    }
    kernels.truncate(filter.limit.unwrap_or(usize::MAX));
}
