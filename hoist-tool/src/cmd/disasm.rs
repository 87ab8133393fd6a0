//! `hoist disasm OBJECT [FUNCTION]`: instructions, with the names of what relocations make them mean.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use archs::Architecture;
use elf_core::names::{EF_ARM_BE8, EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64};
use elf_core::{Name, SectionFlags, SectionHeader, names};

use crate::budget::{Budget, Limits, Metered};
use crate::input::{Input, Part};
use crate::meant::meant;
use crate::objects::parse;
use crate::printable::Printable;

mod aarch64;
mod arm;
mod code;
mod listing;
mod riscv;
mod targets;
mod x86;

use code::{Code, Function};
use listing::{Decode, Section};
use x86::X86;

/// Shows the instructions of an object, executable or library, relocated targets by name. For x86-64, i386,
/// AArch64, Arm (A32 and Thumb) and RISC-V.
#[derive(Debug, clap::Args)]
pub struct Disasm {
    /// An ELF file, or an archive of them.
    object: PathBuf,
    /// The function to show; without it, everything that can be executed.
    function: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

impl Disasm {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, is for another machine, or has no such function.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let input = Input::read_within(&self.object, self.limits)?;
        let parts = input.parts()?;
        let is_elf =
            |part: &&Part<'_>| !input.is_archive() || part.bytes.starts_with(&names::ELFMAG);
        let mut shown = 0;
        for part in parts.iter().filter(is_elf) {
            let size = part.bytes.len() as u64;
            let budget = Budget::new(self.limits.limit, 1 << 28, 1 << 10, size);
            let out = &mut Metered::new(&budget, out);
            shown +=
                disasm(part, self.function.as_deref(), out).with_context(|| part.label.clone())?;
        }
        match &self.function {
            Some(function) if shown == 0 => {
                let meant = meant(function, parts.iter().flat_map(|part| functions(part.bytes)));
                bail!(
                    "{}: no function {}{meant}",
                    input.label(),
                    Printable::from(function.as_str())
                )
            }
            _ => Ok(()),
        }
    }
}

/// The names of a file's functions; none if it is damaged.
pub(crate) fn functions(bytes: &[u8]) -> Vec<Name<'_>> {
    let Ok(file) = parse(bytes) else { return Vec::new() };
    let Ok(code) = Code::of(&file) else { return Vec::new() };
    let sections = (0u32..).zip(file.sections()).filter(|(_, section)| holds_code(section));
    let functions = sections.flat_map(|(index, section)| code.functions(index, &section));
    functions.map(|function| function.name).collect()
}

/// Whether a section has instructions in the file.
fn holds_code(section: &SectionHeader) -> bool {
    section.flags.contains(SectionFlags::EXECINSTR) && section.file_size() > 0
}

/// Prints one function, or all; says how many that were.
///
/// # Errors
/// If the file is damaged or for another machine.
pub fn disasm(part: &Part<'_>, function: Option<&str>, out: &mut dyn Write) -> Result<usize> {
    let file = parse(part.bytes)?;
    let (mut machine, kinds): (Box<dyn Decode>, _) = match file.header().machine {
        // x32 has the code of x86-64
        EM_X86_64 => (Box::new(X86::new(64)), Architecture::X86_64.kinds()),
        EM_386 => (Box::new(X86::new(32)), Architecture::I386.kinds()),
        EM_AARCH64 => (Box::<aarch64::Aarch64>::default(), Architecture::Aarch64.kinds()),
        EM_ARM => {
            // of a linked image code may be little-endian where data are not
            let is_big = file.encoding().is_big_endian() && file.header().flags & EF_ARM_BE8 == 0;
            (Box::new(arm::Arm::new(is_big)), Architecture::Arm.kinds())
        }
        EM_RISCV if file.encoding().is_64() => {
            (Box::new(riscv::Riscv::new(&file)), Architecture::Rv64.kinds())
        }
        EM_RISCV => (Box::new(riscv::Riscv::new(&file)), Architecture::Rv32.kinds()),
        machine => match names::machine(machine) {
            Some(name) => bail!("disassembles x86-64, i386, AArch64, Arm and RISC-V, not {name}"),
            None => {
                bail!("disassembles x86-64, i386, AArch64, Arm and RISC-V, not machine {machine}")
            }
        },
    };
    let code = Code::of(&file)?;
    let mut shown = 0;
    for (index, section) in (0u32..).zip(file.sections()) {
        if !holds_code(&section) {
            continue;
        }
        let functions = code.functions(index, &section);
        let wanted = |found: &&Function<'_>| function.is_none_or(|name| found.name == name);
        let mut functions = functions.iter().filter(wanted).peekable();
        if functions.peek().is_none() {
            continue;
        }
        if shown > 0 {
            writeln!(out)?;
        }
        let name = Printable::from(file.section_name(&section)?);
        writeln!(out, "{}: section {name}", Printable::from(part.label.as_str()))?;
        let listing = Section::of(&code, index, &section, kinds)?;
        for function in functions {
            listing.function(function, &mut *machine, out)?;
            shown += 1;
        }
    }
    Ok(shown)
}
