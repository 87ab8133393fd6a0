//! `hoist cubin ...`: what CUDA cubins hold, changes in place, and device linking.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use nvinfo::{Cubin as Parsed, Function};
use serde::Serialize;

use crate::input::{Input, Part};
use crate::printable::Printable;

mod attributes;
mod changes;
mod disasm;
mod kernel;
mod link;
mod module;
mod params;
mod patch;
mod payload;
mod relocs;
mod show;
mod text;

pub use attributes::{AttributeRow, AttributeSection, attributes};
pub use changes::{Change, Changes};
pub use disasm::disassembler;
pub use kernel::{Bank, Kernel, Occupancy, Subroutine};
pub use link::{Linked, link_files};
pub use module::{Module, Tool, Variable};
pub use params::{ParameterRow, parameters};
pub use patch::{Patched, Suspect, patch};
pub use payload::PayloadValue;
pub use relocs::{CudaRelocation, CudaRelocations, relocations};
pub use show::{Shown, report};

/// Shows, changes and links CUDA cubins.
#[derive(Debug, clap::Args)]
pub struct Cubin {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Shows kernels and what they need, then the module.
    Show(show::Show),
    /// Shows every attribute of `.nv.info` and `.nv.compat`.
    Attributes(attributes::Attributes),
    /// Shows relocations: who resolves them, and which bits they fill.
    Relocs(relocs::Relocs),
    /// Shows the parameters of a kernel.
    Params(params::Params),
    /// Changes numbers and code in place, and says what no longer fits the code.
    Patch(patch::Patch),
    /// Shows machine code through nvdisasm.
    Disasm(disasm::Disasm),
    /// Links relocatable cubins into one that can be loaded.
    Link(link::Link),
}

impl Cubin {
    /// Does what the subcommand says and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        match &self.command {
            Command::Show(command) => command.run(out),
            Command::Attributes(command) => command.run(out),
            Command::Relocs(command) => command.run(out),
            Command::Params(command) => command.run(out),
            Command::Patch(command) => command.run(out),
            Command::Disasm(command) => command.run(out),
            Command::Link(command) => command.run(out),
        }
    }
}

/// A report of one cubin, with the file that it is of.
#[derive(Debug, Serialize)]
struct Report<'r, T> {
    file: &'r str,
    member: &'r Option<String>,
    #[serde(flatten)]
    report: T,
}

/// Calls `show` with every cubin of a file: the file itself, or the cubins of an archive.
fn each_cubin(
    path: &Path,
    mut show: impl FnMut(&Part<'_>, &Parsed<'_>) -> Result<()>,
) -> Result<()> {
    let input = Input::read(path)?;
    for part in input.parts()? {
        match (Parsed::parse(part.bytes), &part.member) {
            (Ok(cubin), _) => show(&part, &cubin).with_context(|| part.label.clone())?,
            // archives hold other files as well
            (Err(_), Some(_)) => {}
            (Err(error), None) => return Err(error).with_context(|| part.label.clone()),
        }
    }
    Ok(())
}

/// Prints `{"files": [...]}` with what `make` gives for every cubin, or calls `text` for it.
fn each_report<T: Serialize>(
    (path, json): (&PathBuf, bool),
    out: &mut dyn Write,
    make: impl Fn(&Parsed<'_>) -> Result<T>,
    text: impl Fn(&T, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let file = path.display().to_string();
    let mut first = true;
    if json {
        write!(out, "{{\"files\":[")?;
    }
    each_cubin(path, |part, cubin| {
        let report = make(cubin)?;
        let first = core::mem::take(&mut first);
        if json {
            out.write_all(if first { b"" } else { b"," })?;
            serde_json::to_writer(
                &mut *out,
                &Report { file: &file, member: &part.member, report },
            )?;
            return Ok(());
        }
        if part.member.is_some() {
            let blank = if first { "" } else { "\n" };
            writeln!(out, "{blank}{}:", Printable::from(part.label.as_str()))?;
        }
        text(&report, out)
    })?;
    if json {
        writeln!(out, "]}}")?;
    }
    Ok(())
}

/// The function of this name.
fn function<'a>(cubin: &Parsed<'a>, name: &str) -> Result<Function<'a>> {
    let mut functions = cubin.functions();
    match functions.find(|function| function.name() == name) {
        Some(function) => Ok(function),
        None => bail!("no function {}", Printable::from(name)),
    }
}

/// The name of symbol `index`: of its section if it has none, its number if that has none either.
fn symbol_name(cubin: &Parsed<'_>, index: u32) -> String {
    let name = cubin.symbols().and_then(|table| {
        let symbol = table.get(index).ok()?;
        crate::explain::name_in(cubin.file(), table, index, &symbol).ok()
    });
    match name {
        Some(name) if !name.is_empty() => Printable::from(name).to_string(),
        _ => format!("symbol {index}"),
    }
}
