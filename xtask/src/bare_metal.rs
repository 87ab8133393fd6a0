//! `bare-metal`: the firmware of `examples/bare-metal` on machines without an operating system.

use std::path::PathBuf;
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
    /// The emulator's status where the firmware says that all is well.
    good: i32,
}

const ARM: Tool<'_> = Tool::new("qemu-system-arm", "qemu-system-arm");

pub(crate) const MACHINES: &[Machine] = &[
    Machine {
        target: "aarch64-unknown-none",
        emulator: Tool::new("qemu-system-aarch64", "qemu-system-arm"),
        arguments: &["-M", "virt", "-cpu", "cortex-a57"],
        good: 0,
    },
    Machine {
        target: "x86_64-unknown-none",
        emulator: Tool::new("qemu-system-x86_64", "qemu-system-x86"),
        arguments: &["-M", "pc", "-no-reboot", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"],
        good: 33,
    },
    Machine {
        target: "riscv64gc-unknown-none-elf",
        emulator: Tool::new("qemu-system-riscv64", "qemu-system-misc"),
        arguments: &["-M", "virt", "-bios", "none"],
        good: 0,
    },
    Machine {
        target: "riscv32imac-unknown-none-elf",
        emulator: Tool::new("qemu-system-riscv32", "qemu-system-misc"),
        arguments: &["-M", "virt", "-bios", "none"],
        good: 0,
    },
    Machine {
        target: "thumbv6m-none-eabi",
        emulator: ARM,
        arguments: &["-M", "microbit"],
        good: 0,
    },
    Machine {
        target: "thumbv7em-none-eabihf",
        emulator: ARM,
        arguments: &["-M", "mps2-an386"],
        good: 0,
    },
    Machine {
        target: "thumbv8m.main-none-eabi",
        emulator: ARM,
        arguments: &["-M", "mps2-an505"],
        good: 0,
    },
];

/// What the firmware's own lines start with the first of: an emulator's firmware may have written before.
const FIRST: &str = "refused: ";
/// Objects that it must refuse, and calls that it must make.
const REFUSALS: usize = 4;
const CALLS: usize = 18;

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
        for machine in &chosen {
            let report = machine.boot(workspace)?;
            for line in machine.check(&report)?.lines() {
                println!("{}: {line}", machine.target);
            }
        }
        println!("{} machines booted, {CALLS} calls on each", chosen.len());
        Ok(())
    }
}

impl Machine {
    /// Builds the firmware, boots it and returns what it reports.
    ///
    /// # Errors
    /// If a tool is missing, it does not build, does not end or ends with a failure.
    pub(crate) fn boot(&self, workspace: &Workspace) -> Result<String> {
        boot(workspace, "bare-metal", self.target, self.emulator, (self.arguments, self.good))
    }

    /// What the firmware reports, if nothing is missing from it.
    ///
    /// # Errors
    /// If something is.
    pub(crate) fn check<'a>(&self, report: &'a str) -> Result<&'a str> {
        let (_, report) = report.split_at(report.find(FIRST).unwrap_or(report.len()));
        let count = |is: fn(&&str) -> bool| report.lines().filter(is).count();
        let refusals = count(|line| line.starts_with(FIRST));
        let calls = count(|line| line.contains(", expected "));
        if (refusals, calls) == (REFUSALS, CALLS) {
            return Ok(report);
        }
        bail!(
            "{}: {refusals} refusals and {calls} calls reported, not {REFUSALS} and {CALLS}",
            self.target
        );
    }
}

/// Builds the firmware of this name in `examples` for a target, boots it and returns what it reports. `good` is the emulator's status
/// where all is well.
///
/// # Errors
/// If a tool is missing, it does not build, does not end or ends with a failure.
pub(crate) fn boot(
    workspace: &Workspace,
    example: &str,
    target: &str,
    emulator: Tool<'_>,
    (arguments, good): (&[&str], i32),
) -> Result<String> {
    tool::need([LLD, emulator])?;
    let firmware = build(workspace, example, target, LLD)?;
    let firmware = firmware.to_string_lossy();
    // PCs have no such calls to their host
    let semihosting: &[&str] = match target.starts_with("x86_64") {
        true => &[],
        false => &["-semihosting-config", "enable=on,target=native"],
    };
    let arguments = [arguments, semihosting, &["-kernel", &*firmware]].concat();
    emulate(target, emulator, &arguments, good)
}

/// Builds the firmware of this name in `examples` for a target.
///
/// # Errors
/// If it does not build.
pub(crate) fn build(
    workspace: &Workspace,
    example: &str,
    target: &str,
    linker: Tool<'_>,
) -> Result<PathBuf> {
    let toolchain = Toolchain::of(target)?;
    let home = workspace.root().join("examples").join(example);
    let folder = workspace.kept(example)?;
    let variable = target.replace(['-', '.'], "_").to_uppercase();
    output(
        toolchain
            .cargo()
            .current_dir(&home)
            .args(["build", "--quiet", "--release", "--target", target])
            .env("CARGO_TARGET_DIR", &folder)
            .env_remove("RUSTFLAGS")
            .env(format!("CARGO_TARGET_{variable}_LINKER"), linker.program),
    )?;
    Ok(folder.join(target).join("release").join(example))
}

/// Runs an emulator and returns what the firmware in it reports.
///
/// # Errors
/// If that does not end, or ends with another status than the `good` one.
pub(crate) fn emulate(
    target: &str,
    emulator: Tool<'_>,
    arguments: &[&str],
    good: i32,
) -> Result<String> {
    let booted = Command::new("timeout")
        .args(["120", emulator.program])
        // no network, whose ROM is another package
        .args(["-nographic", "-nic", "none"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", emulator.program))?;
    // The emulator may write the firmware's text to either.
    let text = [booted.stdout, booted.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if booted.status.code() != Some(good) {
        bail!("{target}: {}\n{}", booted.status, text.trim_end());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_must_be_whole() {
        let machine = MACHINES.first().unwrap();
        let refusals = "refused: text: not ELF\n".repeat(REFUSALS);
        let calls = "f(1): Some(1), expected 1\n".repeat(CALLS);
        let whole = format!("{refusals}{calls}");
        assert_eq!(machine.check(&format!("SeaBIOS\n{whole}")).unwrap(), whole);
        assert!(machine.check(&calls).is_err());
        assert!(machine.check(&refusals).is_err());
        assert!(machine.check("").is_err());
    }
}
