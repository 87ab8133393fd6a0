//! What a page is told is what the command line prints: also of files that are lent in parts.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
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
    &["layout", "--svg"],
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

/// A zip file whose members are stored, on disk: its path.
fn stored_zip(name: &str, members: &[(&str, &[u8])]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let name_size = u16::try_from(name.len()).unwrap().to_le_bytes();
        let at = u32::try_from(zip.len()).unwrap().to_le_bytes();
        // version, flags, method, time, checksum, which nobody looks at
        let common = [&[20, 0][..], &[0; 12], &size, &size, &name_size, &[0; 2]].concat();
        zip.extend([b"PK\x03\x04", &*common, name.as_bytes(), bytes].concat());
        let tail = [&[0; 10][..], &at, name.as_bytes()].concat();
        directory.extend([b"PK\x01\x02\x14\0", &*common, &*tail].concat());
    }
    let count = u16::try_from(members.len()).unwrap().to_le_bytes();
    let [size, at] =
        [directory.len(), zip.len()].map(|one| u32::try_from(one).unwrap().to_le_bytes());
    zip.extend(directory);
    zip.extend([b"PK\x05\x06", &[0; 4][..], &count, &count, &size, &at, &[0; 2]].concat());
    fs::write(&path, zip).unwrap();
    path
}

/// The library with 20 MB of code more, and its section headers behind that.
fn with_code(mut library: Vec<u8>) -> Vec<u8> {
    let word = |library: &[u8], at: usize| {
        let bytes = library.get(at..at + 8).unwrap();
        usize::try_from(u64::from_le_bytes(bytes.try_into().unwrap())).unwrap()
    };
    let half = |library: &[u8], at: usize| {
        let bytes = library.get(at..at + 2).unwrap();
        usize::from(u16::from_le_bytes(bytes.try_into().unwrap()))
    };
    let (headers, count) = (word(&library, 0x28), half(&library, 0x3c));
    let names = word(&library, headers + half(&library, 0x3e) * 64 + 0x18);
    let strings = library.get(names..).unwrap();
    let name = strings.windows(6).position(|name| name == b".text\0").unwrap();
    let table = library.get(headers..headers + count * 64).unwrap().to_vec();
    let (code, size) = (library.len(), 20_usize << 20);
    library.resize(code + size, 0x90);
    let at = library.len() as u64;
    library.extend(table);
    // SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR
    let words = [1 << 32 | name, 6, 0, code, size, 0, 0, 0];
    library.extend(words.into_iter().flat_map(|word| (word as u64).to_le_bytes()));
    library.get_mut(0x28..0x30).unwrap().copy_from_slice(&at.to_le_bytes());
    let count = u16::try_from(count + 1).unwrap().to_le_bytes();
    library.get_mut(0x3c..0x3e).unwrap().copy_from_slice(&count);
    library
}

#[test]
fn members_of_large_archives_are_read_in_parts() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let library = fs::read(fixtures.join("fatbin/libt.so")).unwrap();
    let program = with_code(library.clone());
    let inner = stored_zip("inner.zip", &[("b/libt.so", &library), ("program", &program)]);
    let members: &[(&str, &[u8])] =
        &[("a/libt.so", &library), ("words", b"none"), ("inner.zip", &fs::read(&inner).unwrap())];
    let path = stored_zip("large.whl", members);
    let (read, size) = compare(&path, &COMMANDS[5..9]);
    assert!(size > 16 << 20, "{size}");
    // a few megabytes by each command: the directory, what members begin with, and of the program all but its code
    assert!(read < size, "{read} of {size}");
    let (text, error) = told(line(COMMANDS[7], path.to_str().unwrap()));
    assert!(error.is_empty() && text.contains("inner.zip:b/libt.so"), "{error}");
    // damaged, and told alike
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut put = |at: u64, value: u8| {
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[value]).unwrap();
    };
    let bytes = fs::read(&path).unwrap();
    for (at, value) in [(0, 1), (8, 99), (18, 1), (22, 0xff), (size - 6, 1), (size - 12, 1)] {
        put(at, value);
        compare(&path, &COMMANDS[5..6]);
        put(at, bytes[usize::try_from(at).unwrap()]);
    }
    for path in [inner, path] {
        fs::remove_file(path).unwrap();
    }
}

/// What a report says of kernels and images, in words: the numbers of names are its own.
fn rows(text: &str) -> (Vec<serde_json::Value>, Vec<Vec<serde_json::Value>>) {
    let mut lists = std::collections::BTreeMap::<String, Vec<serde_json::Value>>::new();
    for line in text.lines() {
        let line: serde_json::Map<_, _> = serde_json::from_str(line).unwrap();
        line.into_iter().for_each(|(key, value)| lists.entry(key).or_default().push(value));
    }
    let kinds = ["file", "arch", "name", "family", "curve"];
    let plural = ["files", "archs", "names", "families", "curves"];
    let named = |row: &serde_json::Value| {
        let mut row = row.as_object().unwrap().clone();
        for (key, list) in kinds.into_iter().zip(plural) {
            let number = row.get(key).and_then(serde_json::Value::as_u64);
            let number = number.and_then(|number| usize::try_from(number).ok());
            let word = number.and_then(|number| lists.get(list)?.get(number).cloned());
            row.extend(word.map(|word| (key.to_owned(), word)));
        }
        serde_json::Value::from(row)
    };
    let all = |list: &str| lists.get(list).into_iter().flatten().map(named).collect::<Vec<_>>();
    let file = |row: &serde_json::Value| row["file"].as_str().unwrap().to_owned();
    let mut kernels: Vec<Vec<serde_json::Value>> = Vec::new();
    for name in lists.get("files").into_iter().flatten() {
        kernels.push(all("kernels").into_iter().filter(|row| *file(row) == *name).collect());
    }
    (all("images"), kernels)
}

#[test]
fn shares_are_the_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let mut count = 0;
    for paths in [&["fatbin"][..], &["cuda"], &["fatbin/libt.so"], &["cuda", "fatbin/zstd.fatbin"]]
    {
        let paths: Vec<_> =
            paths.iter().map(|path| root.join(path).to_str().unwrap().to_owned()).collect();
        let words = |share: &str| {
            let command =
                ["fatbin", "report", "--json-lines", "--output", "-", "--share", share, "--"];
            command.iter().map(|word| (*word).to_owned()).chain(paths.clone()).collect::<Vec<_>>()
        };
        let (text, _) = printed(&words("1/1"));
        let (images, kernels) = rows(&text);
        for of in 2..5 {
            let shares: Vec<_> = (1..=of)
                .map(|number| rows(&printed(&words(&format!("{number}/{of}"))).0))
                .collect();
            let sum = |images: &[serde_json::Value]| {
                images.iter().map(|one| one["stored"].as_u64().unwrap()).sum::<u64>()
            };
            assert_eq!(shares.iter().map(|(images, _)| sum(images)).sum::<u64>(), sum(&images));
            for (file, kernels) in kernels.iter().enumerate() {
                let found: Vec<_> = shares.iter().flat_map(|(_, all)| all[file].clone()).collect();
                assert_eq!(found, *kernels, "{paths:?} {of}");
                count += found.len();
            }
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn what_is_no_file_is_an_error() {
    let error = told(line(&["show"], "absent")).1;
    assert!(error.contains("absent"), "{error}");
    assert!(told(vec![String::from("extract")]).1.contains("extract"));
    assert!(told(line(&["fatbin", "extract"], "x")).1.contains("extract"));
}
