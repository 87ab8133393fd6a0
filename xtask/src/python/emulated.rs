//! A wheel for another machine where there is nothing but that machine's Python: Debian's, under qemu.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::environment::{ALONE, OBJECTS};
use crate::tool::{Tool, need, output, run};
use crate::workspace::Workspace;

/// A machine, as Rust, Debian and qemu call it.
struct Machine {
    rust: &'static str,
    debian: &'static str,
    qemu: &'static str,
}

const MACHINES: &[Machine] = &[Machine { rust: "aarch64", debian: "arm64", qemu: "qemu-aarch64" }];

/// Installs a wheel for `target` where there is nothing but Python, and has it load an object there. The version of Python; `None` if this
/// target's machine is not one of those.
///
/// # Errors
/// [`Missing`](crate::tool::Missing) without qemu or Debian's programs; if packages cannot be had, or the wheel does not work.
pub(super) fn alone(workspace: &Workspace, wheel: &Path, target: &str) -> Result<Option<String>> {
    let Some(machine) = MACHINES.iter().find(|machine| target.starts_with(machine.rust)) else {
        return Ok(None);
    };
    need([
        Tool::new(machine.qemu, "qemu-user"),
        Tool::new("apt-get", "apt"),
        Tool::new("dpkg-deb", "dpkg"),
    ])?;
    let root = root(workspace, machine)?;
    let python = newest(&root.join("usr/bin"))?;
    let packages = workspace.scratch("wheel-emulated")?;
    // the platform is said, so that the tags of the wheel are looked at as there
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]);
    pip.args(["--only-binary=:all:", "--platform", &format!("manylinux_2_17_{}", machine.rust)]);
    output(pip.arg("--target").arg(&packages).arg(wheel))?;
    let objects =
        OBJECTS.map(|object| workspace.fixtures().join(object.replace("MACHINE", machine.rust)));
    let program = format!("import sys; sys.path.insert(0, {:?})\n{ALONE}", packages);
    let mut emulator = Command::new(machine.qemu);
    emulator.env_clear().arg("-L").arg(&root).arg(&python);
    output(emulator.args(["-I", "-B", "-c", &program]).args(&objects))?;
    let name = python.file_name().unwrap_or_default().to_string_lossy();
    Ok(Some(format!("{name} of {}", machine.debian)))
}

/// A folder with Python and all that it needs, of Debian's packages for that machine; nothing of this one changes.
fn root(workspace: &Workspace, machine: &Machine) -> Result<PathBuf> {
    let folder = workspace.kept(&format!("python-{}", machine.rust))?;
    let root = folder.join("root");
    if root.exists() {
        return Ok(root);
    }
    for inside in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(inside))?;
    }
    // nothing is installed there: all that Python needs is downloaded
    fs::write(folder.join("status"), "")?;
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        for (name, value) in
            [("APT::Architecture", machine.debian), ("APT::Architectures", machine.debian)]
        {
            apt.arg("-o").arg(format!("{name}={value}"));
        }
        let places =
            [("Dir::State", "state"), ("Dir::Cache", "cache"), ("Dir::State::status", "status")];
        for (name, inside) in places {
            apt.arg("-o").arg(format!("{name}={}", folder.join(inside).display()));
        }
        run(apt.args(["-qq", "-o", "Acquire::Languages=none"]).args(words))
    };
    apt(&["update"])?;
    apt(&[
        "install",
        "--download-only",
        "--yes",
        "--no-install-recommends",
        "python3",
        "libstdc++6",
    ])?;
    let half = folder.join("half");
    for package in fs::read_dir(folder.join("cache/archives"))? {
        let package = package?.path();
        if package.extension().is_some_and(|ending| ending == "deb") {
            output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&half))?;
            fs::remove_file(&package)?;
        }
    }
    fs::rename(half, &root).context("no packages were downloaded")?;
    Ok(root)
}

/// The interpreter in a folder of programs: `python3.11`.
fn newest(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_python = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.strip_prefix("python3.").is_some_and(|minor| minor.parse::<u32>().is_ok())
    };
    entries.into_iter().filter(is_python).max().context("Debian's packages have no Python")
}
