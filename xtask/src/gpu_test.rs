//! `gpu-test`: a folder that is carried to a machine with a GPU, where one script runs everything and writes a report.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::task::Run;
use crate::tool;
use crate::workspace::Workspace;

/// Arguments of `gpu-test`.
#[derive(clap::Args)]
pub(crate) struct GpuTest {
    /// Make the folder only, to be carried elsewhere: there, `sh FOLDER/run.sh OUTPUT`
    #[arg(long, value_name = "FOLDER")]
    bundle: Option<PathBuf>,
    /// Libraries to take along, whose kernels are launched if they are known (libbitsandbytes_cuda13*.so)
    #[arg(long, value_name = "FILE")]
    library: Vec<PathBuf>,
    /// Run the steps of one loader only: raw, without CUDA
    #[arg(long, value_parser = ["raw"], conflicts_with = "bundle")]
    loader: Option<String>,
    /// The oldest glibc that the programs are to run with, as 2.17; wants cargo-zigbuild. Otherwise it is this machine's
    #[arg(long, value_name = "VERSION")]
    glibc: Option<String>,
    /// The profile that the programs are built with
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Programs: package, what cargo builds, features, and what they are called.
const PROGRAMS: &[(&str, [&str; 2], &str, &str)] = &[
    ("hoist-tool", ["--bin", "hoist"], "", "hoist"),
    ("exec-nv", ["--example", "gpu_test"], "raw", "gpu_test"),
    ("exec-nv", ["--example", "gpu_test"], "raw", "gpu_test_static"),
    ("exec-nv", ["--example", "raw_bring_up"], "raw", "raw_bring_up"),
];

/// Programs for what opens no library: statically linked, they need no C library of the other machine. `libcuda` they could open only beside the
/// very C library they are linked from.
const STATIC: &[&str] = &["gpu_test_static", "raw_bring_up"];

/// Fixtures that the steps load, of each of the versions: a driver takes what is not newer than itself.
const CUBINS: [(&str, &str); 3] =
    [("gpu-", "-sm_90.fatbin"), ("gpu-", "-ptx.fatbin"), ("gpu_linked-", "-sm_90.cubin")];
const VERSIONS: [&str; 4] = ["12.0", "12.4", "12.8", "13.0"];

/// The kernels for other devices.
const OTHERS: [&str; 3] =
    ["gpu-13.5-sm_80.fatbin", "gpu-13.5-sm_100.fatbin", "gpu-13.5-sm_120.fatbin"];

/// The objects that hoist links, and what of them.
const OBJECTS: [&str; 2] = ["gpu_a-13.0-sm_90.cubin", "gpu_b-13.0-sm_90.cubin"];
const LINKED: &str = "gpu_linked-hoist-sm_90.cubin";

/// Scripts, beside the crate they are for.
const SCRIPTS: &[&str] = &["run.sh", "compare.py"];

/// Bytes that a carried folder may have: a machine lent for a while takes 64 MiB, the sources included.
const LARGEST: u64 = 50 << 20;

impl Run for GpuTest {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let folder = match &self.bundle {
            Some(folder) => folder.clone(),
            None => workspace.target().join("gpu-test"),
        };
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        self.programs(workspace, &folder)?;
        self.files(workspace, &folder)?;
        let size = size(&folder)?;
        println!("{}: {} KiB", folder.display(), size >> 10);
        if size > LARGEST {
            bail!("{size} bytes are more than can be carried, {LARGEST}");
        }
        if self.bundle.is_some() {
            return Ok(());
        }
        let report = folder.join("report");
        let mut script = Command::new("sh");
        script.arg(folder.join("run.sh")).arg(report);
        tool::run(script.envs(self.loader.iter().map(|loader| ("GPU_TEST_LOADER", loader))))
    }
}

impl GpuTest {
    fn programs(&self, workspace: &Workspace, folder: &Path) -> Result<()> {
        for (package, what, features, name) in PROGRAMS {
            let is_static = STATIC.contains(name);
            let glibc = self.glibc.as_ref().filter(|_| !is_static);
            let mut cargo = tool::cargo();
            cargo.current_dir(workspace.root()).arg(if glibc.is_some() {
                "zigbuild"
            } else {
                "build"
            });
            cargo.args(["--profile", &self.profile, "-p", package]).args(what);
            if !features.is_empty() {
                cargo.args(["--features", features]);
            }
            let mut program = workspace.target();
            let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
            if is_static {
                // with a target named, flags are for the program and not for what builds it
                cargo.args(["--target", &target]).env("RUSTFLAGS", "-C target-feature=+crt-static");
                program.push(&target);
            } else if let Some(glibc) = glibc {
                cargo.args(["--target", &format!("{target}.{glibc}")]);
                program.push(&target);
            }
            tool::run(&mut cargo)?;
            program.push(if self.profile == "dev" { "debug" } else { &self.profile });
            if what.contains(&"--example") {
                program.push("examples");
            }
            program.push(what[1]);
            copy(&program, &folder.join(name))?;
        }
        Ok(())
    }

    fn files(&self, workspace: &Workspace, folder: &Path) -> Result<()> {
        let fixtures = workspace.fixtures().join("cuda");
        for version in VERSIONS {
            for (start, end) in CUBINS {
                let name = format!("{start}{version}{end}");
                copy(&fixtures.join(&name), &folder.join(&name))?;
            }
        }
        for name in OTHERS {
            copy(&fixtures.join(name), &folder.join(name))?;
        }
        let mut link = Command::new(folder.join("hoist"));
        link.args(["cubin", "link"]).args(OBJECTS.map(|name| fixtures.join(name)));
        tool::run(link.arg("-o").arg(folder.join(LINKED)))?;
        for name in SCRIPTS {
            copy(&workspace.root().join("exec-nv/gpu-test").join(name), &folder.join(name))?;
        }
        recorder(workspace, folder, self.glibc.as_deref());
        for library in &self.library {
            let name = library.file_name().context("a library without a name")?;
            copy(library, &folder.join(name))?;
        }
        let mut git = Command::new("git");
        git.current_dir(workspace.root()).args(["rev-parse", "HEAD"]);
        let commit = tool::output(&mut git).map(|output| output.stdout).unwrap_or_default();
        fs::write(folder.join("commit"), commit).context("cannot write the commit's name")
    }
}

/// Builds what writes down the calls of a program to the kernel driver. A folder without it does without that step.
fn recorder(workspace: &Workspace, folder: &Path, glibc: Option<&str>) {
    let mut cc = match glibc {
        Some(glibc) => {
            let mut zig = Command::new("cargo-zigbuild");
            let target = format!("{}-linux-gnu.{glibc}", std::env::consts::ARCH);
            zig.args(["zig", "cc", "--", "-target", &target]);
            zig
        }
        None => Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into())),
    };
    cc.args(["-shared", "-fPIC", "-O2", "-o"]).arg(folder.join("recorder.so"));
    cc.arg(workspace.root().join("exec-nv/gpu-test/recorder.c")).arg("-ldl");
    if let Err(error) = tool::run(&mut cc) {
        println!("no recorder: {error:#}");
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Bytes of the files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        let data = entry?.metadata()?;
        size += if data.is_file() { data.len() } else { 0 };
    }
    Ok(size)
}
