//! What the tests of files share: where files are, and everything that can be read of one.

#![allow(dead_code, reason = "every test takes what it needs")]

use elf_core::{File, Name, archive::Archive};
use std::fs;
use std::path::{Path, PathBuf};

/// Every regular file below `folder`, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

/// The folder of the fixtures.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

/// Every fixture that is an ELF file: its path and bytes.
pub(crate) fn fixtures() -> Vec<(PathBuf, Vec<u8>)> {
    let files = files(&folder()).into_iter().map(|path| (fs::read(&path).unwrap(), path));
    files
        .filter(|(bytes, _)| bytes.starts_with(b"\x7fELF"))
        .map(|(bytes, path)| (path, bytes))
        .collect()
}

/// One fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

/// Every ELF file of the machine, but for kernel and temporary file systems. Files that cannot be read are left out.
pub(crate) fn machine() -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
    let roots = std::env::var_os("ELF_CORE_SWEEP").map_or_else(
        || ["/usr", "/opt", "/lib", "/root", "/home", "/boot", "/var"].map(PathBuf::from).to_vec(),
        |paths| std::env::split_paths(&paths).collect(),
    );
    let roots: Vec<PathBuf> = roots.into_iter().filter(|root| !root.is_symlink()).collect();
    let paths = roots.into_iter().flat_map(|root| files(&root));
    paths.filter_map(|path| {
        use std::io::Read;
        let mut start = [0; 4];
        fs::File::open(&path).ok()?.read_exact(&mut start).ok()?;
        (start == *b"\x7fELF").then(|| fs::read(&path).ok()).flatten().map(|bytes| (path, bytes))
    })
}

/// Reads all that `elf-core` can read of `bytes`; the number of things read. It is to end, and not to panic.
pub(crate) fn everything(bytes: &[u8]) -> usize {
    let mut count = 0;
    if let Ok(archive) = Archive::parse(bytes) {
        count += archive.members().count();
    }
    let Ok(file) = File::parse(bytes) else { return count };
    let notes = |notes: elf_core::Notes<'_>| {
        let properties = notes.clone().flatten().filter_map(|note| note.properties()).flatten();
        notes.count() + properties.flatten().filter_map(|property| property.value()).count()
    };
    let versions = |versions: elf_core::version::Versions<'_>| {
        let names = versions.definitions().flatten().map(|definition| definition.names().count());
        let needs = versions.needs().flatten().map(|need| need.versions().count());
        let symbols = (0..20).filter(|&symbol| versions.of(symbol).is_ok()).count();
        names.sum::<usize>() + needs.sum::<usize>() + symbols
    };
    let symbols = |table: elf_core::SymbolTable<'_>| {
        let symbols = (0..).zip(table.symbols());
        symbols
            .filter(|(index, it)| table.name_of(it).is_ok() && table.section_of(*index, it).is_ok())
            .count()
    };
    for (index, section) in (0..).zip(file.sections()) {
        count += usize::from(file.section_name(&section).is_ok());
        count += file.section_data(&section).map_or(0, <[u8]>::len).min(1);
        count += file.relocations(&section).ok().flatten().map_or(0, relocations);
        count += file.symbol_table_at(index).map_or(0, symbols);
        count += file.section_notes(&section).ok().flatten().map_or(0, notes);
        count += file.group(&section).ok().flatten().map_or(0, Iterator::count);
        count +=
            file.section_group(&section).ok().flatten().map_or(0, |group| group.members().count());
        count += usize::from(file.compressed(&section).is_ok());
        let Ok(linked) = file.symbol_table_at(section.link) else { continue };
        for name in ["exported", "memcpy", "", "x"].map(Name::from) {
            if let Ok(Some(table)) = file.hash_table(&section) {
                count +=
                    usize::from(table.find(name, &linked).is_ok()) + table.symbol_count().min(1);
            }
            if let Ok(Some(table)) = file.gnu_hash_table(&section) {
                count += usize::from(table.find(name, &linked).is_ok())
                    + usize::from(table.symbol_count().is_ok());
            }
        }
    }
    for segment in file.segments() {
        count += file.segment_data(&segment).map_or(0, <[u8]>::len).min(1);
        count += file.segment_notes(&segment).ok().flatten().map_or(0, notes);
        count += usize::from(file.offset_of(segment.address).is_some());
    }
    count += file.versions().ok().flatten().map_or(0, versions);
    for dynamic in
        [file.dynamic_by_section(), file.dynamic_by_segment()].into_iter().flatten().flatten()
    {
        for entry in dynamic.entries() {
            count += usize::from(dynamic.text(&entry).is_ok());
            count += dynamic
                .relocations(entry.tag.cast_unsigned())
                .ok()
                .flatten()
                .map_or(0, relocations);
        }
        count += dynamic.symbol_table().ok().flatten().map_or(0, symbols);
        count += dynamic.versions().ok().flatten().map_or(0, versions);
    }
    count
}

/// Reads relocations by all ways; their number.
fn relocations(records: elf_core::Relocations<'_>) -> usize {
    let (last, index) = (records.iter().last(), records.len().wrapping_sub(1));
    assert_eq!((records.get(records.len()), records.get(index)), (None, last));
    #[cfg(feature = "packed-relocations")]
    {
        let mut stops = [const { elf_core::RelocationIter::EMPTY }; 3];
        let indexed = records.indexed(&mut stops);
        assert_eq!((indexed.get(records.len()), indexed.get(index)), (None, last));
    }
    assert_eq!(records.iter().count(), records.len());
    records.len()
}
