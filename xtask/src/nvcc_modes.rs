//! `nvcc-modes`: what `hoist fatbin recompress --mode` makes of code that nvcc compiled, beside what nvcc
//! makes of it in the same mode; all unpack to the same images, and LTO-IR is the same to the byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::slim_wheels::images::Images;
use crate::task::{Reported, Run};
use crate::tool::{self, Tool, need, output};
use crate::workspace::Workspace;

/// Arguments of `nvcc-modes`.
#[derive(clap::Args)]
pub(crate) struct NvccModes {
    /// Sources, instead of ours
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

/// What code is compiled for, if nothing else is said.
const CODE: &str =
    "-gencode arch=compute_90,code=[sm_90,compute_90] -gencode arch=compute_100,code=sm_100";

/// A source, and how it is compiled.
struct Case {
    /// Where it is.
    source: PathBuf,
    /// What is different about it, for the table.
    what: &'static str,
    /// Options of nvcc, and for which code.
    options: &'static str,
    code: &'static str,
}

/// What is compiled if nothing is named.
const CASES: [(&str, &str, &str, &str); 12] = [
    ("fixtures/cuda/gpu.cu", "", "", CODE),
    ("fixtures/cuda/gpu.cu", "`-lineinfo`", "-lineinfo", CODE),
    ("fixtures/cuda/gpu.cu", "`-G`", "-G", CODE),
    ("fixtures/cuda/gpu_a.cu", "`-rdc=true`", "-rdc=true", CODE),
    ("xtask/src/nvcc_modes/templates.cu", "", "", CODE),
    ("xtask/src/nvcc_modes/kernels.cu", "", "", CODE),
    ("xtask/src/nvcc_modes/kernels.cu", "six architectures", "", SIX),
    ("xtask/src/nvcc_modes/tables.cu", "", "", CODE),
    ("fixtures/cuda/gpu_a.cu", "LTO-IR and cubin", "-rdc=true", LTO),
    ("xtask/src/nvcc_modes/templates.cu", "LTO-IR and cubin", "-rdc=true", LTO),
    ("xtask/src/nvcc_modes/kernels.cu", "LTO-IR and cubin", "-rdc=true", LTO),
    ("xtask/src/nvcc_modes/tables.cu", "LTO-IR and cubin", "-rdc=true", LTO),
];

/// Several architectures, one of them with PTX.
const SIX: &str = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=sm_86 -gencode arch=compute_89,code=sm_89 \
    -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_100,code=sm_100 -gencode arch=compute_120,code=[sm_120,compute_120]";

/// Code for the linker.
const LTO: &str =
    "-gencode arch=compute_80,code=lto_80 -gencode arch=compute_90a,code=[lto_90a,sm_90a]";

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
        let mut cases: Vec<_> = self.sources.into_iter().map(Case::of_source).collect();
        if cases.is_empty() {
            cases.extend(CASES.map(|(source, what, options, code)| Case {
                source: workspace.root().join(source),
                what,
                options,
                code,
            }));
        }
        let scratch = workspace.scratch("nvcc-modes")?;
        println!("| source | mode | not compressed | nvcc | `-Xfatbin -compress-all` | hoist |");
        println!("|---|---|---:|---:|---:|---:|");
        let mut larger = Vec::new();
        for case in &cases {
            let plain = case.compiled(&nvcc, &scratch, "none", false)?;
            for mode in MODES {
                let out = scratch.join("ours.fatbin");
                let mut command = Command::new(&hoist);
                command.args(["fatbin", "recompress", "--mode", mode]).arg(&plain);
                command.env("FATBINARY", nvcc.with_file_name("fatbinary"));
                output(command.arg("-o").arg(&out))?;
                let some = case.compiled(&nvcc, &scratch, mode, false)?;
                let all = case.compiled(&nvcc, &scratch, mode, true)?;
                if case.code == LTO {
                    // what NVVM unpacks to cannot be known
                    let equal = fs::read(&all)? == fs::read(&out)?;
                    ensure!(equal, "{}, {mode}: not nvcc's to the byte", case.name()?);
                } else {
                    for file in [&some, &all, &out] {
                        let images = |path: &Path| Images::of_library(&hoist, path, "fatbin");
                        let equal = images(&plain)?.compare(&images(file)?, None, &[]);
                        equal.with_context(|| format!("{}, {mode}", file.display()))?;
                    }
                }
                let (name, before) = (case.name()?, size(&plain)?);
                let [some, all, ours] = [size(&some)?, size(&all)?, size(&out)?];
                println!("| {name} | {mode} | {before} | {some} | {all} | {ours} |");
                if ours > some || ours > all {
                    larger.push(format!("{name}, {mode}: {ours} bytes"));
                }
            }
        }
        larger.iter().for_each(|what| eprintln!("{what}: larger than nvcc's"));
        if larger.is_empty() { Ok(()) } else { Err(Reported.into()) }
    }
}

fn size(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path)?.len())
}

impl Case {
    /// A source that the user names.
    const fn of_source(source: PathBuf) -> Self {
        Self { source, what: "", options: "", code: CODE }
    }

    fn name(&self) -> Result<String> {
        let name = self.source.file_name().context("no name")?.to_string_lossy();
        Ok(if self.what.is_empty() { name.into_owned() } else { format!("{name}, {}", self.what) })
    }

    /// The fatbin that nvcc makes in a mode; with `all` what it leaves as it is otherwise is compressed, too.
    fn compiled(&self, nvcc: &Path, folder: &Path, mode: &str, all: bool) -> Result<PathBuf> {
        let out = folder.join(format!("{mode}-{all}.fatbin"));
        let mut command = Command::new(nvcc);
        command.arg("-fatbin").arg(format!("--compress-mode={mode}"));
        // names of files that are kept are the same each time, and debug information has them
        let kept = folder.join("kept");
        fs::create_dir_all(&kept)?;
        command.arg("--keep").arg("--keep-dir").arg(kept);
        command.args(self.code.split_whitespace()).args(self.options.split_whitespace());
        command.args(if all { &["-Xfatbin", "-compress-all"][..] } else { &[] });
        output(command.arg(&self.source).arg("-o").arg(&out))?;
        Ok(out)
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
