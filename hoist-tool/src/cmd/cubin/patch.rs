//! `hoist cubin patch FILE -o OUTPUT`: changes in place, and what no longer fits.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use elf_core::names::{SHT_CUDA_CAPMERC, SHT_CUDA_MERCURY_INFO};
use nvinfo::{Cubin, Fault, attribute_name};
use serde::Serialize;

use super::changes::{Change, Changes};
use super::kernel::hex;
use crate::alone;
use crate::output;
use crate::paint;
use crate::table::Table;

/// Changes numbers and code of a cubin in place, and says which attributes no longer fit the code.
#[derive(Debug, clap::Args)]
pub(super) struct Patch {
    /// The cubin.
    file: PathBuf,
    /// Where to write the changed one; without it, nothing is written.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The function to change.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

/// What was changed, and what should be looked at.
#[derive(Debug, Serialize)]
pub struct Patched {
    /// The changes.
    pub changes: Vec<Change>,
    /// Offsets of attributes that do not fit the code any more.
    pub suspects: Vec<Suspect>,
    /// What was left as it is though it says the same as what was changed.
    pub notes: Vec<&'static str>,
}

/// An offset of an attribute that does not fit the code.
#[derive(Debug, Serialize)]
pub struct Suspect {
    /// Number of the attribute.
    pub attribute: u8,
    /// Its name.
    pub name: Option<&'static str>,
    /// The offset in the code.
    pub code_offset: u32,
    /// `outside`, `misaligned`, `changed`, `operands` or `unlisted`.
    pub fault: &'static str,
    /// What is wrong, in words.
    pub text: String,
}

/// From `sm_100` on.
const MERCURY_NOTE: &str =
    "the Mercury form of code and attributes (.nv.capmerc.*, .nv.merc.*) is as it was";

/// Changes `bytes`, which are a cubin: a function's, or without one attributes of the module.
///
/// # Errors
/// If they are none, there is no such function, or no place for a change. The bytes are as they were then.
pub fn patch(bytes: &mut Vec<u8>, function: Option<&str>, changes: &Changes) -> Result<Patched> {
    let cubin = Cubin::parse(bytes)?;
    let function = function.map(|name| super::symbols::function(&cubin, name)).transpose()?;
    let patches = changes.patches(&cubin, function.as_ref())?;
    let mut suspects = Vec::new();
    let mut done = Vec::new();
    for patch in &patches {
        let size = usize::from(patch.size);
        let digits = |word: u32| hex(word.to_le_bytes().get(..size).unwrap_or_default());
        let (was, is) = (digits(patch.was), digits(patch.value));
        done.push(Change { offset: patch.at, size, was, is });
    }
    let is_mercury = |kind| matches!(kind, SHT_CUDA_CAPMERC | SHT_CUDA_MERCURY_INFO);
    let has_mercury = cubin.file().sections().iter().any(|section| is_mercury(section.r#type));
    let notes = has_mercury.then_some(MERCURY_NOTE).into_iter().collect();
    let mut changed = bytes.clone();
    if let Some(function) = &function {
        let code = changes.code_of(&cubin, function)?;
        let start = usize::try_from(function.section_header().offset)?;
        function.check_code(&code, |found| suspects.push(suspect(&found)))?;
        for (offset, new) in &changes.code {
            let base = if function.is_subroutine() { function.symbol().value } else { 0 };
            let at = usize::try_from(offset + base)? + start;
            let was = bytes.get(at..).and_then(|rest| rest.get(..new.len())).unwrap_or_default();
            done.push(Change { offset: at as u64, size: new.len(), was: hex(was), is: hex(new) });
        }
        let place = changed.get_mut(start..).and_then(|rest| rest.get_mut(..code.len()));
        place.context("the code leaves the file")?.copy_from_slice(&code);
    }
    nvinfo::Patch::apply_all(patches, &mut changed)?;
    *bytes = changed;
    Ok(Patched { changes: done, suspects, notes })
}

fn suspect(found: &nvinfo::Suspect) -> Suspect {
    let (fault, text) = match found.fault {
        Fault::Outside => ("outside", "behind the end of the code".to_owned()),
        Fault::Misaligned => ("misaligned", "no instruction begins there".to_owned()),
        Fault::Changed { was, is } => ("changed", format!("opcode {is:#x}, was {was:#x}")),
        Fault::Operands { opcode } => {
            ("operands", format!("opcode {opcode:#x} as before, but not as the attribute has it"))
        }
        Fault::Unlisted { opcode } => {
            ("unlisted", format!("opcode {opcode:#x}, which it listed all of before"))
        }
    };
    let (attribute, code_offset) = (found.attribute, found.offset);
    Suspect { attribute, name: attribute_name(attribute), code_offset, fault, text }
}

impl Patch {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<()> {
        let label = self.file.display().to_string();
        alone::check(&self.file)?;
        let mut bytes = fs::read(&self.file).with_context(|| label.clone())?;
        let patched = patch(&mut bytes, self.function.as_deref(), &self.changes)
            .with_context(|| label.clone())?;
        if let Some(path) = &self.output {
            output::write(path, Some(&self.file), |file| Ok(file.write_all(&bytes)?))?;
        }
        let out = &mut *match &self.output {
            Some(path) => output::beside(path, out),
            None => Box::new(out),
        };
        if self.json {
            crate::json::write(out, &patched)?;
            return Ok(writeln!(out)?);
        }
        text(&patched, out)
    }
}

fn text(patched: &Patched, out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    for change in &patched.changes {
        table.row([format!("{:#x}", change.offset), change.was.clone(), change.is.clone()])?;
    }
    for found in &patched.suspects {
        let name = found.name.map_or_else(|| found.attribute.to_string(), str::to_owned);
        table.row([format!("+{:#x}", found.code_offset), name, found.text.clone()])?;
    }
    table.end()?;
    for note in &patched.notes {
        paint::note(out, note)?;
    }
    Ok(())
}
