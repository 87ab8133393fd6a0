//! `size`: how much code a firmware author takes in with each layer, and whether it keeps to the budget.
//!
//! Measured on images that are linked as firmware is: one unit, whole-program optimisation, only what is reached. `.text` is
//! code, `.rodata` the tables that it reads, those of relocations above all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};

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

/// What is measured, by name; bytes of code on the first machine.
struct Program {
    name: &'static str,
    call: &'static str,
    /// What it may be: more is a failure. A change that makes it smaller lowers this too.
    ceiling: u64,
    /// What it is to become.
    goal: u64,
}

const KIB: u64 = 1024;

const LOAD: Program = Program { name: "", call: "", ceiling: 33 * KIB, goal: 16 * KIB };

#[rustfmt::skip]
const PROGRAMS: &[Program] = &[
    Program { name: "parse one class", call: "programs::parse_class", ceiling: 4 * KIB, goal: 4 * KIB },
    Program { name: "parse", call: "programs::parse", ceiling: 20 * KIB, goal: 4 * KIB },
    Program { name: "parse, lay out, relocate AArch64", call: "programs::load::<reloc_aarch64::Aarch64>", ..LOAD },
    Program { name: "parse, lay out, relocate x86-64",  call: "programs::load::<reloc_x86::X86_64>",      ..LOAD },
    Program { name: "parse, lay out, relocate i386",    call: "programs::load::<reloc_x86::I386>",        ..LOAD },
];

/// The crates that the programs use.
const CRATES: &[&str] = &["elf-core", "elf-layout", "reloc-x86", "reloc-aarch64"];

/// Where the table stands in BENCHMARKS.md.
const FROM: &str = "<!-- cargo xtask size --write: from here -->";
const TO: &str = "<!-- to here -->";

/// `.text` and `.rodata` in bytes.
type Bytes = (u64, u64);

impl Run for Size {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let mut over = Vec::new();
        let mut rows: BTreeMap<(usize, String), Vec<Bytes>> = BTreeMap::new();
        let by_hand: ByHand =
            crate::manifest::read(&workspace.root().join("xtask/no-panic/by-hand.toml"))?;
        let lower = no_panic::crates(workspace);
        let all = api::roots(workspace, &lower, &by_hand)?;
        for machine in MACHINES {
            let mut measured = Vec::new();
            for (number, program) in PROGRAMS.iter().enumerate() {
                let root = Root { path: program.name.to_owned(), call: program.call.to_owned() };
                let bytes = self.measure(workspace, machine, program.name, CRATES, &[root])?;
                let first = MACHINES.first().is_some_and(|first| first.target == machine.target);
                if first && bytes.0 > program.ceiling {
                    let Program { name, ceiling, .. } = program;
                    over.push(format!("{name} is {} bytes of code, not {ceiling}", bytes.0));
                }
                measured.push(((number, program.name.to_owned()), bytes));
            }
            for (number, name) in lower.iter().enumerate() {
                let prefix = name.replace('-', "_");
                let own = |root: &&Root| root.path.trim_start_matches('<').starts_with(&prefix);
                let roots: Vec<Root> = all.iter().filter(own).cloned().collect();
                if roots.is_empty() {
                    continue;
                }
                let title = format!("all of `{name}`");
                let bytes = self.measure(workspace, machine, &title, &lower, &roots)?;
                measured.push(((PROGRAMS.len() + number, title), bytes));
            }
            for (row, bytes) in measured {
                rows.entry(row).or_default().push(bytes);
            }
        }
        let table = table(&rows)?;
        println!("{table}");
        if self.write {
            write(workspace, &table)?;
        }
        if !over.is_empty() {
            bail!(
                "too large on {}: {}",
                MACHINES.first().map_or("", |first| first.target),
                over.join("; ")
            );
        }
        Ok(())
    }
}

impl Size {
    fn measure(
        &self,
        workspace: &Workspace,
        machine: &Machine,
        title: &str,
        crates: &[&str],
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
            sources: &[
                ("lib.rs", format!("{}mod programs;\n", no_panic::library(crates, roots))),
                ("harness.rs", read("no-panic/harness.rs")?),
                ("programs.rs", read("size/programs.rs")?),
            ],
            profile: &format!("opt-level = {}", machine.level),
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
        Ok((size(".text"), size(".rodata") + size(".data.rel.ro")))
    }
}

/// The rows in Markdown.
fn table(rows: &BTreeMap<(usize, String), Vec<Bytes>>) -> Result<String> {
    let mut text = String::from("| |");
    for machine in MACHINES {
        write!(text, " {} at {}: `.text` | `.rodata` |", machine.target, machine.level)?;
    }
    text += " at most | to become |\n|---|";
    text += &"---:|".repeat(2 * MACHINES.len() + 2);
    for ((_, name), bytes) in rows {
        write!(text, "\n| {name} |")?;
        for (code, data) in bytes {
            write!(text, " {code} | {data} |")?;
        }
        match PROGRAMS.iter().find(|program| program.name == name) {
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
