//! `hoist cubin link A.cubin B.o C.a -o OUTPUT`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use fatbin::Sm;
use reloc_cuda::link::{LinkOptions, LinkedFunction, LinkedMercury, link_relocatable, link_with};
use serde::Serialize;

use super::objects::{self, Objects};
use crate::budget::{Budget, FLOOR, Limits, TIMES};
use crate::demangle::demangled;
use crate::explain::Lines;
use crate::form::Form;
use crate::input::{Input, Part, read_all};
use crate::number::number;
use crate::output;
use crate::paint;
use crate::printable::Printable;
use crate::sources::{Order, Source, Sources};

/// Links relocatable device code into a cubin that can be loaded, as nvlink does.
#[derive(Debug, clap::Args)]
pub(super) struct Link {
    /// Relocatable cubins, fatbins, host objects and libraries with relocatable device code, archives of these, and PTX, which
    /// ptxas compiles if it is installed, in the order of linking. Of folders, zip and tar archives all that is inside; `-` is
    /// standard input.
    #[arg(required_unless_present_any = ["gen_host_linker_script", "library"], value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE", required_unless_present = "gen_host_linker_script")]
    output: Option<PathBuf>,
    /// Libraries to link behind the files: `NAME` of `libNAME.a`, from the folders of `-L`.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    library: Vec<String>,
    /// Folders with libraries.
    #[arg(short = 'L', long, value_name = "FOLDER", value_delimiter = ',')]
    library_path: Vec<PathBuf>,
    /// Makes an object that can be linked again, of all of them: nothing is resolved, and nothing dropped.
    #[arg(short, long, conflicts_with_all = ["kernels_used", "dump_callgraph"])]
    relocatable_link: bool,
    /// Kernels that are used, by a part of their mangled name: others are dropped, with what they alone reach.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    kernels_used: Vec<String>,
    /// Prints which function may call which, in nvlink's form.
    #[arg(long)]
    dump_callgraph: bool,
    /// Prints, and links nothing, a script for ld that keeps device code of many objects together.
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["files", "library"])]
    gen_host_linker_script: Option<HostScript>,
    /// The most bytes that images may unpack to, together: otherwise 256 MiB and 64 times the size of the files.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

/// A script for the host's linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum HostScript {
    /// To be added to the linker's own script.
    #[value(name = "lcs-aug")]
    Augment,
}

/// What nvlink prints for `lcs-aug`, with blanks for tabs.
const AUGMENT: &str = "SECTIONS
{
    .nvFatBinSegment : { *(.nvFatBinSegment) }
    __nv_relfatbin : { *(__nv_relfatbin) } 
    .nv_fatbin : { *(.nv_fatbin) }
}
";

/// What was linked.
#[derive(Debug, Serialize)]
pub struct Linked {
    /// The linked cubin.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Size of the linked cubin.
    pub size: usize,
    /// The objects, in order.
    pub objects: Vec<String>,
    /// What was given and has no relocatable code for the architecture.
    pub left_out: Vec<String>,
    /// Kernels whose stack has no bound that can be told.
    pub unbounded_stacks: Vec<String>,
    /// Whether the linked cubin has the Mercury form of its code (`.nv.merc.*`, `.nv.capmerc.*`).
    pub mercury: bool,
    /// Why it has none though its architecture knows it.
    pub mercury_left_out: Option<String>,
    /// The functions that stayed, numbered from 1.
    pub functions: Vec<CallRow>,
}

/// A function of a linked cubin.
#[derive(Debug, Serialize)]
pub struct CallRow {
    /// Its name, mangled.
    pub name: String,
    /// Its name as it was in the source, if it is mangled.
    pub demangled: Option<String>,
    /// Whether it is a kernel.
    pub kernel: bool,
    /// Whether its address is taken.
    pub address_taken: bool,
    /// Registers that it needs itself, 0 if no object says.
    pub own_registers: u32,
    /// Numbers of the functions that it may call.
    pub calls: Vec<usize>,
}

/// What is made of the objects.
#[derive(Clone, Copy, Debug)]
pub enum LinkTo<'k> {
    /// A cubin that can be loaded, with the kernels that have one of these texts in their name; all if there is none.
    Cubin(&'k [String]),
    /// An object that can be linked again.
    Object,
}

/// Links the device code in the files for an architecture, or that of the first cubin; of archives all of it, asked for or not. Images unpack to
/// at most `limit` bytes; without one, 256 MiB and 64 times the size of the files.
///
/// # Errors
/// What is wrong with which object, one a line.
pub fn link_files(
    inputs: &[Input],
    arch: Option<Sm>,
    limit: Option<u64>,
    to: LinkTo<'_>,
) -> Result<Linked> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for input in inputs {
        parts.extend(input.parts()?);
    }
    let size = parts.iter().map(|part| part.bytes.len() as u64).sum();
    let budget = Budget::new(limit, FLOOR, TIMES, size);
    let Objects { objects, left_out, sm } = objects::objects(&parts, arch, &budget)?;
    if objects.is_empty() {
        bail!("no relocatable code for the architecture in {}", left_out.join(", "));
    }
    let bytes: Vec<_> = objects.iter().map(|object| &*object.bytes).collect();
    let label =
        |index: usize| objects.get(index).map_or("", |object| object.label.as_str()).to_owned();
    let linked = match to {
        LinkTo::Cubin(kernels) => {
            let kernels: Vec<_> = kernels.iter().map(String::as_str).collect();
            link_with(&bytes, LinkOptions { sm, kernels: &kernels })
        }
        LinkTo::Object => link_relocatable(&bytes, sm),
    };
    let linked = linked.map_err(|errors| {
        let lines: Vec<_> =
            errors.0.iter().map(|error| error.with_names(&label).to_string()).collect();
        anyhow::Error::new(Lines(lines))
    })?;
    Ok(Linked {
        size: linked.bytes.len(),
        bytes: linked.bytes,
        objects: objects.iter().map(|object| object.label.clone()).collect(),
        left_out,
        unbounded_stacks: linked.unbounded,
        mercury: linked.mercury == LinkedMercury::Merged,
        mercury_left_out: match linked.mercury {
            LinkedMercury::LeftOut { object, why } => Some(format!("{}: {why}", label(object))),
            _ => None,
        },
        functions: linked.functions.into_iter().map(CallRow::of).collect(),
    })
}

impl CallRow {
    fn of(one: LinkedFunction) -> Self {
        Self {
            demangled: demangled(&one.name),
            name: one.name,
            kernel: one.is_kernel,
            address_taken: one.is_address_taken,
            own_registers: one.registers,
            calls: one.callees.iter().map(|callee| callee + 1).collect(),
        }
    }

    fn readable(&self) -> Printable<'_> {
        Printable::from(self.demangled.as_deref().unwrap_or(&self.name))
    }
}

/// The functions as nvlink prints them; of kernels that need more registers for what they call, because of whom.
fn call_graph(functions: &[CallRow], arch: &str, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "callgraph for {arch}:")?;
    writeln!(out, "# A: s -> B // s (number A) potentially calls B")?;
    writeln!(out, "# s [N]     // s uses N registers")?;
    writeln!(out, "# ^s        // s is entry point")?;
    writeln!(out, "# &s        // s has address taken")?;
    for (number, one) in (1..).zip(functions) {
        let mark = match (one.kernel, one.address_taken) {
            (true, _) => "^",
            (_, true) => "&",
            _ => "",
        };
        let calls: Vec<_> = one.calls.iter().map(usize::to_string).collect();
        let (name, registers) = (one.readable(), one.own_registers);
        writeln!(out, "{number}: {mark}{name} [{registers}] -> {}", calls.join(" "))?;
    }
    for one in functions.iter().filter(|one| one.kernel) {
        let (mut seen, mut open) = (std::collections::BTreeSet::new(), one.calls.clone());
        while let Some(number) = open.pop() {
            if seen.insert(number) {
                let callee = number.checked_sub(1).and_then(|at| functions.get(at));
                open.extend(callee.iter().flat_map(|callee| &callee.calls));
            }
        }
        let reached = seen.iter().filter_map(|number| functions.get(number.checked_sub(1)?));
        let most = reached.max_by_key(|callee| callee.own_registers);
        if let Some(most) = most.filter(|most| most.own_registers > one.own_registers) {
            let (count, of, to) = (most.own_registers, most.readable(), one.readable());
            writeln!(out, "regcount {count} for {of} propagated to entry {to}")?;
        }
    }
    Ok(())
}

/// The file of a library, in the first of the folders that has it.
fn library(name: &str, folders: &[PathBuf]) -> Result<PathBuf> {
    let file = format!("lib{name}.a");
    let found = folders.iter().map(|folder| folder.join(&file)).find(|path| path.is_file());
    found.with_context(|| {
        let places: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        match places.as_slice() {
            [] => format!("no folder to look for {file} in: -L names one"),
            _ => format!("no {file} in {}", places.join(", ")),
        }
    })
}

/// The files, and in the place of archives and folders what they have inside.
fn inputs(files: &[PathBuf], limits: Limits) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for same in files.chunk_by(|one, other| has_inside(one) == has_inside(other)) {
        if !same.first().is_some_and(|file| has_inside(file)) {
            inputs.extend(read_all(same, limits)?);
            continue;
        }
        let open = |source: Source| Input::of_mapped(source.label, source.file);
        Sources::of(same.to_vec()).each(Order::OneByOne, open, |_, found| {
            inputs.push(found?);
            Ok(())
        })?;
    }
    Ok(inputs)
}

/// Whether a path is a folder, an archive of files, or standard input.
fn has_inside(path: &Path) -> bool {
    let is_archive = || Form::of_file(path).is_some_and(|form| form != Form::Plain);
    path.as_os_str() == "-" || path.is_dir() || is_archive()
}

impl Link {
    pub(super) fn run(&self, arch: &[Sm], out: &mut dyn Write) -> Result<()> {
        if self.gen_host_linker_script.is_some() {
            if let Some(path) = &self.output {
                return output::write(path, None, |file| Ok(file.write_all(AUGMENT.as_bytes())?));
            }
            return Ok(out.write_all(AUGMENT.as_bytes())?);
        }
        let arch = match arch {
            [] => None,
            [arch] => Some(*arch),
            _ => bail!("--arch: a cubin is linked for one architecture"),
        };
        let limits = Limits { limit: self.limit, ..Limits::default() };
        let mut files = self.files.clone();
        for name in &self.library {
            files.push(library(name, &self.library_path)?);
        }
        let inputs = inputs(&files, limits)?;
        let to = match self.relocatable_link {
            true => LinkTo::Object,
            false => LinkTo::Cubin(&self.kernels_used),
        };
        let linked = link_files(&inputs, arch, self.limit, to)?;
        let Some(output) = &self.output else { bail!("no --output") };
        output::write(output, None, |file| Ok(file.write_all(&linked.bytes)?))?;
        let out = &mut *output::beside(output, out);
        if self.json {
            crate::json::write(out, &linked)?;
            return Ok(writeln!(out)?);
        }
        for object in &linked.left_out {
            let object = Printable::from(object.as_str());
            writeln!(out, "{object} has no relocatable code for the architecture and is left out")?;
        }
        if let Some(why) = &linked.mercury_left_out {
            let note = format!("the cubin has machine code alone, no Mercury form: {why}");
            paint::note(out, &note)?;
        }
        if self.dump_callgraph {
            let arch = nvinfo::Cubin::parse(&linked.bytes)?.target().to_string();
            let arch = arch.split(',').next().unwrap_or_default();
            call_graph(&linked.functions, arch, out)?;
        }
        for kernel in &linked.unbounded_stacks {
            let kernel = Printable::from(kernel.as_str());
            writeln!(out, "the stack of kernel {kernel} has no bound that can be told")?;
        }
        Ok(())
    }
}
