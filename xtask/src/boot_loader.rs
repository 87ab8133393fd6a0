//! `boot-loader`: the firmware of `examples/boot-loader`, which loads a static PIE and a fixed executable.

use anyhow::{Result, bail};

use crate::bare_metal::boot;
use crate::task::Run;
use crate::tool::Tool;
use crate::workspace::Workspace;

/// Arguments of `boot-loader`.
#[derive(clap::Args)]
pub(crate) struct BootLoader {
    /// Only these targets
    only: Vec<String>,
}

/// Targets, emulators, their packages, and what they are told.
const MACHINES: [(&str, Tool<'_>, &[&str]); 2] = [
    (
        "aarch64-unknown-none",
        Tool::new("qemu-system-aarch64", "qemu-system-arm"),
        &["-M", "virt", "-cpu", "cortex-a57"],
    ),
    (
        "riscv64gc-unknown-none-elf",
        Tool::new("qemu-system-riscv64", "qemu-system-misc"),
        &["-M", "virt", "-bios", "none"],
    ),
];

/// What it must report of either program: two calls that gave what they should, and a part that is refused.
const LINES: [(&str, usize); 2] = [(": gave ", 4), (": refused: ", 2)];

impl Run for BootLoader {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let wanted = |target: &str| self.only.is_empty() || self.only.iter().any(|it| it == target);
        let mut booted = 0;
        for (target, emulator, arguments) in MACHINES {
            if !wanted(target) {
                continue;
            }
            let report = boot(workspace, "boot-loader", target, emulator, (arguments, 0))?;
            for line in report.lines() {
                println!("{target}: {line}");
            }
            for (part, times) in LINES {
                let found = report.lines().filter(|line| line.contains(part)).count();
                if found != times {
                    bail!("{target}: {found} lines with {part:?}, not {times}");
                }
            }
            booted += 1;
        }
        if booted == 0 {
            bail!("no such machine; there are {}", MACHINES.map(|(target, ..)| target).join(", "));
        }
        println!("{booted} machines booted, and ran both programs");
        Ok(())
    }
}
