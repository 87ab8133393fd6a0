//! Lays out several files together, and writes them.

use super::layout;
use super::sink::Sink;
use elf_core::File;
use elf_core::archive::Archive;

/// The files are the members of an archive.
pub fn run(bytes: &[u8]) {
    let Ok(archive) = Archive::parse(bytes) else { return };
    let members = archive.members().filter_map(|member| member.ok()?.data);
    let files: Vec<_> = members
        .filter_map(|data| Sink::default().result(File::parse(data)))
        .take(layout::OBJECTS)
        .collect();
    layout::files(&files);
}
