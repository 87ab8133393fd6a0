//! `hoist cubin show FILE [KERNEL]`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use nvinfo::Cubin;
use serde::Serialize;

use super::kernel::{Kernel, kernels};
use super::module::Module;
use super::{Pick, each_report, text};
use crate::printable::Printable;

/// Shows kernels and what they need, then the module.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// A cubin, an archive of them, or what has cubins inside: a fatbin, a host object, a library.
    file: PathBuf,
    /// One kernel alone, in detail.
    kernel: Option<String>,
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

/// What `cubin` holds: all of it, or one kernel.
///
/// # Errors
/// If it is damaged, or has no such kernel.
pub fn report(cubin: &Cubin<'_>, kernel: Option<&str>, threads: Option<u32>) -> Result<Shown> {
    let kernels = kernels(cubin, kernel, threads)?;
    match kernel {
        Some(name) if kernels.is_empty() => bail!("no kernel {}", Printable::from(name)),
        Some(_) => Ok(Shown { kernels, module: None }),
        None => Ok(Shown { kernels, module: Some(Module::of(cubin)?) }),
    }
}

impl Show {
    pub(super) fn run(&self, pick: Pick, out: &mut dyn Write) -> Result<()> {
        each_report(
            (&self.file, pick, self.json),
            out,
            |cubin| report(cubin, self.kernel.as_deref(), self.threads),
            text::shown,
        )
    }
}
