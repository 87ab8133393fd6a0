//! `hoist cubin link A.cubin B.cubin -o OUTPUT`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use reloc_cuda::link::{LinkError, LinkErrorKind, link};
use serde::Serialize;

use crate::input::{Input, Part, read_all};
use crate::printable::Printable;

/// Links relocatable cubins into one that can be loaded, as nvlink does.
#[derive(Debug, clap::Args)]
pub(super) struct Link {
    /// Relocatable cubins of one architecture, and archives of them, in the order of linking.
    #[arg(required = true, value_name = "CUBIN")]
    files: Vec<PathBuf>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
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
    /// Kernels whose stack has no bound that can be told.
    pub unbounded_stacks: Vec<String>,
}

/// Links the cubins among the files; of archives all of them, asked for or not.
///
/// # Errors
/// What is wrong with which object, in one line.
pub fn link_files(inputs: &[Input]) -> Result<Linked> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for input in inputs {
        let cubins = input.parts()?.into_iter().filter(|part| {
            part.member.is_none() || part.bytes.starts_with(&elf_core::names::ELFMAG)
        });
        parts.extend(cubins);
    }
    let bytes: Vec<_> = parts.iter().map(|part| part.bytes).collect();
    let label = |index: usize| parts.get(index).map_or("", |part| part.label.as_str()).to_owned();
    let linked = link(&bytes).map_err(|errors| {
        let lines: Vec<_> = errors.0.iter().map(|error| explain(error, &label)).collect();
        anyhow!(lines.join("\n"))
    })?;
    Ok(Linked {
        size: linked.bytes.len(),
        bytes: linked.bytes,
        objects: parts.iter().map(|part| part.label.clone()).collect(),
        unbounded_stacks: linked.unbounded,
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
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let linked = link_files(&read_all(&self.files)?)?;
        fs::write(&self.output, &linked.bytes)
            .with_context(|| self.output.display().to_string())?;
        if self.json {
            serde_json::to_writer(&mut *out, &linked)?;
            return Ok(writeln!(out)?);
        }
        for kernel in &linked.unbounded_stacks {
            let kernel = Printable::from(kernel.as_str());
            writeln!(out, "the stack of kernel {kernel} has no bound that can be told")?;
        }
        Ok(())
    }
}
