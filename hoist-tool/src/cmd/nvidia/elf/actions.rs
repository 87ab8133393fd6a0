//! The table of relocation actions (`.nv.rel.action`) as cuobjdump prints it: how the relocations of newer toolkits are made, for drivers
//! that do not know them.

use std::io::Write;

use anyhow::Result;
use elf_core::Name;
use elf_core::names::EM_CUDA;

use super::words::{ACTIONS, UNKNOWN_RELOCATION};

/// Prints all rows: the first of them is that of the relocation whose number stands at the start, the others follow it by number.
pub(super) fn actions(bytes: &[u8], name: Name<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n\n{name}")?;
    let (rows, _) = bytes.as_chunks::<8>();
    let Some(([a, b, c, d, ..], rows)) = rows.split_first() else { return Ok(()) };
    let first = u32::from_le_bytes([*a, *b, *c, *d]);
    let name = |number| archs::relocation_name(EM_CUDA, number).unwrap_or(UNKNOWN_RELOCATION);
    writeln!(out, "Header : Base Relocation : {}", name(first))?;
    writeln!(
        out,
        "Reloc type : Symbol Kind,Addend Shift,Source Position1,length1,Destination Position1,Source Position2,length2,Destination Position2"
    )?;
    for (step, [kind, fields @ ..]) in (0u32..).zip(rows) {
        let kind = ACTIONS.get(usize::from(*kind)).copied().unwrap_or_default();
        write!(out, "{} : {kind}", name(first.saturating_add(step)))?;
        for field in fields {
            write!(out, ",{field}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
