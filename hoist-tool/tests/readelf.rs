//! `hoist show --json` against GNU readelf, line by line.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

mod fixtures;
#[path = "readelf/gnu.rs"]
mod gnu;
#[path = "readelf/json.rs"]
mod json;
#[path = "readelf/lines.rs"]
mod lines;
#[path = "readelf/ours.rs"]
mod ours;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use lines::Topic;

/// What was compared, and what differs, by kind.
#[derive(Default)]
struct Tally {
    files: usize,
    elf_files: usize,
    lines: usize,
    /// Topic or failure, to how often and an example.
    differences: BTreeMap<String, (usize, String)>,
}

impl Tally {
    fn differs(&mut self, kind: String, example: impl FnOnce() -> String) {
        let entry = self.differences.entry(kind).or_insert_with(|| (0, example()));
        entry.0 += 1;
    }

    fn report(&self) -> String {
        let Self { files, elf_files, lines, differences } = self;
        let mut text =
            format!("{files} files with {elf_files} ELF files, {lines} lines compared, ");
        text +=
            &format!("{} differ\n", differences.values().map(|(count, _)| count).sum::<usize>());
        for (kind, (count, example)) in differences {
            text += &format!("  {count} {kind}, such as {example}\n");
        }
        text
    }
}

/// Compares one file, or every member of an archive.
fn compare(path: &Path, tally: &Mutex<Tally>) {
    let (ours, theirs) = (ours::read(path), gnu::read(path));
    let mut tally = tally.lock().expect("no panic here");
    tally.files += 1;
    if ours.len() != theirs.len() && ours.iter().all(Result::is_ok) {
        let example = || format!("{}: {} here, {} there", path.display(), ours.len(), theirs.len());
        tally.differs(String::from("number of ELF files"), example);
        return;
    }
    for (ours, theirs) in ours.iter().zip(&theirs) {
        tally.elf_files += 1;
        match ours {
            Err(error) => tally.differs(String::from("refused"), || error.clone()),
            Ok(ours) => {
                tally.lines += theirs.len();
                for (topic, ours, theirs) in ours.differences(theirs) {
                    let example =
                        || format!("{}\n    here  {ours}\n    there {theirs}", path.display());
                    tally.differs(format!("{topic:?}{}", kind_of(topic, ours, theirs)), example);
                }
            }
        }
    }
}

/// Sorts differences a little: by the words that differ.
fn kind_of(_topic: Topic, ours: &str, theirs: &str) -> String {
    if ours == "(no line)" || theirs == "(no line)" {
        return String::from(" missing");
    }
    let (ours, theirs): (Vec<_>, Vec<_>) = (ours.split(' ').collect(), theirs.split(' ').collect());
    if ours.len() != theirs.len() {
        return String::from(" number of words");
    }
    let word = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    word.map_or_else(String::new, |word| format!(" word {word}"))
}

/// Compares many files, on all processors.
fn compare_all(paths: &[PathBuf]) -> Tally {
    let tally = Mutex::new(Tally::default());
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    compare(path, &tally);
                }
            });
        }
    });
    tally.into_inner().expect("no panic here")
}

/// Every ELF file and archive below `folder`, each once.
fn find(folder: &Path, seen: &mut HashSet<(u64, u64)>, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() {
            find(&path, seen, found);
        } else if kind.is_file()
            && let Ok(metadata) = entry.metadata()
            && seen.insert((metadata.dev(), metadata.ino()))
            && is_elf_or_archive(&path)
        {
            found.push(path);
        }
    }
}

fn is_elf_or_archive(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; 8];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok()
        && (start.starts_with(b"\x7fELF") || &start == b"!<arch>\n" || &start == b"!<thin>\n")
}

#[test]
fn fixtures_and_some_files_of_the_system() {
    let Some(version) = gnu::version() else {
        println!("skipped: fixtures_and_some_files_of_the_system: readelf is not installed");
        return;
    };
    let mut paths: Vec<PathBuf> =
        fixtures::all().into_iter().map(|(path, _)| fixtures::folder().join(path)).collect();
    paths.push(std::env::current_exe().expect("this test"));
    let system = [
        "/bin/ls",
        "/bin/true",
        "/usr/lib/x86_64-linux-gnu/crt1.o",
        "/lib/x86_64-linux-gnu/libm.so.6",
    ];
    paths.extend(system.map(PathBuf::from).into_iter().filter(|path| path.exists()));
    let tally = compare_all(&paths);
    println!("{version}: {}", tally.report());
    assert!(tally.differences.is_empty(), "{}", tally.report());
    assert!(tally.elf_files >= 380, "{} files, expected 380", tally.elf_files);
}

#[test]
#[ignore = "compares every ELF file and archive below the folders in HOIST_SWEEP (colons between): minutes"]
fn sweep() {
    let folders =
        std::env::var("HOIST_SWEEP").expect("HOIST_SWEEP names folders, with colons between");
    let (mut seen, mut paths) = (HashSet::new(), Vec::new());
    for folder in folders.split(':') {
        find(Path::new(folder), &mut seen, &mut paths);
    }
    paths.sort();
    let tally = compare_all(&paths);
    println!("{}", tally.report());
    assert!(tally.differences.is_empty(), "there are differences");
}
