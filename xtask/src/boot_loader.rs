//! `boot-loader`: the firmware of `examples/boot-loader`, which loads a static PIE and a fixed executable.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::bare::LLD;
use crate::bare_metal::{boot, build, emulate};
use crate::task::Run;
use crate::tool::{self, Missing, Tool};
use crate::workspace::Workspace;

/// Arguments of `boot-loader`.
#[derive(clap::Args)]
pub(crate) struct BootLoader {
    /// Only these targets
    only: Vec<String>,
}

/// A machine and its emulator.
pub(crate) struct Machine {
    pub(crate) target: &'static str,
    emulator: Tool<'static>,
    arguments: &'static [&'static str],
    /// The emulator's status where the firmware says that all is well.
    good: i32,
}

/// A PC, in which the firmware ends the emulator.
const PC: &[&str] = &["-M", "pc", "-no-reboot", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"];

pub(crate) const MACHINES: [Machine; 5] = [
    Machine {
        target: "aarch64-unknown-none",
        emulator: Tool::new("qemu-system-aarch64", "qemu-system-arm"),
        arguments: &["-M", "virt", "-cpu", "cortex-a57"],
        good: 0,
    },
    Machine {
        target: "riscv64gc-unknown-none-elf",
        emulator: Tool::new("qemu-system-riscv64", "qemu-system-misc"),
        arguments: &["-M", "virt", "-bios", "none"],
        good: 0,
    },
    Machine {
        target: "thumbv7em-none-eabihf",
        emulator: Tool::new("qemu-system-arm", "qemu-system-arm"),
        arguments: &["-M", "mps2-an386"],
        good: 0,
    },
    Machine {
        target: "x86_64-unknown-none",
        emulator: Tool::new("qemu-system-x86_64", "qemu-system-x86"),
        arguments: PC,
        good: 33,
    },
    Machine {
        target: UEFI,
        emulator: Tool::new("qemu-system-x86_64", "qemu-system-x86"),
        arguments: PC,
        good: 33,
    },
];

/// The machine whose firmware is UEFI, and starts an application from a disk.
const UEFI: &str = "x86_64-unknown-uefi";
/// Links UEFI's applications.
const LLD_LINK: Tool<'_> = Tool::new("lld-link-19", "lld-19");
/// UEFI for the emulator, and what brings it.
const OVMF: Tool<'_> = Tool::new("/usr/share/ovmf/OVMF.fd", "ovmf");
/// Where UEFI looks for an application on a disk that says nothing of itself (UEFI 2.10, section 3.5.1).
const APPLICATION: &str = "EFI/BOOT/BOOTX64.EFI";

/// What it must report, and how often at least: of either program two calls that gave what they should, a part that is refused, and pages
/// that cannot be written or run.
const LINES: [(&str, usize); 4] =
    [(": gave ", 4), (": refused: ", 2), ("write trapped", 5), ("execution trapped", 4)];

impl Machine {
    /// The packages that it takes.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &'static str> + use<> {
        let firmware = (self.target == UEFI).then_some(OVMF.package);
        [self.emulator.package].into_iter().chain(firmware)
    }
}

impl Run for BootLoader {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let wanted = |target: &str| self.only.is_empty() || self.only.iter().any(|it| it == target);
        let mut booted = 0;
        for machine in MACHINES.iter().filter(|machine| wanted(machine.target)) {
            let Machine { target, emulator, arguments, good } = *machine;
            let report = match target {
                UEFI => boot_from_disk(workspace, machine)?,
                _ => boot(workspace, "boot-loader", target, emulator, (arguments, good))?,
            };
            let lines =
                || report.lines().filter(|line| LINES.iter().any(|(it, _)| line.contains(it)));
            for line in lines() {
                println!("{target}: {line}");
            }
            for (part, times) in LINES {
                let found = lines().filter(|line| line.contains(part)).count();
                if found < times {
                    bail!("{target}: {found} lines with {part:?}, not {times}");
                }
            }
            booted += 1;
        }
        if booted == 0 {
            let names: Vec<&str> = MACHINES.iter().map(|machine| machine.target).collect();
            bail!("no such machine; there are {}", names.join(", "));
        }
        println!("{booted} machines booted, and ran both programs");
        Ok(())
    }
}

/// Builds the application, puts it on a disk and boots that.
fn boot_from_disk(workspace: &Workspace, machine: &Machine) -> Result<String> {
    tool::need([LLD, LLD_LINK, machine.emulator])?;
    if !Path::new(OVMF.program).exists() {
        let Tool { program, package } = OVMF;
        return Err(Missing(format!("{program} is missing: apt-get install {package}")).into());
    }
    let application = build(workspace, "boot-loader", machine.target, LLD_LINK)?;
    let disk = workspace.scratch("boot-loader-disk")?;
    let place = disk.join(APPLICATION);
    fs::create_dir_all(place.parent().unwrap_or(&disk))?;
    fs::copy(application.with_extension("efi"), place).context("no application")?;
    let disk = format!("format=raw,file=fat:rw:{}", disk.display());
    let arguments = [machine.arguments, &["-bios", OVMF.program, "-drive", &disk]].concat();
    emulate(machine.target, machine.emulator, &arguments, machine.good)
}
