//! `nvcc-modes`: what `hoist fatbin recompress --mode` makes of code that nvcc compiled, beside what nvcc makes of it in the same mode.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::task::{Run, Told};
use crate::tool::{self, Tool, need, output};
use crate::workspace::Workspace;

/// Arguments of `nvcc-modes`.
#[derive(clap::Args)]
pub(crate) struct NvccModes {
    /// Sources, instead of two of ours
    sources: Vec<PathBuf>,
    /// A hoist, instead of building one
    #[arg(long, value_name = "PATH")]
    hoist: Option<PathBuf>,
}

/// The compiler with all its parts, as Python packages.
const PACKAGES: [&str; 6] = [
    "nvidia-cuda-nvcc==13.5.37",
    "nvidia-nvvm==13.5.37",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-cccl==13.3.5.0.6",
    "nvidia-cuda-culibos==13.5.25",
];

/// What code is compiled for.
const CODE: [&str; 4] = [
    "-gencode",
    "arch=compute_90,code=[sm_90,compute_90]",
    "-gencode",
    "arch=compute_100,code=sm_100",
];

/// What is compiled if nothing is named.
const SOURCES: [&str; 2] = ["fixtures/cuda/gpu.cu", "xtask/src/nvcc_modes/templates.cu"];

const MODES: [&str; 3] = ["speed", "balance", "size"];

impl Run for NvccModes {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([Tool::new("python3", "python3 python3-pip"), Tool::new("g++", "g++")])?;
        let nvcc = nvcc(workspace)?;
        let hoist = match self.hoist {
            Some(hoist) => fs::canonicalize(hoist)?,
            None => {
                let mut build = tool::cargo();
                build.current_dir(workspace.root()).args(["build", "--package", "hoist-tool"]);
                tool::run(&mut build)?;
                workspace.target().join("debug/hoist")
            }
        };
        let mut sources = self.sources;
        if sources.is_empty() {
            sources.extend(SOURCES.map(|source| workspace.root().join(source)));
        }
        let scratch = workspace.scratch("nvcc-modes")?;
        println!("| source | mode | nvcc | `-Xfatbin -compress-all` | hoist |");
        println!("|---|---|---:|---:|---:|");
        let mut larger = Vec::new();
        for source in &sources {
            let compiled = |mode: &str, all: bool| -> Result<PathBuf> {
                let out = scratch.join(format!("{mode}-{all}.fatbin"));
                let mut command = Command::new(&nvcc);
                command.arg("-fatbin").arg(format!("--compress-mode={mode}")).args(CODE);
                command.args(if all { &["-Xfatbin", "-compress-all"][..] } else { &[] });
                output(command.arg(source).arg("-o").arg(&out))?;
                Ok(out)
            };
            let size = |path: &Path| Ok::<_, anyhow::Error>(fs::metadata(path)?.len());
            let plain = compiled("none", false)?;
            for mode in MODES {
                let ours = scratch.join("ours.fatbin");
                let mut command = Command::new(&hoist);
                command.args(["fatbin", "recompress", "--mode", mode]).arg(&plain);
                output(command.arg("-o").arg(&ours))?;
                let name = source.file_name().context("no name")?.to_string_lossy();
                let (some, all) = (size(&compiled(mode, false)?)?, size(&compiled(mode, true)?)?);
                let ours = size(&ours)?;
                println!("| {name} | {mode} | {some} | {all} | {ours} |");
                if ours > some || ours > all {
                    larger.push(format!("{name}, {mode}: {ours} bytes"));
                }
            }
        }
        larger.iter().for_each(|what| eprintln!("{what}: larger than nvcc's"));
        if larger.is_empty() { Ok(()) } else { Err(Told.into()) }
    }
}

/// The compiler, in a folder under the target directory.
fn nvcc(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("nvcc");
    let home = folder.join("site/nvidia/cu13");
    let stamp = folder.join("packages");
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]);
        pip.args(["--only-binary=:all:", "--target"]).arg(folder.join("site"));
        tool::run(pip.args(PACKAGES))?;
        // pip leaves programs in such places without the right to be run
        for part in ["bin", "nvvm/bin"] {
            output(Command::new("chmod").args(["-R", "u+x"]).arg(home.join(part)))?;
        }
        fs::write(stamp, wanted)?;
    }
    Ok(home.join("bin/nvcc"))
}
