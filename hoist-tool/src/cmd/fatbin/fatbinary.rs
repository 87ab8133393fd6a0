//! NVIDIA's fatbinary, for what it alone can: cicc scrambles the NVVM (LTO-IR) that it writes, which no compressor makes smaller;
//! fatbinary takes that off before it compresses, and obfuscates after.

use std::fs;
use std::path::{self, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail, ensure};
use fatbin::{CompressionMode, EntryKind, Region, RegionEntry, Sm};

use super::stored::Stored;
use crate::printable::Printable;
use crate::sass::find_tool;

const INPUT: &str = "input.nvvm";
const OUTPUT: &str = "output.fatbin";

/// Where it is: the environment's FATBINARY, PATH, CUDA_HOME/bin, CUDA_PATH/bin, or the packages of the Python on PATH.
fn tool() -> Option<&'static PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| find_tool("fatbinary", "FATBINARY")).as_ref()
}

/// An entry of NVVM that is not compressed, as fatbinary stores it in this mode: as before, if that is no smaller; nothing if
/// fatbinary is not installed.
///
/// # Errors
/// If it cannot be run, refuses (those of CUDA before 12.8 know no modes), or writes anything else than this entry.
pub fn stored(entry: RegionEntry<'_>, mode: CompressionMode) -> Result<Option<Stored<'_>>> {
    let Some(tool) = tool() else { return Ok(None) };
    let payload = without_padding(entry.stored().bytes());
    let bytes = run(tool, entry.sm(), payload, mode)?;
    let region = Region::parse(&*bytes).context("what fatbinary has written")?;
    let mut entries = region.entries();
    let (Some(packed), None) = (entries.next(), entries.next()) else {
        bail!("fatbinary has written another number of entries than one");
    };
    let packed = packed.context("what fatbinary has written")?;
    let is_it = packed.kind() == EntryKind::Nvvm
        && (packed.sm(), packed.code_version()) == (entry.sm(), entry.code_version());
    ensure!(
        is_it && packed.unpacked_size() == payload.len() as u64,
        "fatbinary has written {} for {} of {} bytes, in place of {} for {} of {}",
        packed.kind(),
        packed.sm(),
        packed.unpacked_size(),
        entry.kind(),
        entry.sm(),
        payload.len()
    );
    let Some(method) = packed.compression() else { return Ok(Some(Stored::Kept(entry))) };
    if packed.stored_size() >= entry.stored_size() {
        return Ok(Some(Stored::Kept(entry)));
    }
    Ok(Some(Stored::New {
        entry,
        stored: packed.stored().bytes().to_vec().into(),
        compression: Some((method, packed.unpacked_size())),
        obfuscation_key: packed.obfuscation_key(),
    }))
}

/// The payload without the zeros that make its size a multiple of 8: bitcode is one of 4, and what is scrambled ends in four zeros
/// once in 2^32 times.
fn without_padding(payload: &[u8]) -> &[u8] {
    payload.strip_suffix(&[0; 4]).filter(|_| payload.len().is_multiple_of(8)).unwrap_or(payload)
}

/// The fatbin that it makes of a payload.
fn run(tool: &PathBuf, sm: Sm, payload: &[u8], mode: CompressionMode) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at(INPUT), payload).with_context(|| at(INPUT).display().to_string())?;
    // names without a folder: a comma in one would end it
    let mut command = Command::new(path::absolute(tool)?);
    command.arg("-64").arg(format!("--compress-mode={}", mode.name()));
    command.arg(format!("--image3=kind=nvvm,sm={sm},file={INPUT}"));
    command.arg(format!("--create={OUTPUT}")).current_dir(folder.path());
    let run = command.stdin(Stdio::null()).output();
    let run = run.with_context(|| tool.display().to_string())?;
    if let (true, Ok(bytes)) = (run.status.success(), fs::read(at(OUTPUT))) {
        return Ok(bytes);
    }
    let said = [run.stderr, run.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<_> = said.lines().filter(|line| !line.is_empty()).collect();
    let words = if lines.is_empty() { run.status.to_string() } else { lines.join(" ") };
    bail!("fatbinary has written nothing: {}", Printable::from(&*words))
}
