//! `bare-metal`: the firmware of `examples/bare-metal` on machines without an operating system.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bare::{LLD, Toolchain};
use crate::task::Run;
use crate::tool::{self, Tool, output};
use crate::workspace::Workspace;

/// Arguments of `bare-metal`.
#[derive(clap::Args)]
pub(crate) struct BareMetal {
    /// Only these targets
    only: Vec<String>,
}

/// A machine and its emulator.
pub(crate) struct Machine {
    pub(crate) target: &'static str,
    pub(crate) emulator: Tool<'static>,
    arguments: &'static [&'static str],
    /// Lines that it reports beside that of the image.
    calls: usize,
}

pub(crate) const MACHINES: &[Machine] = &[
    Machine {
        target: "aarch64-unknown-none",
        emulator: Tool::new("qemu-system-aarch64", "qemu-system-arm"),
        arguments: &["-M", "virt", "-cpu", "cortex-a57"],
        calls: 6,
    },
    Machine {
        target: "thumbv7em-none-eabihf",
        emulator: Tool::new("qemu-system-arm", "qemu-system-arm"),
        arguments: &["-M", "mps2-an386"],
        calls: 0,
    },
    Machine {
        target: "riscv32imac-unknown-none-elf",
        emulator: Tool::new("qemu-system-riscv32", "qemu-system-misc"),
        arguments: &["-M", "virt", "-bios", "none"],
        calls: 0,
    },
];

/// What the line about the image starts with.
const IMAGE: &str = "image for ";

impl Run for BareMetal {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let wanted = |machine: &&Machine| {
            self.only.is_empty() || self.only.iter().any(|target| target == machine.target)
        };
        let chosen: Vec<&Machine> = MACHINES.iter().filter(wanted).collect();
        if chosen.is_empty() {
            bail!(
                "no such machine; there are {}",
                MACHINES.iter().map(|machine| machine.target).collect::<Vec<_>>().join(", ")
            );
        }
        let mut images = BTreeSet::new();
        for machine in &chosen {
            let report = machine.boot(workspace)?;
            for line in report.lines() {
                println!("{}: {line}", machine.target);
            }
            images.insert(machine.check(&report)?.to_owned());
        }
        if images.len() > 1 {
            bail!("the machines make different images");
        }
        println!("{} machines booted; all make the same image", chosen.len());
        Ok(())
    }
}

impl Machine {
    /// Builds the firmware, boots it and returns what it reports.
    ///
    /// # Errors
    /// If a tool is missing, it does not build, does not end or ends with a failure.
    pub(crate) fn boot(&self, workspace: &Workspace) -> Result<String> {
        boot(workspace, "bare-metal", self.target, self.emulator, self.arguments)
    }

    /// The line about the image, if nothing is missing from the report.
    ///
    /// # Errors
    /// If something is.
    pub(crate) fn check<'a>(&self, report: &'a str) -> Result<&'a str> {
        let calls = report.lines().filter(|line| line.contains(", expected ")).count();
        if calls != self.calls {
            bail!("{}: {calls} calls reported, not {}", self.target, self.calls);
        }
        let mut lines = report.lines();
        lines
            .find(|line| line.starts_with(IMAGE))
            .with_context(|| format!("{}: no image reported", self.target))
    }
}

/// Builds the firmware of this name in `examples` for a target, boots it and returns what it reports.
///
/// # Errors
/// If a tool is missing, it does not build, does not end or ends with a failure.
pub(crate) fn boot(
    workspace: &Workspace,
    example: &str,
    target: &str,
    emulator: Tool<'_>,
    arguments: &[&str],
) -> Result<String> {
    tool::need([LLD, emulator])?;
    let toolchain = Toolchain::of(target)?;
    let home = workspace.root().join("examples").join(example);
    let folder = workspace.kept(example)?;
    let linker = format!("CARGO_TARGET_{}_LINKER", target.replace('-', "_").to_uppercase());
    output(
        toolchain
            .cargo()
            .current_dir(&home)
            .args(["build", "--quiet", "--release", "--target", target])
            .env("CARGO_TARGET_DIR", &folder)
            .env_remove("RUSTFLAGS")
            .env(linker, LLD.program),
    )?;
    let firmware = folder.join(target).join("release").join(example);
    let booted = Command::new("timeout")
        .args(["60", emulator.program])
        .args(arguments)
        // no network, whose ROM is another package
        .args(["-nographic", "-nic", "none"])
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(firmware)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", emulator.program))?;
    // The emulator may write the firmware's text to either.
    let text = [booted.stdout, booted.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if !booted.status.success() {
        bail!("{target}: {}\n{}", booted.status, text.trim_end());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_must_be_whole() {
        let [first, second, ..] = MACHINES else { panic!() };
        let calls = "f: Some(1), expected 1\n".repeat(first.calls);
        assert_eq!(first.check(&format!("{calls}image for 1\n")).unwrap(), "image for 1");
        assert!(first.check("image for 1\n").is_err());
        assert!(second.check("").is_err());
        assert_eq!(second.check("image for 2").unwrap(), "image for 2");
    }
}
