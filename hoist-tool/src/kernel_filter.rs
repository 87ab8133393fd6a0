//! Which kernels of device code are meant, and how they are shown.

use crate::pattern::Pattern;

/// Which kernels, and how they are shown.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KernelFilter {
    /// Kernels by name, mangled or not, `gemm*`, or `/REGEX/`; several of them mean all that one of them means.
    #[arg(long = "kernel", value_name = "PATTERN", id = "kernel_pattern")]
    pub kernel: Vec<Pattern>,
    /// The order of kernels: `size` (of the code, largest first), `registers` (most first) or `name`; that of the file without it.
    #[arg(long, value_name = "BY")]
    pub sort: Option<Sort>,
    /// The most kernels to show.
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<usize>,
    /// Shows names mangled, as they are in the file.
    #[arg(long)]
    pub raw: bool,
}

/// An order of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// The largest code first.
    Size,
    /// The most registers first.
    Registers,
    /// By name.
    Name,
}
