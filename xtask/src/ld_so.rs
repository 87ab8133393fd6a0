//! `ld-so`: every shared library of the machine as the dynamic loader and as hoist relocate it, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use elf_core::File;
use elf_core::names::ET_DYN;

use crate::task::Run;
use crate::tool::{cargo, run};
use crate::workspace::Workspace;

/// Arguments of `ld-so`.
#[derive(clap::Args)]
pub(crate) struct LdSo {
    /// Files, and folders with libraries
    #[arg(default_values = ["/usr/lib", "/usr/local/lib"])]
    paths: Vec<PathBuf>,
}

impl Run for LdSo {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let mut files = Vec::new();
        for path in &self.paths {
            collect(path, &mut files);
        }
        files.sort();
        if files.is_empty() {
            bail!("no shared library of this machine");
        }
        let mut command = cargo();
        command.current_dir(workspace.root());
        command.args(["run", "--quiet", "--package", "exec-host", "--example", "ld_so", "--"]);
        run(command.args(files))
    }
}

/// The shared libraries of this machine in a folder and below.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        files.push(path.to_owned());
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, files),
            Ok(kind) if kind.is_file() && name.to_string_lossy().contains(".so") => {
                files.extend(Some(path).filter(|path| is_library(path)));
            }
            _ => {}
        }
    }
}

fn is_library(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    File::parse_segments(&bytes).is_ok_and(|file| {
        let header = file.header();
        header.r#type == ET_DYN && header.machine == machine && file.encoding().is_64()
    })
}
