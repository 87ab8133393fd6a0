//! `hoist fatbin slim` where things are not as usual: lists of Python's packages, files with several names, a list that was not written to
//! its end, files that are gone.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::Command;

use super::image::digest;
use super::{hoist, libraries, printed, python, refused};

const SLIM: [&str; 8] =
    ["fatbin", "slim", "site", "--backup", "kept", "--keep", "sm_80,ptx", "--preserve-dates"];
const UNDO: [&str; 4] = ["fatbin", "slim", "--undo", "kept"];

/// What checks a package as those do who look at `RECORD`: every file has the digest and size that stands there.
const CHECK: &str = r#"
import importlib.metadata as metadata, base64, hashlib, sys
files = metadata.Distribution.at(sys.argv[1] + "/thing-1.0.dist-info").files
hashed = 0
for file in files:
    if file.hash:
        data = file.locate().read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, data).digest()).rstrip(b"=").decode()
        assert (file.hash.value, file.size) == (digest, len(data)), file
        hashed += 1
print(hashed)
"#;

/// Whether `RECORD` of the package in `site` is right.
pub(super) fn is_right(at: &Path) -> bool {
    let check = Command::new("python3").args(["-c", CHECK, "site"]).current_dir(at).output();
    let output = check.expect("Python runs");
    output.status.success() && output.stdout == b"6\n"
}

/// A folder in which the wheel of the other tests lies unpacked in `site`, as it is when it is installed.
pub(super) fn installed(test: &str) -> Option<tempfile::TempDir> {
    let folder = libraries(test)?;
    let at = folder.path();
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {test}: needs python3");
        return None;
    }
    let words = ["-m", "zipfile", "-e", "in.whl", "site"];
    let status = Command::new("python3").args(words).current_dir(at).status();
    assert!(status.expect("Python runs").success() && is_right(at));
    Some(folder)
}

fn read(at: &Path, name: &str) -> Vec<u8> {
    fs::read(at.join(name)).expect("a file")
}

const LIBRARIES: [&str; 2] = ["site/thing/lib/lib.so", "site/thing/lib/it's, \"stored\".so"];
pub(super) const RECORD: &str = "site/thing-1.0.dist-info/RECORD";

#[test]
fn the_record_of_a_package_says_what_files_are() {
    let Some(folder) = installed("the_record_of_a_package_says_what_files_are") else { return };
    let at = folder.path();
    let old = read(at, RECORD);
    let libraries = LIBRARIES.map(|name| read(at, name));
    let said = printed(at, &SLIM);
    assert!(said.contains("RECORD: digests and sizes of 2 files are written anew"), "{said}");
    assert!(is_right(at) && read(at, RECORD) != old);
    // once more, by another mode, from a folder inside the package: the list is found above it
    let mut words = SLIM;
    words[2] = "site/thing/lib";
    let said = printed(at, &[&words[..], &["--mode", "size"]].concat());
    assert!(is_right(at) && said.contains("2 files changed"), "{said}");
    // a process that was killed after the first file
    let new = read(at, RECORD);
    fs::write(at.join(RECORD), &old).expect("a file");
    assert!(!is_right(at));
    let said = printed(at, &SLIM);
    assert!(is_right(at) && read(at, RECORD) == new && said.contains("0 files changed"), "{said}");
    printed(at, &UNDO);
    assert!(is_right(at) && read(at, RECORD) == old);
    assert!(libraries == LIBRARIES.map(|name| read(at, name)));
    // the same, killed before the list was written
    fs::write(at.join(RECORD), &new).expect("a file");
    printed(at, &UNDO);
    assert!(is_right(at) && read(at, RECORD) == old);
    // what somebody else wrote there stays, as does a digest that is not ours; without a list nothing is missing
    printed(at, &SLIM);
    let more = [&read(at, RECORD)[..], b"thing/more.txt,,\n"].concat();
    fs::write(at.join(RECORD), &more).expect("a file");
    printed(at, &UNDO);
    assert!(read(at, RECORD) == [&old[..], b"thing/more.txt,,\n"].concat());
    fs::remove_file(at.join(RECORD)).expect("a file");
    assert!(printed(at, &SLIM).contains("2 files changed"));
    assert!(printed(at, &UNDO).contains("2 files changed"));
    // one that is no text is told, and keeps nothing from its work
    fs::write(at.join(RECORD), b"\xff\xfe").expect("a file");
    let said = printed(at, &SLIM);
    assert!(said.contains("RECORD: ") && said.contains("2 files changed"), "{said}");
}

#[test]
fn the_list_of_a_conda_package_says_what_files_are() {
    const LIST: &str = "site/conda-meta/thing-1.0-h1_0.json";
    let Some(folder) = libraries("the_list_of_a_conda_package_says_what_files_are") else { return };
    let at = folder.path();
    let library = read(at, "lib.so");
    for folder in ["site/lib/deep", "site/conda-meta"] {
        fs::create_dir_all(at.join(folder)).expect("a folder");
    }
    for name in ["site/lib/a.so", "site/lib/deep/b.so"] {
        fs::write(at.join(name), &library).expect("a file");
    }
    for (name, to) in [("site/lib/c.so", "deep/b.so"), ("site/lib/d.so", "a.so")] {
        symlink(to, at.join(name)).expect("a link");
    }
    // as conda writes it: what a prefix was written into has a digest of its own, and of a link it is where that leads; or of the link itself
    let list = |a: &[u8], b: &[u8]| {
        let old = digest(&library);
        format!(
            r#"{{
  "build": "h1_0", "files": ["lib/a.so", "lib/deep/b.so", "lib/c.so"],
  "paths_data": {{ "paths": [
    {{"_path": "lib/a.so", "path_type": "hardlink", "sha256": "{old}", "sha256_in_prefix": "{}", "size_in_bytes": {}}},
    {{"_path": "lib/deep/b.so", "path_type": "hardlink", "sha256": "{}", "size_in_bytes": {}}},
    {{"_path": "lib/c.so", "path_type": "softlink", "sha256": "{}", "size_in_bytes": {}}},
    {{"_path": "lib/d.so", "path_type": "softlink", "sha256": "{old}", "sha256_in_prefix": "{}", "size_in_bytes": {}}}
  ], "paths_version": 1 }}, "url": "https://example.com/caf\u00e9.conda"
}}"#,
            digest(a),
            a.len(),
            digest(b),
            b.len(),
            digest(b),
            b.len(),
            digest(b"a.so"),
            library.len()
        )
    };
    let old = list(&library, &library);
    fs::write(at.join(LIST), &old).expect("a file");
    fs::write(at.join("site/conda-meta/history"), "==> now <==\n").expect("a file");
    let now = || list(&read(at, "site/lib/a.so"), &read(at, "site/lib/deep/b.so")).into_bytes();
    let said = printed(at, &SLIM);
    assert!(said.contains("0.json: digests and sizes of 3 files are written anew"), "{said}");
    assert!(read(at, LIST) == now() && read(at, "site/lib/a.so").len() < library.len());
    // from a folder inside, by another mode; and what a process left that was killed
    let mut words = SLIM;
    words[2] = "site/lib/deep";
    printed(at, &[&words[..], &["--mode", "size"]].concat());
    assert!(read(at, LIST) == now());
    let new = read(at, LIST);
    fs::write(at.join(LIST), &old).expect("a file");
    printed(at, &words);
    assert!(read(at, LIST) == new);
    printed(at, &UNDO);
    assert!(read(at, LIST) == old.as_bytes() && read(at, "site/lib/a.so") == library);
    // one that is no list is told, and keeps nothing from its work
    fs::write(at.join(LIST), "{").expect("a file");
    let said = printed(at, &SLIM);
    assert!(said.contains("0.json: EOF") && said.contains("2 files changed"), "{said}");
}

#[test]
fn a_record_that_cannot_be_written_is_told() {
    const NAME: &str = "a_record_that_cannot_be_written_is_told";
    const SCRIPT: &str = r#"
mount --bind site/thing-1.0.dist-info site/thing-1.0.dist-info
mount -o remount,bind,ro site/thing-1.0.dist-info
"$hoist" fatbin slim site --backup kept --keep sm_80,ptx
umount site/thing-1.0.dist-info
"$hoist" fatbin slim site --backup kept --keep sm_80,ptx
"#;
    let Some(folder) = installed(NAME) else { return };
    let at = folder.path();
    let shell = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["-rm", "/bin/sh", "-e", "-c", script]).current_dir(at);
        shell.env("hoist", env!("CARGO_BIN_EXE_hoist")).output()
    };
    if !shell("mount --bind site site").is_ok_and(|output| output.status.success()) {
        println!("skipped: {NAME}: needs unshare and mount");
        return;
    }
    let output = shell(SCRIPT).expect("a shell");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    assert!(output.status.success(), "{said}");
    assert!(said.contains("RECORD: cannot be written anew"), "{said}");
    assert!(said.contains("RECORD: digests and sizes of 2 files are written anew"), "{said}");
    assert!(is_right(at));
}

#[test]
fn names_of_one_file_stay_names_of_one_file() {
    let Some(folder) = libraries("names_of_one_file_stay_names_of_one_file") else { return };
    let at = folder.path();
    fs::create_dir(at.join("site")).expect("a folder");
    fs::copy(at.join("lib.so"), at.join("site/a.so")).expect("a copy");
    for name in ["site/b.so", "site/c.so", "outside.so"] {
        fs::hard_link(at.join("site/a.so"), at.join(name)).expect("a link");
    }
    let number = |name: &str| fs::metadata(at.join(name)).expect("a file").ino();
    let numbers = || ["site/a.so", "site/b.so", "site/c.so", "outside.so"].map(number);
    let old = read(at, "lib.so");
    let output = hoist(at, &SLIM);
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success() && error.contains("1 more names (hard links)"), "{error}");
    let [a, b, c, outside] = numbers();
    assert!(a == b && b == c && c != outside);
    assert!(read(at, "site/c.so").len() < old.len() && read(at, "outside.so") == old);
    // one that was undone already, and is a file of its own
    fs::remove_file(at.join("site/b.so")).expect("a file");
    fs::write(at.join("site/b.so"), &old).expect("a file");
    let said = printed(at, &UNDO);
    assert!(said.ends_with("2 files changed\n"), "{said}");
    let [a, b, c, _] = numbers();
    assert!(a == c && a != b);
    assert!(["site/a.so", "site/b.so", "site/c.so"].iter().all(|name| read(at, name) == old));
    assert_eq!(fs::read_dir(at.join("site")).expect("a folder").count(), 3);
}

#[test]
fn what_cannot_come_back_keeps_nothing_else_from_it() {
    let Some(folder) = libraries("what_cannot_come_back_keeps_nothing_else_from_it") else {
        return;
    };
    let at = folder.path();
    fs::create_dir(at.join("site")).expect("a folder");
    let names = ["site/a.so", "site/b.so", "site/c.so", "site/d.so"];
    let old = read(at, "lib.so");
    for name in names {
        fs::write(at.join(name), &old).expect("a file");
    }
    let list = || read(at, "kept/slimmed.jsonl");
    let restored = |names: &[&str]| names.iter().all(|name| read(at, name) == old);
    // every cut of the last line: the change that it is about was not made, the others are undone
    printed(at, &SLIM);
    let whole = list();
    let new = read(at, "site/a.so");
    let start =
        whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').expect("lines") + 1;
    for end in [start, start + 1, start + 40, whole.len() - 2, whole.len() - 1] {
        fs::write(at.join("kept/slimmed.jsonl"), &whole[..end]).expect("a file");
        fs::write(at.join("site/d.so"), &old).expect("a file");
        let said = printed(at, &UNDO);
        assert_eq!(
            said.contains("line 4 was not written to its end"),
            end > start && end < whole.len() - 1,
            "{said}"
        );
        assert!(said.contains("3 files changed") && restored(&names), "{end}: {said}");
        // and the next run writes behind it, on a line of its own
        assert!(printed(at, &SLIM).contains("4 files changed"));
        printed(at, &UNDO);
        assert!(restored(&names));
        for name in &names[..3] {
            fs::write(at.join(name), &new).expect("a file");
        }
    }
    // zeros, which a system leaves that stopped; then a line that is damaged
    fs::write(at.join("kept/slimmed.jsonl"), [&whole[..start], &[0; 300]].concat())
        .expect("a file");
    assert!(printed(at, &UNDO).contains("3 files changed"));
    let mut damaged = whole.clone();
    damaged[start + 2] = b'?';
    fs::write(at.join("kept/slimmed.jsonl"), damaged).expect("a file");
    fs::write(at.join("site/a.so"), &new).expect("a file");
    assert!(refused(at, &UNDO).contains("slimmed.jsonl: line 4"));
    assert!(restored(&names));
    // a file that is gone, one that is another
    fs::write(at.join("kept/slimmed.jsonl"), &whole).expect("a file");
    fs::remove_file(at.join("site/b.so")).expect("a file");
    fs::write(at.join("site/c.so"), b"another").expect("a file");
    for name in ["site/a.so", "site/d.so"] {
        fs::write(at.join(name), &new).expect("a file");
    }
    let output = hoist(at, &[&UNDO[..], &["--json"]].concat());
    let (said, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(error.contains("b.so: is not there any more (and 1 more errors)"), "{error}");
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["files"].as_array().map(Vec::len), Some(2), "{said}");
    assert!(
        said["failed"][0]["path"].as_str().is_some_and(|path| path.ends_with("site/b.so")),
        "{said}"
    );
    assert!(said["failed"][1]["error"].to_string().contains("was changed since"), "{said}");
    assert!(restored(&["site/a.so", "site/d.so"]) && read(at, "site/c.so") == b"another");
    // an original that is damaged
    fs::write(at.join("site/a.so"), &new).expect("a file");
    let kept = said["files"][0]["original"].as_str().expect("a name");
    fs::write(at.join("kept").join(kept), b"damaged").expect("a file");
    assert!(
        refused(at, &UNDO).contains("is not what was kept there") && read(at, "site/a.so") == new
    );
}

#[test]
fn two_changes_are_undone_to_the_first() {
    let Some(folder) = libraries("two_changes_are_undone_to_the_first") else { return };
    let at = folder.path();
    fs::create_dir(at.join("site")).expect("a folder");
    fs::copy(at.join("lib.so"), at.join("site/a.so")).expect("a copy");
    let mut states = vec![read(at, "site/a.so")];
    for more in [&["--mode", "speed"][..], &["--mode", "size"]] {
        printed(at, &[&SLIM[..], more].concat());
        states.push(read(at, "site/a.so"));
    }
    assert!(states[0] != states[1] && states[1] != states[2]);
    // from wherever an undoing was interrupted
    for state in &states {
        fs::write(at.join("site/a.so"), state).expect("a file");
        let said = printed(at, &UNDO);
        assert!(read(at, "site/a.so") == states[0], "{said}");
    }
}

#[test]
fn a_named_file_that_is_no_library_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::write(at.join("thing.whl"), b"PK\x03\x04").expect("a file");
    fs::write(at.join("text"), b"text").expect("a file");
    let words = ["fatbin", "slim", "thing.whl", "text", ".", "--keep", "sm_80", "--backup", "kept"];
    let said = printed(at, &words);
    let other =
        "thing.whl: is nothing that holds device code itself, and stays: `hoist wheel slim`";
    assert!(said.contains(other), "{said}");
    assert!(said.contains("text: is nothing that holds device code itself, and stays\n"), "{said}");
    assert_eq!(said.matches("note: ").count(), 2, "{said}");
}
