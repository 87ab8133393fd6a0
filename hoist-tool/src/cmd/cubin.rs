//! `hoist cubin ...`: what CUDA cubins hold, changes in place, and device linking.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use fatbin::{Kind, Sm};
use images::Image;
use nvinfo::{Cubin as Parsed, Function};
use serde::Serialize;

use crate::arguments::number;
use crate::budget::{Budget, Limits};
use crate::cmd::fatbin::{FLOOR, TIMES};
use crate::input::{Input, Part};
use crate::printable::Printable;

mod attributes;
mod changes;
mod disasm;
mod images;
mod kernel;
mod link;
mod module;
mod objects;
mod params;
mod patch;
mod payload;
mod relocs;
mod show;
mod text;
mod toolkit;

pub use attributes::{AttributeRow, AttributeSection, attributes};
pub use changes::{Change, Changes, ValueChange};
pub use images::ImagePlace;
pub use kernel::{Bank, Kernel, Occupancy, Subroutine};
pub use link::{Linked, link_files};
pub use module::{Module, Tool, Variable};
pub use params::{ParameterRow, parameters};
pub use patch::{Patched, Suspect, patch};
pub use payload::{
    BranchValue, LoadValue, MbarrierValue, PayloadValue, RegisterValue, ResumeValue,
};
pub use relocs::{CudaRelocation, CudaRelocations, relocations};
pub use show::{Shown, report};

/// Shows, changes and links CUDA cubins.
#[derive(Debug, clap::Args)]
pub struct Cubin {
    #[command(subcommand)]
    command: Command,
    /// Of the cubins in fatbins and host files, those for this architecture; for `link`, the one to link for.
    #[arg(long, value_name = "ARCH", global = true, value_parser = images::arch)]
    arch: Option<Sm>,
    /// The most bytes that the images of a file may unpack to, together: otherwise 256 MiB and 64 times the size of the file.
    #[arg(long, value_name = "BYTES", global = true, value_parser = number)]
    limit: Option<u64>,
}

/// Which cubins of a file, and how much they may take.
#[derive(Clone, Copy, Debug)]
struct Pick {
    arch: Option<Sm>,
    limit: Option<u64>,
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
        let pick = Pick { arch: self.arch, limit: self.limit };
        match &self.command {
            Command::Show(command) => command.run(pick, out),
            Command::Attributes(command) => command.run(pick, out),
            Command::Relocs(command) => command.run(pick, out),
            Command::Params(command) => command.run(pick, out),
            Command::Patch(command) => command.run(out),
            Command::Disasm(command) => command.run(out),
            Command::Link(command) => command.run(pick, out),
        }
    }
}

/// A report of one cubin, with the file that it is of.
#[derive(Debug, Serialize)]
struct Report<'r, T> {
    file: &'r str,
    member: &'r Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImagePlace>,
    #[serde(flatten)]
    report: T,
}

/// Calls `show` with every cubin of a file: the file itself, the cubins of an archive, or those of this architecture in fatbins,
/// with their places.
fn each_cubin(
    (path, Pick { arch, limit }): (&Path, Pick),
    mut show: impl FnMut(&Part<'_>, Option<ImagePlace>, &Parsed<'_>) -> Result<()>,
) -> Result<()> {
    let limits = Limits { limit, ..Limits::default() };
    let input = Input::read_within(path, limits)?;
    let mut shown = false;
    for part in input.parts()? {
        let budget = Budget::new(limit, FLOOR, TIMES, part.bytes.len() as u64);
        let parsed = Parsed::parse(part.bytes);
        if let Ok(cubin) = &parsed {
            shown = true;
            show(&part, None, cubin).with_context(|| part.label.clone())?;
            continue;
        }
        let images = images::images(part.bytes).with_context(|| part.label.clone())?;
        match (parsed, &part.member) {
            (Err(error), None) if images.is_empty() => {
                return Err(error).with_context(|| part.label.clone());
            }
            _ => {}
        }
        let wanted = |image: &Image<'_>| arch.is_none_or(|arch| arch == image.sm);
        for image in images.into_iter().filter(|image| image.kind == Kind::Elf && wanted(image)) {
            let label = || format!("{}: {}", part.label, image.place);
            let bytes = image.bytes(&budget).with_context(label)?;
            let cubin = Parsed::parse(&bytes).with_context(label)?;
            shown = true;
            show(&part, Some(image.place.clone()), &cubin).with_context(label)?;
        }
    }
    match arch {
        Some(arch) if !shown => bail!("{}: no cubin for sm_{arch}", path.display()),
        _ => Ok(()),
    }
}

/// Prints `{"files": [...]}` with what `make` gives for every cubin, or calls `text` for it.
fn each_report<T: Serialize>(
    (path, pick, json): (&PathBuf, Pick, bool),
    out: &mut dyn Write,
    make: impl Fn(&Parsed<'_>) -> Result<T>,
    text: impl Fn(&T, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let file = path.display().to_string();
    let mut first = true;
    if json {
        write!(out, "{{\"files\":[")?;
    }
    each_cubin((path, pick), |part, image, cubin| {
        let report = make(cubin)?;
        let first = core::mem::take(&mut first);
        if json {
            out.write_all(if first { b"" } else { b"," })?;
            let report = Report { file: &file, member: &part.member, image, report };
            crate::json::write(out, &report)?;
            return Ok(());
        }
        if part.member.is_some() || image.is_some() {
            let blank = if first { "" } else { "\n" };
            let place = image.map_or_else(String::new, |place| format!(" {place}"));
            writeln!(out, "{blank}{}{place}:", Printable::from(part.label.as_str()))?;
        }
        text(&report, out)
    })?;
    if json {
        writeln!(out, "]}}")?;
    }
    Ok(())
}

/// Reads a cubin for a command that takes no other file: what is no cubin, but has some inside, is told how to get at them.
fn parse_alone<'a>(bytes: &'a [u8], label: &str) -> Result<Parsed<'a>> {
    Parsed::parse(bytes).map_err(|error| {
        let inside = images::images(bytes).unwrap_or_default();
        let count = inside.iter().filter(|image| image.kind == Kind::Elf).count();
        match count {
            0 => anyhow::Error::new(error).context(label.to_owned()),
            _ => anyhow!("{label}: has {count} cubins inside: `hoist fatbin extract` writes them"),
        }
    })
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
