//! `hoist cubin disasm FILE [FUNCTION]`: through NVIDIA's disassembler, where it is installed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::toolkit::disassembler;
use crate::printable::Printable;

/// Shows machine code through nvdisasm, which the CUDA toolkit has.
///
/// It is looked for in the environment's NVDISASM, PATH, CUDA_HOME/bin and CUDA_PATH/bin.
#[derive(Debug, clap::Args)]
pub(super) struct Disasm {
    /// A cubin.
    file: PathBuf,
    /// The function to show; without it, all.
    function: Option<String>,
}

impl Disasm {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let label = self.file.display().to_string();
        let bytes = std::fs::read(&self.file).with_context(|| label.clone())?;
        let cubin = super::parse_alone(&bytes, &label)?;
        let index = match &self.function {
            Some(name) => {
                Some(super::function(&cubin, name).with_context(|| label.clone())?.index())
            }
            None => None,
        };
        let Some(tool) = disassembler() else {
            bail!(
                "nvdisasm is not installed: it shows machine code of CUDA, and comes with the CUDA toolkit (NVDISASM may name it)"
            );
        };
        let mut command = Command::new(&tool);
        if let Some(index) = index {
            command.args(["-fun", &format!("{index:#x}")]);
        }
        let output =
            command.arg(&self.file).output().with_context(|| tool.display().to_string())?;
        out.write_all(&output.stdout)?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            bail!("{label}: nvdisasm: {}", Printable::from(text.trim()));
        }
        Ok(io::Write::flush(out)?)
    }
}
