//! `hoist cubin disasm FILE [FUNCTION]`: through NVIDIA's disassembler, where it is installed.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use fatbin::Sm;

use crate::cmd::fatbin::disasm::View;
use crate::cmd::fatbin::filter::{Code, Where};
use crate::kernel_filter::KernelFilter;
use crate::pattern::Pattern;
use crate::sources::Sources;

/// Shows machine code through nvdisasm, which the CUDA toolkit and the Python package nvidia-cuda-nvdisasm have.
///
/// It is looked for in the environment's NVDISASM, PATH, CUDA_HOME/bin, CUDA_PATH/bin and the packages of Python.
#[derive(Debug, clap::Args)]
pub(super) struct Disasm {
    /// A cubin, or what has cubins inside: a fatbin, a library, a wheel.
    file: PathBuf,
    /// The functions to show: by name, mangled or not, `gemm*`, or `/REGEX/`; without it, all.
    function: Option<Pattern>,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    view: View,
}

impl Disasm {
    pub(super) fn run(&self, arch: &[Sm], out: &mut dyn Write) -> Result<()> {
        let mut wanted = self.filter.kernel.clone();
        wanted.extend(self.function.clone());
        let sources = Sources::of(vec![self.file.clone()]);
        let code = Code::of_archs(arch.to_vec());
        self.view.show((&sources, &code, &Where::default()), &wanted, &self.filter, out)
    }
}
