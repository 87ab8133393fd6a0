//! What a page is told is what the command line prints: also of files that are lent in parts.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use hoist_tool::cmd::CommandLine;
use hoist_tool::lent::{self, Lender};
use hoist_tool::words;

/// A file of this machine, lent, and what was asked of it.
#[derive(Debug)]
struct OnDisk {
    file: Mutex<File>,
    size: u64,
    read: Mutex<u64>,
}

impl OnDisk {
    fn lend(path: &Path) -> Arc<Self> {
        let file = File::open(path).unwrap();
        let size = file.metadata().unwrap().len();
        let lent = Arc::new(Self { file: Mutex::new(file), size, read: Mutex::new(0) });
        lent::lend(path.to_owned(), lent.clone());
        lent
    }
}

impl Lender for OnDisk {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap();
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(into)?;
        *self.read.lock().unwrap() += into.len() as u64;
        Ok(())
    }
}

const COMMANDS: &[&[&str]] = &[
    &["show", "--json-lines"],
    &["show", "--svg"],
    &[
        "show",
        "--json-lines",
        "--header",
        "--segments",
        "--sections",
        "--dynamic",
        "--symbols",
        "--notes",
    ],
    &["cubin", "show", "--json-lines"],
    &["cubin", "show", "--svg", "--limit", "8"],
    &["fatbin", "list", "--json-lines"],
    &["fatbin", "size", "--json-lines"],
    &["fatbin", "report", "--json-lines", "--output", "-"],
    &["fatbin", "diff", "--json-lines"],
];

/// The words of a command about a file; of one that compares, the file with itself.
fn line(command: &[&str], path: &str) -> Vec<String> {
    let times = if command.contains(&"diff") { 2 } else { 1 };
    let paths = core::iter::repeat_n(path, times);
    command.iter().copied().chain(["--"]).chain(paths).map(String::from).collect()
}

/// What the command line prints, and says of errors.
fn printed(words: &[String]) -> (String, String) {
    let program = core::iter::once(OsString::from("hoist"));
    let words: Vec<_> = program.chain(words.iter().map(OsString::from)).collect();
    let (line, has_lines) = words::parse::<CommandLine>(&words).unwrap();
    let mut out = Vec::new();
    let error = words::run(|out| line.command.run(out), has_lines, &mut out).err();
    let error = error.map_or_else(String::new, |error| words::complaints(&error).join("\n"));
    (String::from_utf8(out).unwrap(), error)
}

/// The same of a page.
fn told(words: Vec<String>) -> (String, String) {
    let mut text = String::new();
    let error = web::run_into(words, |lines| text.push_str(lines));
    (text, error)
}

/// Compares commands, and gives how much of the file was read.
fn compare(path: &Path, commands: &[&[&str]]) -> (u64, u64) {
    let name = path.to_str().unwrap();
    let lines = commands.iter().map(|command| line(command, name));
    let expected: Vec<_> = lines.clone().map(|words| printed(&words)).collect();
    let lent = OnDisk::lend(path);
    for (words, (text, error)) in lines.zip(expected) {
        let found = told(words.clone());
        assert_eq!(found.1, error, "{words:?}");
        // of what is cut off by an error, a page gets whole lines
        if error.is_empty() {
            assert!(found.0 == text, "{words:?}: {} bytes, and not {}", found.0.len(), text.len());
        } else {
            assert!(text.starts_with(&found.0), "{words:?}");
        }
    }
    let read = *lent.read.lock().unwrap();
    (read, lent.size)
}

#[test]
fn fixtures_are_told_alike() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let mut count = 0;
    for folder in ["cuda", "fatbin", "x86_64"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.is_file() && !path.ends_with("thin.a"));
        for path in paths {
            let (read, size) = compare(&path, COMMANDS);
            assert_eq!(read, size, "{}", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// This program: most of it is code and debug information.
#[test]
fn large_files_are_read_in_parts() {
    let path = std::env::current_exe().unwrap();
    let commands: &[&[&str]] = &[
        &["show", "--json-lines", "--header", "--segments", "--sections", "--dynamic", "--notes"],
        &["show", "--svg"],
        &["fatbin", "list", "--json-lines"],
    ];
    let (read, size) = compare(&path, commands);
    assert!(size > 16 << 20, "{size}");
    assert!(read < size / 2, "{read} of {size}");
}

#[test]
fn what_is_no_file_is_an_error() {
    let error = told(line(&["show"], "absent")).1;
    assert!(error.contains("absent"), "{error}");
    assert!(told(vec![String::from("extract")]).1.contains("extract"));
    assert!(told(line(&["fatbin", "extract"], "x")).1.contains("extract"));
}
