//! Which objects are linked, and what is expected of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::compare::{Outcome, compare};
use crate::fixtures;
use crate::linker::Linker;

/// Objects that are linked alone, and those that are linked together.
fn cases(folder: &str) -> Vec<Vec<PathBuf>> {
    let all = fixtures::all().into_iter().map(|(path, _)| path);
    let objects: Vec<PathBuf> = all
        .filter(|path| path.starts_with(folder) && path.extension().is_some_and(|end| end == "o"))
        .collect();
    // they ask where constructors and unwinding tables of the image are, whose sections linkers know by their names
    let asks = ["/firmware-b", "/unwinding.o"];
    // only newer linkers know that they become local exec
    let newer = [
        "loongarch64/relax-descriptors.o",
        "loongarch64/relax-tls.o",
        "loongarch64/relocations.o",
        "loongarch64/threads-a-clang19-O2-desc.o",
        "loongarch64/threads-a-clang19-O2-initial.o",
        "loongarch64/threads-a-clang19-O2-nopic.o",
    ];
    let is_left = |path: &PathBuf, names: &[&str]| {
        names.iter().any(|name| path.to_string_lossy().contains(name))
    };
    let objects: Vec<PathBuf> = objects
        .into_iter()
        .filter(|path| !is_left(path, &asks) && !is_left(path, &newer))
        .collect();
    let exists = |path: &PathBuf| objects.contains(path);
    let mut cases: Vec<Vec<PathBuf>> = Vec::new();
    for path in &objects {
        let name = path.file_name().expect("a name").to_str().expect("a name");
        // alone it has addresses without a size near gp, of which hoist counts none from there
        if !name.starts_with("relax-gnu") {
            cases.push(vec![path.clone()]);
        }
        for (first, second) in [
            ("pair-a", "pair-b"),
            ("shapes-", "shapes-second-"),
            ("threads-a", "threads-b"),
            ("threads-cpp", "threads-second"),
            ("relocations", "absolute"),
            ("relax-", "relax-absolute"),
        ] {
            let other = match first {
                "relocations" if name.starts_with(first) => String::from("absolute.o"),
                "relax-" if name.starts_with(first) => String::from("relax-absolute.o"),
                _ if name.starts_with(first) && !name.starts_with(second) => {
                    name.replacen(first, second, 1)
                }
                _ => continue,
            };
            let other = path.with_file_name(other);
            if exists(&other) && other != *path {
                cases.push(vec![path.clone(), other]);
            }
        }
    }
    let absolute =
        |paths: Vec<PathBuf>| paths.iter().map(|path| fixtures::folder().join(path)).collect();
    cases.into_iter().map(absolute).collect()
}

/// What is expected of a comparison (`linkers/expected.toml`).
#[derive(serde::Deserialize)]
struct Expected {
    /// Links that must be compared, at the least.
    links: usize,
    /// Objects that hoist refuses, by their files and why.
    refused_here: BTreeSet<String>,
    /// Objects that the linker refuses, by their files.
    refused_there: BTreeSet<String>,
}

fn expected(test: &str) -> Expected {
    let text = include_str!("expected.toml");
    let mut all: BTreeMap<String, Expected> = toml::from_str(text).expect("expected.toml");
    all.remove(test).expect("an entry of expected.toml")
}

/// The files of a case, and what is said of them, without folders.
fn short(paths: &[PathBuf], why: &str) -> String {
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let names: Vec<String> = paths.iter().map(name).collect();
    let why = why.split_once(".o: ").map_or(why, |(_, why)| why);
    match why {
        "" => names.join(" "),
        why => format!("{}: {why}", names.join(" ")),
    }
}

/// Compares all cases of a folder with a linker and says what came out: fails if less is compared than is expected, or anything is
/// refused that is not.
pub(crate) fn compare_all(test: &str, folder: &str, base: u64, programs: &[&str], relax: bool) {
    let Some(linker) = Linker::find(programs) else {
        println!("skipped: {test}: none of {programs:?} is installed");
        return;
    };
    let scratch = tempfile::tempdir().expect("a folder");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut add = |what, count| *counts.entry(what).or_default() += count;
    let (mut different, mut refused) = (Vec::new(), Vec::new());
    let (expected, mut surprises) = (expected(test), Vec::new());
    // what only one of the linkers makes shorter
    let others = if linker.is_lld() { "relax-gnu" } else { "relax-lld" };
    let is_others = |path: &PathBuf| path.to_string_lossy().contains(others);
    for paths in cases(folder) {
        if paths.iter().any(is_others) {
            continue;
        }
        match compare(&linker, &paths, base, relax, scratch.path()) {
            Outcome::Equal { sections, bytes, got, reworded } => {
                for (what, count) in [
                    ("links", 1),
                    ("sections", sections),
                    ("bytes", bytes),
                    ("GOT fields", got),
                    ("in other words", reworded),
                ] {
                    add(what, count);
                }
            }
            Outcome::Different(found) => {
                add("different links", 1);
                different.extend(found);
            }
            Outcome::Refused(why) | Outcome::BothRefused(why) => {
                add("refused here", 1);
                let case = short(&paths, &why);
                if !expected.refused_here.contains(&case) {
                    surprises.push(format!("refused_here {case:?}"));
                }
                refused.push(format!("here: {why}"));
            }
            Outcome::LinkerRefused(why) => {
                add("refused there", 1);
                let case = short(&paths, "");
                if !expected.refused_there.contains(&case) {
                    surprises.push(format!("refused_there {case:?}"));
                }
                refused.push(format!("there: {paths:?}: {why}"));
            }
        }
    }
    println!("{test}: {}: {counts:?}", linker.version);
    refused.iter().for_each(|line| println!("  refused {line}"));
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
    let links = counts.get("links").copied().unwrap_or_default();
    let known = "not in linkers/expected.toml";
    assert!(surprises.is_empty(), "{test}: {known}:\n{}", surprises.join("\n"));
    assert!(links >= expected.links, "{test}: {links} links, expected {}", expected.links);
}
