//! Notes as cuobjdump prints them.

use std::io::Write;

use anyhow::Result;
use elf_core::{Name, SectionHeader};
use nvinfo::{CubinNote, CubinNotes};

/// Prints all notes of a section.
pub(super) fn notes(
    bytes: &[u8],
    section: &SectionHeader,
    name: Name<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    writeln!(out, "\n\n.section {name}")?;
    // owner, description and type stand before what nvinfo tells
    let sizes = bytes_of_notes(bytes);
    for (number, (note, size)) in (1u32..).zip(CubinNotes::new(bytes, section.offset).zip(sizes)) {
        let note = note?;
        writeln!(out, "Entry: {number}\n  Owner                  Data size        Description")?;
        match note {
            CubinNote::Tool(tool) => {
                writeln!(
                    out,
                    "  NVIDIA Corp            {size:<17}NVIDIA CUDA Toolkit Information"
                )?;
                match tool.toolkit() {
                    Some(toolkit) => {
                        let (major, minor) = (toolkit.major(), toolkit.minor());
                        writeln!(out, "\tTool Kit Version: {major}.{minor}")?;
                    }
                    // of the first tool alone
                    None if number == 1 => writeln!(out, "\tNote Version: {}", tool.version)?,
                    None => {}
                }
                if !tool.object.as_bytes().is_empty() {
                    writeln!(out, "\tObject File: {}", tool.object)?;
                }
                writeln!(out, "\tTool Name: {}", tool.name)?;
                writeln!(out, "\tTool Version: {}", tool.release)?;
                writeln!(out, "\tTool Branch: {}", tool.branch)?;
                writeln!(out, "\tTool Command Line Arguments: {}", tool.arguments)?;
            }
            CubinNote::Cuda { version, virtual_sm, toolkit } => {
                writeln!(out, "  NVIDIA Corp            {size:<17}NVIDIA CUDA Information")?;
                writeln!(out, "\tNote Version: {version}\n\tCUDA Virtual SM: sm_{virtual_sm}")?;
                if let Some(toolkit) = toolkit {
                    let (major, minor) = (toolkit.major(), toolkit.minor());
                    writeln!(out, "\tCUDA Tool Kit Version: {major}.{minor}")?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sizes of the descriptions of notes (gABI ch. 5, "Note Section").
fn bytes_of_notes(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
        let (name, size) = (word(0)?, word(4)?);
        let padded = |size: u32| usize::try_from(size).ok()?.checked_next_multiple_of(4);
        let whole = padded(name)?.checked_add(padded(size)?)?.checked_add(12)?;
        bytes = bytes.get(whole..)?;
        Some(size)
    })
}
