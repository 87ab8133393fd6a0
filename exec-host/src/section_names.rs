//! Names of sections, for those who ask what they begin with.

use elf_core::{File, SectionHeader};

/// The first bytes of a section's name, and what follows in the table if it is shorter: nobody has to look for its end.
pub(crate) fn first_of_name<const N: usize>(
    file: &File<'_>,
    header: &SectionHeader,
) -> Option<[u8; N]> {
    let rest = file.section_names().as_bytes().get(header.name as usize..)?;
    rest.first_chunk().copied()
}
