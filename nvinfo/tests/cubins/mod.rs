//! The fixtures.

use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda")
}

/// The fixture of this name, without `.cubin`.
pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = folder().join(format!("{name}.cubin"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All fixtures with their names, in order.
pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let names = entries
        .filter_map(|path| Some(path.file_name()?.to_str()?.strip_suffix(".cubin")?.to_owned()));
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert!(names.len() >= 24);
    names.into_iter().map(|name| (name.clone(), read(&name))).collect()
}
