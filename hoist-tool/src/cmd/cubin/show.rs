//! `hoist cubin show FILE [KERNEL]`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use fatbin::Sm;
use nvinfo::Cubin;
use serde::Serialize;

use super::kernel::{Kernel, kernels};
use super::module::Module;
use super::{KernelFilter, Request, each_report, text};
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

/// Kernels, and the module unless one kernel was asked for.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
}

/// What `cubin` holds: all of it, or the kernels that the patterns mean; nothing if it has none of these.
///
/// # Errors
/// If it is damaged.
pub fn report(
    cubin: &Cubin<'_>,
    wanted: &[Pattern],
    threads: Option<u32>,
) -> Result<Option<Shown>> {
    let kernels = kernels(cubin, wanted, threads)?;
    match wanted {
        [] => Ok(Some(Shown { kernels, module: Some(Module::of(cubin)?) })),
        _ if kernels.is_empty() => Ok(None),
        _ => Ok(Some(Shown { kernels, module: None })),
    }
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
                    self.filter.order(&mut shown.kernels);
                }
                Ok(shown)
            },
            |shown, out| text::shown(shown, self.filter.raw, out),
        )
    }
}
