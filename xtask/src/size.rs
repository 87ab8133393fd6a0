//! `size`: how much code a firmware author takes in with each layer, and whether it keeps to the budget.
//!
//! Measured on images that are linked as firmware is: one unit, whole-program optimisation, only what is reached. `.text` is
//! code, `.rodata` the tables that it reads, those of relocations above all. What the compiler's library has in it (copies, fills,
//! arithmetic of 64 bits), which other parts of a program share and other builds of that library have smaller, is told apart.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};
use archs::Architecture;
use elf_core::names::{EM_386, EM_ARM, EM_LOONGARCH, EM_RISCV};

use crate::api::{self, ByHand, Root};
use crate::bare::{self, Toolchain, Wrapper};
use crate::image::Image;
use crate::no_panic;
use crate::task::Run;
use crate::workspace::Workspace;

/// Arguments of `size`.
#[derive(clap::Args)]
pub(crate) struct Size {
    /// Write the table to BENCHMARKS.md
    #[arg(long)]
    write: bool,
    /// Only what has a ceiling, on the machine for which it has one
    #[arg(long, conflicts_with = "write")]
    budget: bool,
    /// Only the program of this name
    #[arg(long, conflicts_with = "write")]
    only: Option<String>,
    /// Show the largest functions of every image
    #[arg(long)]
    largest: bool,
}

/// A machine and how code for it is made.
struct Machine {
    target: &'static str,
    level: &'static str,
}

const MACHINES: &[Machine] = &[
    Machine { target: "thumbv7em-none-eabihf", level: "\"z\"" },
    Machine { target: "aarch64-unknown-none", level: "3" },
];

/// Small machines and the architecture whose code their firmware loads: their own. At most so many bytes, the compiler's library too.
const OWN: &[(Machine, Architecture, u64)] = &[
    (Machine { target: "thumbv6m-none-eabi", level: "\"z\"" }, Architecture::Arm, 22 * KIB),
    (
        Machine { target: "riscv32imac-unknown-none-elf", level: "\"z\"" },
        Architecture::Rv32,
        23 * KIB,
    ),
];

/// What is measured, by name; bytes of code on the first machine.
#[derive(Clone)]
struct Program {
    name: Cow<'static, str>,
    call: Cow<'static, str>,
    /// Features of `elf-core` that are on.
    features: Option<&'static [&'static str]>,
    /// What it may be: more is a failure. A change that makes it smaller lowers this too.
    ceiling: u64,
    /// What it is to become.
    goal: u64,
}

const KIB: u64 = 1024;

/// The default features.
const ALL: Option<&[&str]> = None;
/// None: objects of 64 bits, little-endian.
const LEAST: Option<&[&str]> = Some(&[]);
/// The same of 32 bits.
const LEAST_32: Option<&[&str]> = Some(&["elf32"]);

/// What is measured: reading, and loading for each architecture of hosts.
fn programs() -> Vec<Program> {
    let program = |name: &str, call: &str, features, ceiling, goal| Program {
        name: name.to_owned().into(),
        call: call.to_owned().into(),
        features,
        ceiling: ceiling * KIB,
        goal: goal * KIB,
    };
    let mut programs = vec![
        program("parse, `ClassFile`", "programs::parse_class", LEAST, 4, 4),
        program("parse", "programs::parse", LEAST, 4, 4),
        program("parse, all forms", "programs::parse", ALL, 11, 8),
        program(
            "boot: parse, copy, RELATIVE and RELR",
            "programs::boot::<reloc_x86::I386>",
            LEAST_32,
            4,
            4,
        ),
        program("boot, all relocations", "programs::boot_all::<reloc_x86::I386>", LEAST_32, 13, 8),
    ];
    for all in [false, true] {
        for architecture in Architecture::ALL.iter().filter(|architecture| !architecture.is_gpu()) {
            let (name, call) = load(*architecture);
            let (ceiling, all_ceiling) = match architecture.machine() {
                // relocations that belong together are searched for; code becomes shorter; attributes
                EM_RISCV | EM_LOONGARCH => (20, 55),
                // two states of code, of processors that the attributes say, and two orders of its bytes
                EM_ARM => (20, 49),
                EM_386 => (14, 41),
                _ => (15, 45),
            };
            programs.push(match all {
                false => program(&name, &call, least(*architecture), ceiling, 16),
                true => program(&format!("{name}, all"), &call, ALL, all_ceiling, 32),
            });
        }
    }
    programs
}

/// The program that loads code of an architecture: its name and its call.
fn load(architecture: Architecture) -> (String, String) {
    let call = format!("programs::load::<{}>", architecture.path());
    (format!("parse, lay out, relocate {architecture}"), call)
}

/// The features that it needs.
fn least(architecture: Architecture) -> Option<&'static [&'static str]> {
    if architecture.address_size() == 4 { LEAST_32 } else { LEAST }
}

/// Where the table stands in BENCHMARKS.md.
const FROM: &str = "<!-- cargo xtask size --write: from here -->";
const TO: &str = "<!-- to here -->";

/// What an image holds, in bytes.
#[derive(Clone, Copy)]
struct Bytes {
    /// Code of the crates.
    code: u64,
    /// Code of the compiler's library.
    library: u64,
    /// Constant data.
    data: u64,
}

/// Whether the programs use a crate.
fn is_used(name: &str) -> bool {
    name.starts_with("elf-") || (name.starts_with("reloc-") && name != "reloc-cuda")
}

impl Run for Size {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let programs = programs();
        let crates = no_panic::crates(workspace)?;
        let crates: Vec<&str> =
            crates.iter().map(String::as_str).filter(|name| is_used(name)).collect();
        let mut over = Vec::new();
        let mut rows: BTreeMap<(usize, String), Vec<Bytes>> = BTreeMap::new();
        let limited = self.budget || self.only.is_some();
        let wanted = |name: &str| self.only.as_ref().is_none_or(|only| name == only);
        let machines = if self.budget { 1 } else { usize::MAX };
        for (nth, machine) in MACHINES.iter().enumerate().take(machines) {
            for (number, program) in programs.iter().enumerate() {
                let Program { name, call, features, ceiling, .. } = program;
                if !wanted(name) {
                    continue;
                }
                let root = Root { path: name.to_string(), call: call.to_string() };
                let bytes =
                    self.measure(workspace, machine, name, (&crates, *features), &[root])?;
                if nth == 0 && bytes.code > *ceiling {
                    over.push(format!(
                        "{name} on {}: {} bytes of code, not {ceiling}",
                        machine.target, bytes.code
                    ));
                }
                rows.entry((number, name.to_string())).or_default().push(bytes);
            }
        }
        if !limited {
            self.measure_crates(workspace, &mut rows)?;
        }
        let mut table = table(&rows)?;
        table += &self.measure_own(workspace, &crates, &mut over)?;
        println!("{table}");
        if self.write {
            write(workspace, &table)?;
        }
        if !over.is_empty() {
            bail!("too large: {}", over.join("; "));
        }
        Ok(())
    }
}

impl Size {
    /// Firmware that loads code of its own machine: a table of all that is in it.
    fn measure_own(
        &self,
        workspace: &Workspace,
        crates: &[&str],
        over: &mut Vec<String>,
    ) -> Result<String> {
        let mut text = String::new();
        for (machine, architecture, ceiling) in OWN {
            let (name, call) = load(*architecture);
            if self.only.as_ref().is_some_and(|only| name != *only) {
                continue;
            }
            let title = format!("{name} on {}", machine.target);
            let roots = [Root { path: name, call }];
            let features = least(*architecture);
            let bytes = self.measure(workspace, machine, &title, (crates, features), &roots)?;
            let all = bytes.code + bytes.library;
            if all > *ceiling {
                over.push(format!(
                    "{title}: {all} bytes with the compiler's library, not {ceiling}"
                ));
            }
            if text.is_empty() {
                text += "\n\n| on itself | `.text`, the library too | `.rodata` | at most | to become |\n|---|---:|---:|---:|---:|";
            }
            write!(text, "\n| {title} | {all} | {} | {ceiling} | {} |", bytes.data, 16 * KIB)?;
        }
        Ok(text)
    }

    /// Every public function of each crate, on all machines.
    fn measure_crates(
        &self,
        workspace: &Workspace,
        rows: &mut BTreeMap<(usize, String), Vec<Bytes>>,
    ) -> Result<()> {
        let by_hand: ByHand =
            crate::manifest::read(&workspace.root().join("xtask/no-panic/by-hand.toml"))?;
        let lower = no_panic::crates(workspace)?;
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let all = api::roots(workspace, &lower, &by_hand)?;
        for machine in MACHINES {
            for (number, name) in lower.iter().enumerate() {
                let prefix = name.replace('-', "_");
                let own = |root: &&Root| root.path.trim_start_matches('<').starts_with(&prefix);
                let roots: Vec<Root> = all.iter().filter(own).cloned().collect();
                if roots.is_empty() {
                    continue;
                }
                let title = format!("all of `{name}`");
                let bytes = self.measure(workspace, machine, &title, (&lower, ALL), &roots)?;
                rows.entry((programs().len() + number, title)).or_default().push(bytes);
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        workspace: &Workspace,
        machine: &Machine,
        title: &str,
        (crates, features): (&[&str], Option<&[&str]>),
        roots: &[Root],
    ) -> Result<Bytes> {
        let toolchain = Toolchain::of(machine.target)?;
        let read = |file: &str| {
            let path = workspace.root().join("xtask").join(file);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let wrapper = Wrapper {
            name: "size",
            crates,
            features,
            sources: &[
                ("lib.rs", format!("{}mod programs;\n", no_panic::library(crates, roots))),
                ("harness.rs", read("no-panic/harness.rs")?),
                ("programs.rs", read("size/programs.rs")?),
            ],
            profile: &format!("opt-level = {}\ndebug = \"line-tables-only\"", machine.level),
            flags: "",
        };
        let library = wrapper.build(workspace, &toolchain, machine.target)?;
        let folder = workspace.scratch("size-image")?;
        let path = folder.join("image");
        let symbols: Vec<String> = (0..roots.len()).map(no_panic::symbol).collect();
        bare::link(
            &library,
            &symbols,
            &BTreeMap::from([(no_panic::GIVEN, 0), (no_panic::PANIC, 0)]),
            &path,
        )?;
        let image = Image::read(&path)?;
        if self.largest {
            println!("{title} on {}:", machine.target);
            for (size, name) in image.largest().into_iter().take(20) {
                println!("{size:>8}  {name}");
            }
        }
        let size = |name: &str| image.sections.get(name).copied().unwrap_or(0);
        let library = image.library();
        Ok(Bytes {
            code: size(".text").saturating_sub(library),
            library,
            data: size(".rodata") + size(".data.rel.ro"),
        })
    }
}

/// The rows in Markdown.
fn table(rows: &BTreeMap<(usize, String), Vec<Bytes>>) -> Result<String> {
    let mut text = String::from("| |");
    for machine in MACHINES {
        let Machine { target, level } = machine;
        write!(text, " {target} at {level}: `.text` | compiler's library | `.rodata` |")?;
    }
    text += " at most | to become |\n|---|";
    text += &"---:|".repeat(3 * MACHINES.len() + 2);
    for ((_, name), bytes) in rows {
        write!(text, "\n| {name} |")?;
        for Bytes { code, library, data } in bytes {
            write!(text, " {code} | {library} | {data} |")?;
        }
        match programs().iter().find(|program| program.name == *name) {
            Some(program) => write!(text, " {} | {} |", program.ceiling, program.goal)?,
            None => text += " | |",
        }
    }
    Ok(text)
}

/// Replaces the table in BENCHMARKS.md.
fn write(workspace: &Workspace, table: &str) -> Result<()> {
    let path = workspace.root().join("BENCHMARKS.md");
    let text = fs::read_to_string(&path).context("cannot read BENCHMARKS.md")?;
    let place =
        text.split_once(FROM).and_then(|(before, rest)| Some((before, rest.split_once(TO)?.1)));
    let (before, after) =
        place.with_context(|| format!("BENCHMARKS.md lacks the lines {FROM} and {TO}"))?;
    fs::write(&path, format!("{before}{FROM}\n\n{table}\n\n{TO}{after}"))?;
    Ok(())
}
