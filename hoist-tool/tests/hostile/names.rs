//! Names that would move the cursor, turn the direction of text or forge lines: whatever is printed of a file, they stay names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use tempfile::TempDir;

use crate::fixtures;

/// What is put in place of letters, whole or in part.
const HARM: &str = "\nFORGED\u{202e}\x1b[2J\r\u{2028}\u{9b}1m\x07";

/// The bytes with the harm in names: runs of letters that end in NUL, of `least` bytes or more, keep their first `kept` ones.
fn harmed(bytes: &[u8], least: usize, kept: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let is_letter = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let mut start = 0;
    for at in 0..bytes.len() {
        if is_letter(bytes[at]) {
            continue;
        }
        let size = at - start;
        if bytes[at] == 0 && size >= least {
            let room = &mut bytes[start + kept..at];
            let harm = HARM.as_bytes();
            let fits =
                (0..=harm.len().min(room.len())).rev().find(|&end| HARM.is_char_boundary(end));
            let fits = fits.unwrap_or_default();
            room[..fits].copy_from_slice(&harm[..fits]);
        }
        start = at + 1;
    }
    bytes
}

/// Every command that reads a file, for people and for programs.
const COMMANDS: &[&[&str]] = &[
    &["show", "FILE"],
    &["show", "--json", "FILE"],
    &["layout", "FILE", "--whole-archive"],
    &["layout", "--json", "FILE", "--whole-archive"],
    &["link", "FILE", "--whole-archive", "--base", "0x400000", "-o", "/dev/null"],
    &["link", "FILE", "--base", "0x400000", "-o", "/dev/null", "--map", "/dev/stdout"],
    &["disasm", "FILE"],
    &["run", "FILE", "absent"],
    &["fatbin", "list", "FILE"],
    &["fatbin", "list", "--json", "FILE"],
    &["fatbin", "select", "--sm", "90", "--cuda", "12.8", "FILE"],
    &["fatbin", "select", "--sm", "90", "--cuda", "12.8", "--json", "FILE"],
    &["fatbin", "scan", "FILE"],
    &["fatbin", "scan", "--json", "FILE"],
    &["fatbin", "extract", "FILE", "-o", "OUT"],
    &["fatbin", "extract", "--json", "FILE", "-o", "OUT"],
    &["fatbin", "offload", "list", "FILE"],
    &["fatbin", "offload", "list", "--json", "FILE"],
    &["fatbin", "offload", "extract", "FILE", "-o", "OUT"],
    &["fatbin", "recompress", "FILE", "--with", "zstd", "-o", "OUT/new"],
    &["fatbin", "prune", "FILE", "--keep", "sm_90", "-o", "OUT/new"],
    &["cubin", "show", "FILE"],
    &["cubin", "show", "--json", "FILE"],
    &["cubin", "attributes", "FILE"],
    &["cubin", "attributes", "--json", "FILE"],
    &["cubin", "relocs", "FILE"],
    &["cubin", "relocs", "--json", "FILE"],
    &["cubin", "link", "FILE", "-o", "OUT/new"],
    &["cubin", "link", "--json", "FILE", "-o", "OUT/new"],
];

/// Whether a terminal would do something else than to show the text.
fn is_harmful(text: &[u8]) -> Option<String> {
    let text = match str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => return Some(error.to_string()),
    };
    if let Some(found) = text.chars().find(|&one| one != '\n' && elf_core::is_hidden(one)) {
        return Some(format!("{found:?}"));
    }
    let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
    forged.map(|line| format!("a line of its own: {line}"))
}

/// Runs all commands on a file; the lines that they print, and those commands that print something harmful.
fn run(path: &Path, out: &Path) -> (usize, Vec<String>) {
    let (mut lines, mut wrong) = (0, Vec::new());
    for words in COMMANDS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        for word in *words {
            match *word {
                "FILE" => command.arg(path),
                word => command.arg(word.replace("OUT", &out.to_string_lossy())),
            };
        }
        let output = command.env("RAYON_NUM_THREADS", "1").stdin(Stdio::null()).output().unwrap();
        let code = output.status.code();
        for (name, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            lines += text.iter().filter(|&&byte| byte == b'\n').count();
            wrong.extend(is_harmful(text).map(|what| format!("{words:?} {name}: {what}")));
        }
        if !matches!(code, Some(0 | 1)) {
            wrong.push(format!("{words:?}: {}", output.status));
        }
    }
    (lines, wrong)
}

/// Files of every kind that commands read.
fn samples() -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![fixtures::folder()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (inner, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        folders.extend(inner);
        files.sort();
        let is_binary = |path: &&PathBuf| {
            let bytes = fs::read(path).unwrap();
            bytes.len() < 100_000 && bytes.contains(&0)
        };
        // of each kind of name one
        let mut kinds = std::collections::BTreeMap::new();
        for path in files.iter().filter(is_binary) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let stem: String = name.chars().take_while(|c| c.is_alphabetic()).take(4).collect();
            let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            kinds.entry((stem, end)).or_insert_with(|| path.clone());
        }
        all.extend(kinds.into_values());
    }
    assert!(all.len() > 40, "{} files", all.len());
    all
}

#[test]
fn no_name_reaches_the_terminal_raw() {
    let samples = samples();
    let root = TempDir::new().unwrap();
    let (next, lines, wrong) = (Mutex::new(0), Mutex::new(0), Mutex::new(Vec::new()));
    let work = |thread: usize| {
        let out = root.path().join(format!("out-{thread}"));
        fs::create_dir(&out).unwrap();
        // a name of a file, too
        let path = root.path().join(format!("{thread}{HARM}"));
        loop {
            let number = {
                let mut next = next.lock().unwrap();
                *next += 1;
                *next - 1
            };
            let Some(sample) = samples.get(number) else { return };
            let bytes = fs::read(sample).unwrap();
            // names whole, and names that keep what says what they are
            let (least, kept) = if number % 2 == 0 { (4, 0) } else { (12, 8) };
            fs::write(&path, harmed(&bytes, least, kept)).unwrap();
            let (count, found) = run(&path, &out);
            *lines.lock().unwrap() += count;
            let label = |what: String| format!("{}: {what}", sample.display());
            wrong.lock().unwrap().extend(found.into_iter().map(label));
        }
    };
    thread::scope(|scope| {
        for thread in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(move || work(thread));
        }
    });
    let (lines, wrong) = (lines.into_inner().unwrap(), wrong.into_inner().unwrap());
    println!("{} files, {} commands, {lines} lines", samples.len(), COMMANDS.len());
    assert!(wrong.is_empty(), "{} are harmful:\n{}", wrong.len(), wrong.join("\n"));
    assert!(lines > 5000, "{lines} lines: too little is looked at");
}

#[test]
fn folders_with_harmful_names_are_scanned() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join(format!("x{HARM}"));
    fs::create_dir(&folder).unwrap();
    let fatbin = fixtures::folder().join("cuda/gpu-13.0-sm_90.fatbin");
    fs::copy(&fatbin, folder.join("good\nFORGED")).unwrap();
    let mut bytes = fs::read(&fatbin).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(folder.join("damaged\nFORGED"), bytes).unwrap();
    let hidden = folder.join("closed\nFORGED");
    fs::create_dir(&hidden).unwrap();
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    let output = command.args(["fatbin", "scan"]).arg(root.path()).output().unwrap();
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(is_harmful(&output.stdout), None);
    assert_eq!(is_harmful(&output.stderr), None);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr.iter().filter(|&&byte| byte == b'\n').count(), 1);
}
