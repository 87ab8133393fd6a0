//! Tools of the CUDA toolkit, where it is installed.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use fatbin::Sm;

use crate::printable::Printable;
use crate::sass::find_tool;

/// A relocatable cubin of PTX, by ptxas.
///
/// # Errors
/// If ptxas is not installed, if no architecture is named, or what ptxas says is wrong.
pub(super) fn assemble(ptx: &[u8], label: &str, arch: Option<Sm>) -> Result<Vec<u8>> {
    let Some(tool) = find_tool("ptxas", "PTXAS") else {
        bail!(
            "{label}: is PTX: ptxas makes a cubin of it, comes with the CUDA toolkit and is not installed (PTXAS may name it)"
        );
    };
    let Some(arch) = arch else {
        bail!("{label}: is PTX: --arch says for which architecture ptxas is to make a cubin of it");
    };
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let [source, output] = ["source.ptx", "output.cubin"].map(|name| folder.path().join(name));
    // in containers PTX ends with a null byte
    let text = ptx.split(|&byte| byte == 0).next().unwrap_or_default();
    fs::write(&source, text).with_context(|| source.display().to_string())?;
    let mut command = Command::new(&tool);
    command.arg("-c").arg(format!("-arch=sm_{arch}")).arg(&source);
    let run = command.arg("-o").arg(&output).output();
    let run = run.with_context(|| tool.display().to_string())?;
    if !run.status.success() {
        let source = source.to_string_lossy();
        let errors = String::from_utf8_lossy(&run.stderr).replace(&*source, label);
        bail!("{label}: ptxas: {}", Printable::from(errors.trim()));
    }
    fs::read(&output).with_context(|| output.display().to_string())
}
