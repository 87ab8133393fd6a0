//! What other tools say of a library: cuobjdump, readelf, eu-elflint.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::numbers::without_numbers;

/// What cuobjdump takes out of a file, in the order of contents: names without that of the file, and contents.
fn taken(at: &Path, file: &str) -> Option<Vec<(Vec<u8>, String)>> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(at.join(file), folder.path().join("x.so")).expect("a copy");
    let words = ["-xelf", "all", "-xptx", "all", "x.so"];
    let output = Command::new("cuobjdump").args(words).current_dir(folder.path()).output().ok()?;
    assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    fs::remove_file(folder.path().join("x.so")).expect("a file");
    let entries = fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("one"));
    let entries = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (_, name) = name.split_once(".sm_").expect("an architecture");
        (fs::read(entry.path()).expect("a file"), name.to_owned())
    });
    let mut all: Vec<_> = entries.collect();
    all.sort();
    Some(all)
}

/// cuobjdump, if it is there, finds the images of the library that were to be kept, and no others.
pub(super) fn same_as_cuobjdump(at: &Path, file: &str, is_pruned: bool, what: &str) {
    let (Some(mut old), Some(new)) = (taken(at, "lib.so"), taken(at, file)) else { return };
    assert!(!old.is_empty(), "{what}");
    old.retain(|(_, name)| !is_pruned || name == "80.cubin" || name.ends_with(".ptx"));
    let names =
        |all: &[(Vec<u8>, String)]| all.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
    assert!(old == new, "{what}, {file}: {:?} {:?}", names(&old), names(&new));
}

/// What readelf and eu-elflint complain of.
pub(super) fn complaints(at: &Path, file: &str) -> Vec<String> {
    let mut all = Vec::new();
    for words in [&["readelf", "-aW"][..], &["eu-elflint", "--gnu-ld"]] {
        let output = Command::new(words[0]).args(&words[1..]).arg(file).current_dir(at).output();
        let Ok(output) = output else { continue };
        let text = if words[0] == "readelf" { output.stderr } else { output.stdout };
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines = text.lines().filter(|line| *line != "No errors").map(without_numbers);
        all.extend(lines.map(|line| one_of_a_kind(&line)));
    }
    all.sort();
    all.dedup();
    all
}

/// What eu-elflint says of zeros in memory by their offset in the file, where segments before end in zeros as well, depends on what else is at
/// such offsets: each of these says that it took them for another segment's.
fn one_of_a_kind(line: &str) -> String {
    const KINDS: [&str; 2] =
        ["' has type NOBITS but is read from the file", "' not fully contained in segment"];
    let zeros = KINDS.iter().find_map(|kind| Some(line.split_once(kind)?.0));
    zeros.map_or_else(|| line.to_owned(), |section| format!("{section}' is another segment's"))
}
