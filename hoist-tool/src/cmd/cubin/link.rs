//! `hoist cubin link A.cubin B.o C.a -o OUTPUT`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use fatbin::Sm;
use reloc_cuda::link::{LinkError, LinkErrorKind, LinkedMercury, link_for};
use serde::Serialize;

use super::objects::{self, Objects};
use crate::budget::{Budget, FLOOR, Limits, TIMES};
use crate::explain::Lines;
use crate::input::{Input, Part, read_all};
use crate::number::number;
use crate::output;
use crate::printable::Printable;

/// Links relocatable device code into a cubin that can be loaded, as nvlink does.
#[derive(Debug, clap::Args)]
pub(super) struct Link {
    /// Relocatable cubins, fatbins, host objects and libraries with relocatable device code, archives of these, and PTX, which
    /// ptxas compiles if it is installed, in the order of linking.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The most bytes that images may unpack to, together: otherwise 256 MiB and 64 times the size of the files.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

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
}

/// Links the device code in the files for an architecture, or that of the first cubin; of archives all of it, asked for or not. Images unpack to
/// at most `limit` bytes; without one, 256 MiB and 64 times the size of the files.
///
/// # Errors
/// What is wrong with which object, one a line.
pub fn link_files(inputs: &[Input], arch: Option<Sm>, limit: Option<u64>) -> Result<Linked> {
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
    let linked = link_for(&bytes, sm).map_err(|errors| {
        let lines: Vec<_> = errors.0.iter().map(|error| explain(error, &label)).collect();
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
    })
}

/// One error, with the names of files in place of their numbers.
fn explain(error: &LinkError, label: &impl Fn(usize) -> String) -> String {
    let text = match &error.kind {
        LinkErrorKind::Duplicate { symbol, first } => {
            format!("symbol {symbol} is defined in {} already", label(*first))
        }
        LinkErrorKind::Size { symbol, first } => {
            format!("symbol {symbol} has another size in {}", label(*first))
        }
        LinkErrorKind::Space { symbol, first } => {
            format!("symbol {symbol} is in another memory in {}", label(*first))
        }
        LinkErrorKind::Prototype { symbol, first } => {
            format!("symbol {symbol} has another prototype in {}", label(*first))
        }
        LinkErrorKind::Managed { symbol, first } => {
            format!("symbol {symbol} is managed in one of this and {} only", label(*first))
        }
        LinkErrorKind::Entry { symbol, first } => {
            format!("symbol {symbol} is a kernel in one of this and {} only", label(*first))
        }
        LinkErrorKind::Common { symbol, first } => {
            format!("common symbol {symbol} is larger than its definition: {}", label(*first))
        }
        kind => kind.to_string(),
    };
    format!("{}: {text}", label(error.object))
}

impl Link {
    pub(super) fn run(&self, arch: Option<Sm>, out: &mut dyn Write) -> Result<()> {
        let limits = Limits { limit: self.limit, ..Limits::default() };
        let linked = link_files(&read_all(&self.files, limits)?, arch, self.limit)?;
        output::write(&self.output, None, |file| Ok(file.write_all(&linked.bytes)?))?;
        let out = &mut *output::beside(&self.output, out);
        if self.json {
            crate::json::write(out, &linked)?;
            return Ok(writeln!(out)?);
        }
        for object in &linked.left_out {
            let object = Printable::from(object.as_str());
            writeln!(out, "{object} has no relocatable code for the architecture and is left out")?;
        }
        if let Some(why) = &linked.mercury_left_out {
            let why = Printable::from(why.as_str());
            writeln!(out, "note: the cubin has machine code alone, no Mercury form: {why}")?;
        }
        for kernel in &linked.unbounded_stacks {
            let kernel = Printable::from(kernel.as_str());
            writeln!(out, "the stack of kernel {kernel} has no bound that can be told")?;
        }
        Ok(())
    }
}
