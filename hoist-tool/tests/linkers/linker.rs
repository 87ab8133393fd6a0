//! GNU ld and lld.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use archs::{Architecture, with_arch};
use elf_core::{Arch, File};
use hoist_tool::objects::Objects;

use crate::renamed;

/// A linker of this machine.
pub(crate) struct Linker {
    program: PathBuf,
    /// What it says it is.
    pub(crate) version: String,
    /// Whether it is asked for little-endian code beside big-endian data.
    pub(crate) be8: bool,
}

impl Linker {
    /// The first of these programs that is there.
    pub(crate) fn find(programs: &[&str]) -> Option<Self> {
        programs.iter().find_map(|program| {
            let output = Command::new(program).arg("--version").output().ok()?;
            let version = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
            Some(Self { program: PathBuf::from(program), version, be8: false })
        })
    }

    /// It, to be given arguments.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.program)
    }

    pub(crate) fn is_lld(&self) -> bool {
        self.version.contains("LLD")
    }

    /// Links `objects`, and one more that defines what a script cannot, as `script` says. What the linker said if it refuses.
    pub(crate) fn link(
        &self,
        objects: &Objects<'_>,
        more: Option<PathBuf>,
        script: &str,
        relax: bool,
        folder: &Path,
    ) -> Result<Vec<u8>, String> {
        let (script_path, output_path) = (folder.join("script"), folder.join("linked"));
        fs::write(&script_path, script).expect("a script");
        let big = objects.files()[0].encoding().is_big_endian();
        let emulation = match objects.machine() {
            Architecture::X86_64 => "elf_x86_64",
            Architecture::I386 => "elf_i386",
            Architecture::Aarch64 if big => "aarch64linuxb",
            Architecture::Aarch64 => "aarch64linux",
            Architecture::Arm if big => "armelfb_linux_eabi",
            Architecture::Arm => "armelf_linux_eabi",
            Architecture::Rv32 => "elf32lriscv",
            Architecture::Rv64 => "elf64lriscv",
            Architecture::LoongArch64 => "elf64loongarch",
            other => panic!("no linker for {other} here"),
        };
        let mut command = self.command();
        command.args([
            "-m",
            emulation,
            "-static",
            "-nostdlib",
            "-e",
            "0",
            if relax { "--relax" } else { "--no-relax" },
            "--no-check-sections",
        ]);
        if relax
            && self.is_lld()
            && matches!(objects.machine(), Architecture::Rv32 | Architecture::Rv64)
        {
            command.arg("--relax-gp");
        }
        if with_arch!(objects.machine(), A => has_direct_type_info::<A>(&objects.files()[0])) {
            command.arg("--target2=rel");
        }
        if self.be8 {
            command.arg("--be8");
        }
        // a linker that is not asked for an unwinding table must not rewrite it
        command.args([
            "--no-eh-frame-hdr",
            "--build-id=none",
            "-z",
            "norelro",
            "-z",
            "max-page-size=4096",
            "-T",
        ]);
        command.arg(&script_path).arg("-o").arg(&output_path);
        for (number, file) in objects.files().iter().enumerate() {
            let path = folder.join(object(number));
            fs::write(&path, renamed::renamed(number, file, relax)).expect("an object");
            command.arg(path);
        }
        command.args(more);
        let _ = fs::remove_file(&output_path);
        let output = command.env("LC_ALL", "C").output().expect("a linker");
        let text = String::from_utf8_lossy(&output.stderr);
        match fs::read(&output_path) {
            // GNU ld leaves out what it does not know, and says so
            Ok(bytes) if output.status.success() && !text.contains("unsupported relocation") => {
                Ok(bytes)
            }
            _ => Err(text
                .lines()
                .find(|line| line.contains("error") || line.contains(": "))
                .unwrap_or("")
                .to_owned()),
        }
    }
}

fn object(number: usize) -> String {
    format!("object-{number}.o")
}

/// A script that places sections and symbols at addresses.
pub(crate) struct Script(String);

impl Script {
    pub(crate) fn new() -> Self {
        Self(String::from("SECTIONS {\n"))
    }

    pub(crate) fn section(&mut self, number: usize, index: u32, address: u64, is_tls: bool) {
        let name = renamed::name(number, index);
        let input = object(number);
        // the alignment of thread-local variables decides where threads have them
        let alignment = if is_tls { "" } else { "SUBALIGN(1) " };
        let _ = writeln!(self.0, "  {name} {address:#x} : {alignment}{{ KEEP(*{input}({name})) }}");
    }

    /// The linker's own table that `_GLOBAL_OFFSET_TABLE_` begins.
    pub(crate) fn got(&mut self, address: u64, machine: Architecture) {
        let (name, _) = tables(machine);
        let _ = writeln!(self.0, "  {name} {address:#x} : {{ *({name}) }}");
    }

    /// The linker's other table.
    pub(crate) fn other_got(&mut self, address: u64, machine: Architecture) {
        let (_, name) = tables(machine);
        let _ = writeln!(self.0, "  {name} {address:#x} : {{ *({name}) }}");
    }

    pub(crate) fn define(&mut self, name: &str, address: u64) {
        let _ = writeln!(self.0, "  \"{name}\" = {address:#x};");
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push_str("  /DISCARD/ : { *(.h*) }\n}\n");
        self.0
    }
}

const fn tables(machine: Architecture) -> (&'static str, &'static str) {
    match machine {
        Architecture::Aarch64 | Architecture::Arm => (".got", ".got.plt"),
        _ => (".got.plt", ".got"),
    }
}

/// The address of a section of what a linker made.
pub(crate) fn address_of(file: &File<'_>, name: &str) -> Option<u64> {
    let mut sections = file.sections().iter();
    let named = |section: &_| file.section_name(section).is_ok_and(|found| found == name);
    sections.find(named).map(|section| section.address)
}

/// The content of a section of what a linker made.
pub(crate) fn content<'a>(file: &File<'a>, name: &str) -> Option<(u64, &'a [u8])> {
    let section = file
        .sections()
        .iter()
        .find(|section| file.section_name(section).is_ok_and(|found| found == name))?;
    Some((section.address, file.section_data(&section).ok()?))
}

/// Whether unwinding tables of the object's processors hold addresses of type information.
fn has_direct_type_info<A: Arch>(file: &File<'_>) -> bool {
    A::build_attributes(file)
        .is_ok_and(|attributes| attributes.processor & A::DIRECT_TYPE_INFO != 0)
}
