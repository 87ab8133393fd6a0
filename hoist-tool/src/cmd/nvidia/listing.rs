//! Machine code as cuobjdump prints it: it has nvdisasm do it, with options that nvdisasm's help does not tell, and so does this.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use elf_core::names::{EF_CUDA_ACCELERATORS, EF_CUDA_V2_ACCELERATORS};
use fatbin::{Sm, Suffix};
use nvinfo::{Cubin, Function, HeaderForm};

use super::options::Request;
use crate::sass::nvdisasm;

/// `-sass`: all of a cubin by one process, and functions that are named as raw code, a process for each.
pub(super) fn sass(
    bytes: &[u8],
    sm: Sm,
    request: &Request,
    seen: &mut BTreeSet<String>,
    out: &mut dyn Write,
) -> Result<()> {
    let suffix = if sm.suffix == Suffix::Specific { "a" } else { "" };
    writeln!(out, "\n\tcode for sm_{}{suffix}", sm.number)?;
    if request.functions.is_empty() {
        let words: &[&str] = if request.sorted { &["-sort"] } else { &[] };
        let text = nvdisasm(bytes, &[&["-pb", "-hex", "-novliw"], words].concat())?;
        return Ok(out.write_all(text.as_bytes())?);
    }
    let cubin = Cubin::parse(bytes)?;
    let functions = cubin.functions().filter(|one| !one.is_subroutine());
    let mut functions: Vec<_> = functions
        .map(|one| (one.name().to_string(), one))
        .filter(|one| request.wants_function(&one.0))
        .collect();
    functions.sort_by_key(|(_, one)| Function::section(one));
    if request.sorted {
        functions.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    // of toolkit 13 on the file header does not say it
    let header = cubin.file().header().flags;
    let is_accelerated = match cubin.target().form {
        HeaderForm::V7 => header & EF_CUDA_ACCELERATORS != 0,
        _ => header & EF_CUDA_V2_ACCELERATORS != 0,
    };
    let raw = format!("SM{}{}", sm.number, if is_accelerated { "a" } else { "" });
    for (name, function) in functions {
        let text = nvdisasm(function.code()?, &["-b", &raw, "-hex"])?;
        write!(out, "\t\tFunction : {name}\n{text}\t\t..........\n\n\n")?;
        seen.insert(name);
    }
    Ok(())
}
