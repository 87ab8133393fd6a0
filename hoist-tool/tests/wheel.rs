//! `hoist wheel slim` and `hoist fatbin slim`, run as a user does.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

#[path = "wheel/container.rs"]
mod container;
#[path = "wheel/copied.rs"]
mod copied;
#[path = "wheel/disks.rs"]
mod disks;
#[path = "wheel/image.rs"]
mod image;
#[path = "wheel/installed.rs"]
mod installed;
#[path = "wheel/interrupted.rs"]
mod interrupted;
#[path = "wheel/layout.rs"]
mod layout;
#[path = "wheel/owned.rs"]
mod owned;
#[path = "wheel/repaired.rs"]
mod repaired;
#[path = "wheel/shared.rs"]
mod shared;
#[path = "wheel/unusual.rs"]
mod unusual;
#[path = "wheel/zip64.rs"]
mod zip64;

/// `hoist` with these words, in a folder.
fn hoist(at: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(words).current_dir(at).stdin(Stdio::null()).output().expect("hoist runs")
}

fn printed(at: &Path, words: &[&str]) -> String {
    let output = hoist(at, words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{words:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(at: &Path, words: &[&str]) -> String {
    let output = hoist(at, words);
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// Makes a wheel with two libraries, one of which is stored, and other files; and compares two.
const PYTHON: &str = r#"
import base64, csv, hashlib, io, struct, sys, zipfile
def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
def make(name):
    library = open("lib.so", "rb").read()
    info = "thing-1.0.dist-info/"
    files = [
        ("thing/__init__.py", b"import this\n" * 50, zipfile.ZIP_DEFLATED),
        ("thing/lib/lib.so", library, zipfile.ZIP_DEFLATED),
        ("thing/lib/it's, \"stored\".so", library, zipfile.ZIP_STORED),
        ("thing/lib/none.so", open("plain.so", "rb").read(), zipfile.ZIP_DEFLATED),
        (info + "METADATA", b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n", zipfile.ZIP_DEFLATED),
        (info + "WHEEL", b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n", zipfile.ZIP_DEFLATED),
    ]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\r\n")
    for path, data, _ in files:
        rows.writerow([path, digest(data), len(data)])
    rows.writerow([info + "RECORD", "", ""])
    files.append((info + "RECORD", text.getvalue().encode(), zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(name, "w") as wheel:
        wheel.comment = b"made by a test"
        for number, (path, data, method) in enumerate(files):
            entry = zipfile.ZipInfo(path, (2001, 2, 3, 4, 5, 2 * number))
            entry.external_attr = (0o100750 + number) << 16
            entry.compress_type = method
            entry.comment = b"of " + path.encode()
            entry.extra = struct.pack("<HH", 0xcafe, 3) + b"abc"
            if path.endswith("__init__.py"):
                with wheel.open(entry, "w") as out:
                    out.write(data)
            else:
                wheel.writestr(entry, data)
def raw(name, entry):
    with open(name, "rb") as file:
        file.seek(entry.header_offset + 26)
        names, extra = struct.unpack("<HH", file.read(4))
        file.seek(entry.header_offset)
        return file.read(30 + names + extra + entry.compress_size)
def compare(old, new, changed):
    with zipfile.ZipFile(old) as one, zipfile.ZipFile(new) as other:
        assert other.testzip() is None
        assert one.comment == other.comment
        assert one.namelist() == other.namelist()
        found = []
        for before, after in zip(one.infolist(), other.infolist()):
            for key in "filename date_time compress_type comment create_system external_attr internal_attr".split():
                assert getattr(before, key) == getattr(after, key), (before, key)
            assert b"\xfe\xca\x03\x00abc" in after.extra
            if raw(old, before) != raw(new, after):
                found.append(before.filename)
        assert sorted(found) == sorted(changed), found
        for path, value, size in csv.reader(io.StringIO(other.read("thing-1.0.dist-info/RECORD").decode())):
            if value:
                data = other.read(path)
                assert digest(data) == value and len(data) == int(size), path
        other.extract("thing/lib/lib.so", "out")
if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    compare(sys.argv[2], sys.argv[3], sys.argv[4:])
"#;

/// A folder with `lib.so`, which has two regions, and `plain.so`, which has none; nothing without a compiler.
fn libraries(test: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for name in ["k75.cubin", "k80.cubin", "k100f.cubin", "k.ptx"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/fatbin").join(name);
        fs::copy(from, at.join(name)).expect("a fixture");
    }
    for (object, wrapper, images) in [
        ("one.o", "one", &["k75.cubin", "k80.cubin", "k.ptx"][..]),
        ("two.o", "two", &["k75.cubin", "k75.cubin", "k75.cubin", "k75.cubin", "k80.cubin"]),
    ] {
        let words = ["fatbin", "pack", "-o", object, "--wrapper", wrapper];
        printed(at, &[&words[..], images].concat());
    }
    fs::write(at.join("plain.c"), "int plain(void) { return 1; }\n").expect("a file");
    fs::write(at.join("lib.c"), "extern char one, two; char *all[] = {&one, &two};\n")
        .expect("a file");
    for (words, out) in [(&["lib.c", "one.o", "two.o"][..], "lib.so"), (&["plain.c"], "plain.so")] {
        let mut cc = Command::new("cc");
        cc.args(["-fPIC", "-shared", "-o", out]).args(words).current_dir(at);
        if !cc.status().is_ok_and(|status| status.success()) {
            println!("skipped: {test}: needs cc");
            return None;
        }
    }
    Some(folder)
}

/// Runs the script; false without Python.
fn python(at: &Path, words: &[&str]) -> bool {
    let output = Command::new("python3").args(["-c", PYTHON]).args(words).current_dir(at).output();
    let Ok(output) = output else { return false };
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

/// Architectures of the entries of a file.
fn archs(at: &Path, name: &str) -> Vec<String> {
    let listed = printed(at, &["fatbin", "list", "--json", name]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let regions = listed["files"][0]["regions"].as_array().expect("regions").clone();
    let entries = regions.iter().flat_map(|region| region["entries"].as_array().expect("entries"));
    entries.map(|entry| format!("{} {}", entry["arch"], entry["compression"])).collect()
}

#[test]
fn of_a_wheel_only_device_code_changes() {
    const NAME: &str = "of_a_wheel_only_device_code_changes";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {NAME}: needs python3");
        return;
    }
    fs::set_permissions(at.join("in.whl"), fs::Permissions::from_mode(0o640)).expect("permissions");
    let before = fs::read(at.join("in.whl")).expect("a wheel");
    let changed =
        ["thing/lib/lib.so", "thing/lib/it's, \"stored\".so", "thing-1.0.dist-info/RECORD"];
    for (words, left) in [
        (&["--keep", "sm_80,ptx"][..], 3),
        (&["--mode", "speed"], 8),
        (&["--mode", "balance", "--keep", "sm_80"], 2),
        (&["--mode", "speed", "--keep", "sm_75"], 5),
    ] {
        let words = [&["wheel", "slim", "in.whl", "-o", "out.whl"], words].concat();
        let said = printed(at, &words);
        assert!(said.contains("out.whl: 2 files changed"), "{said}");
        assert_eq!(said.contains("12.4"), words.contains(&"size") || words.contains(&"balance"));
        assert!(fs::read(at.join("in.whl")).expect("a wheel") == before);
        python(at, &[&["compare", "in.whl", "out.whl"][..], &changed].concat());
        let archs = archs(at, "out/thing/lib/lib.so");
        assert_eq!(archs.len(), left, "{words:?}: {archs:?}");
        let size = |name: &str| fs::metadata(at.join(name)).expect("a file").len();
        assert!(size("out/thing/lib/lib.so") < size("lib.so"), "{words:?}");
        let mode = fs::metadata(at.join("out.whl")).expect("a wheel").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
    // in its own place, and once more: nothing is left to do
    let words =
        ["wheel", "slim", "in.whl", "-o", "in.whl", "--keep", "sm_80,ptx", "--mode", "size"];
    printed(at, &words);
    let once = fs::read(at.join("in.whl")).expect("a wheel");
    assert!(once.len() < before.len());
    assert!(printed(at, &words).contains("nothing of the wheel changes"));
    assert!(fs::read(at.join("in.whl")).expect("a wheel") == once);
    // to standard output, the bytes alone
    fs::write(at.join("in.whl"), &before).expect("a file");
    let output =
        hoist(at, &["wheel", "slim", "in.whl", "-o", "-", "--keep", "sm_80,ptx", "--mode", "size"]);
    assert!(output.status.success() && output.stdout == once);
}

#[test]
fn bad_wheels_and_gaps_are_refused() {
    const NAME: &str = "bad_wheels_and_gaps_are_refused";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {NAME}: needs python3");
        return;
    }
    let slim = |name: &str, words: &[&str]| {
        refused(at, &[&["wheel", "slim", name, "-o", "out.whl"], words].concat())
    };
    assert!(slim("in.whl", &[]).contains("nothing is to be done"));
    // sm_86 runs what is for sm_80 now
    let said = slim("in.whl", &["--keep", "sm_75,sm_86"]);
    assert!(
        said.contains("would have no code for sm_86") && said.contains("--allow-gaps"),
        "{said}"
    );
    let said = slim("in.whl", &["--keep", "sm_90a"]);
    let there =
        "nothing of what is kept is in any file: what is there is for sm_75, sm_80, compute_75";
    assert!(said.contains(there), "{said}");
    let said = slim("in.whl", &["--keep", "sm_90a", "--allow-empty"]);
    assert!(said.contains("would have no code for sm_90a"), "{said}");
    let said = slim("in.whl", &["--keep", "ptx"]);
    assert!(said.contains("thing/lib/lib.so") && said.contains("no code at all"), "{said}");
    let words = ["wheel", "slim", "in.whl", "-o", "out.whl", "--keep", "ptx", "--allow-gaps"];
    printed(at, &words);
    // a word that keeps nothing may be misspelt
    let words = ["wheel", "slim", "in.whl", "-o", "out.whl", "--keep", "sm_80,sm_09,ptx"];
    let said = printed(at, &words);
    assert!(
        said.contains("no file has sm_9, which --keep names") && !said.contains("has ptx"),
        "{said}"
    );
    assert!(said.contains(" % smaller\n"), "{said}");
    fs::remove_file(at.join("out.whl")).expect("a file");
    // every cut, and bytes that are others: an error, or a wheel; never part of one
    let whole = fs::read(at.join("in.whl")).expect("a wheel");
    for end in (0..whole.len()).step_by(whole.len() / 40) {
        fs::write(at.join("cut.whl"), &whole[..end]).expect("a file");
        slim("cut.whl", &["--keep", "sm_80,ptx"]);
    }
    for place in (whole.len() - 900..whole.len()).step_by(31) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        fs::write(at.join("bad.whl"), bytes).expect("a file");
        let words = ["wheel", "slim", "bad.whl", "-o", "out.whl", "--keep", "sm_80,ptx"];
        let status = hoist(at, &words).status;
        assert!(matches!(status.code(), Some(0 | 1)), "{place}: {status}");
        assert_eq!(at.join("out.whl").exists(), status.success());
        let _ = fs::remove_file(at.join("out.whl"));
    }
    fs::write(at.join("no.whl"), b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")
        .expect("a file");
    assert!(slim("no.whl", &["--mode", "size"]).contains("is no wheel"));
}

#[test]
fn a_library_without_what_is_kept_stays() {
    const NAME: &str = "a_library_without_what_is_kept_stays";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    // another library, which has code for one other architecture alone
    printed(at, &["fatbin", "pack", "-o", "small.o", "--wrapper", "one", "k75.cubin"]);
    fs::write(at.join("small.c"), "extern char one; char *all[] = {&one};\n").expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-fPIC", "-shared", "-o", "plain.so", "small.c", "small.o"]).current_dir(at);
    assert!(cc.status().expect("cc runs").success());
    let small = fs::read(at.join("plain.so")).expect("a file");
    let keep = ["--keep", "sm_80"];
    let gone = ["--keep", "sm_80", "--allow-empty", "--allow-gaps"];
    let parse = |text: String| -> serde_json::Value { serde_json::from_str(&text).expect("JSON") };
    // in a folder
    fs::create_dir(at.join("site")).expect("a folder");
    for name in ["lib.so", "plain.so"] {
        fs::copy(at.join(name), at.join("site").join(name)).expect("a copy");
    }
    let words = ["fatbin", "slim", "site", "--backup", "kept", "--json"];
    let said = parse(printed(at, &[&words[..], &keep].concat()));
    assert_eq!(said["files"].as_array().map(Vec::len), Some(1), "{said}");
    assert!(said["left"][0].as_str().is_some_and(|name| name.ends_with("site/plain.so")), "{said}");
    assert!(said["notes"].to_string().contains("plain.so has nothing of what is kept"), "{said}");
    assert!(fs::read(at.join("site/plain.so")).expect("a file") == small);
    assert_eq!(archs(at, "site/lib.so").len(), 2);
    let said = parse(printed(at, &[&words[..], &gone].concat()));
    assert_eq!(
        (&said["files"][0]["size_before"], &said["left"]),
        (&small.len().into(), &serde_json::json!([]))
    );
    assert!(archs(at, "site/plain.so").is_empty());
    // alone
    for words in [
        &["fatbin", "slim", "plain.so", "--backup", "alone"][..],
        &["fatbin", "prune", "plain.so", "-o", "less.so"],
    ] {
        let said = refused(at, &[words, &keep].concat());
        assert!(said.contains("nothing of"), "{said}");
        assert!(fs::read(at.join("plain.so")).expect("a file") == small);
    }
    printed(
        at,
        &["fatbin", "prune", "plain.so", "-o", "less.so", "--keep", "sm_80", "--allow-empty"],
    );
    assert!(archs(at, "less.so").is_empty());
    // in a wheel
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {NAME}: needs python3");
        return;
    }
    let words = ["wheel", "slim", "in.whl", "-o", "out.whl", "--json"];
    let said = parse(printed(at, &[&words[..], &keep].concat()));
    assert_eq!(said["left"], serde_json::json!(["thing/lib/none.so"]), "{said}");
    let changed =
        ["thing/lib/lib.so", "thing/lib/it's, \"stored\".so", "thing-1.0.dist-info/RECORD"];
    python(at, &[&["compare", "in.whl", "out.whl"][..], &changed].concat());
    let said = parse(printed(at, &[&words[..], &gone].concat()));
    assert_eq!(
        (said["files"].as_array().map(Vec::len), &said["left"]),
        (Some(3), &serde_json::json!([]))
    );
}

#[test]
fn what_would_be_larger_stays() {
    const NAME: &str = "what_would_be_larger_stays";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {NAME}: needs python3");
        return;
    }
    let stored = ["thing/lib/it's, \"stored\".so", "thing-1.0.dist-info/RECORD"];
    let size = |name: &str| fs::metadata(at.join(name)).expect("a file").len();
    let mut sizes = BTreeMap::new();
    // the wheel compresses small images across one another, and what Zstandard leaves of each not at all
    for (words, stays) in [
        (&["--mode", "balance"][..], true),
        (&["--mode", "size"], true),
        (&["--mode", "speed"], false),
        // nothing is taken out
        (&["--mode", "balance", "--keep", "sm_75,sm_80,ptx"], true),
    ] {
        let said = printed(at, &[&["wheel", "slim", "in.whl", "-o", "out.whl"], words].concat());
        assert_eq!(said.contains("thing/lib/lib.so would take "), stays, "{said}");
        // of a library that stays no time of loading is told
        let loading = said.split_once("loading: ").and_then(|(_, rest)| rest.split_once(' '));
        let size_of_changed: f64 = loading.expect(&said).0.parse().expect("a number");
        assert!(sizes.insert(stays, size_of_changed).is_none_or(|old| old == size_of_changed));
        let changed = [&stored[..], if stays { &[] } else { &["thing/lib/lib.so"] }].concat();
        python(at, &[&["compare", "in.whl", "out.whl"][..], &changed].concat());
        assert!(size("out.whl") < size("in.whl"), "{said}");
    }
    // what is kept of one stays as it is, and the stored one is packed
    let slim = |out: &str, words: &[&str]| {
        let first = ["wheel", "slim", "in.whl", "--keep", "sm_80,ptx", "-o", out];
        printed(at, &[&first[..], words].concat())
    };
    slim("kept.whl", &[]);
    let said = slim("out.whl", &["--mode", "balance"]);
    let told = said.split_once("thing/lib/lib.so would take ").expect(&said).1;
    assert!(told.contains(": what is kept of it stays as it is"), "{said}");
    assert!(size("out.whl") < size("kept.whl"), "{said}");
    let all = [&stored[..], &["thing/lib/lib.so"]].concat();
    python(at, &[&["compare", "kept.whl", "out.whl"][..], &stored].concat());
    python(at, &[&["compare", "in.whl", "out.whl"][..], &all].concat());
    assert!((sizes[&false] - 2.0 * sizes[&true]).abs() < 0.3, "{sizes:?}");
}

#[test]
fn libraries_of_windows_are_told() {
    const NAME: &str = "libraries_of_windows_are_told";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    // what is not rewritten is not read further than to its device code
    let mut library = b"MZ".to_vec();
    library.resize(4096, 0);
    library.extend(fs::read(at.join("lib.so")).expect("a file"));
    fs::write(at.join("plain.so"), &library).expect("a file");
    fs::create_dir(at.join("site")).expect("a folder");
    for (from, to) in [("plain.so", "a.dll"), ("lib.so", "b.so")] {
        fs::copy(at.join(from), at.join("site").join(to)).expect("a copy");
    }
    fs::write(at.join("site/launcher.exe"), &library[..4096]).expect("a file");
    let parse = |text: String| -> serde_json::Value { serde_json::from_str(&text).expect("JSON") };
    let told = "has device code and is a file of Windows, which is not rewritten";
    let words = [
        "fatbin", "slim", "site", "--mode", "size", "--keep", "sm_80", "--backup", "kept", "--json",
    ];
    let said = parse(printed(at, &words));
    assert_eq!(said["files"].as_array().map(Vec::len), Some(1), "{said}");
    assert_eq!(said["left"].as_array().map(Vec::len), Some(1), "{said}");
    assert!(said["left"][0].as_str().is_some_and(|name| name.ends_with("site/a.dll")), "{said}");
    assert!(said["notes"].to_string().contains(told), "{said}");
    assert!(fs::read(at.join("site/a.dll")).expect("a file") == library);
    // a wheel that has nothing else
    fs::copy(at.join("plain.so"), at.join("lib.so")).expect("a copy");
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {NAME}: needs python3");
        return;
    }
    let words = ["wheel", "slim", "in.whl", "-o", "out.whl", "--keep", "sm_80", "--json"];
    let said = parse(printed(at, &words));
    assert_eq!(said["left"].as_array().map(Vec::len), Some(3), "{said}");
    assert!(said["notes"].to_string().contains(told), "{said}");
    assert!(said["notes"].to_string().contains("nothing of the wheel changes"), "{said}");
    let [old, new] = ["in.whl", "out.whl"].map(|name| fs::read(at.join(name)).expect("a wheel"));
    assert!(old == new);
}

#[test]
fn installed_libraries_become_smaller_and_come_back() {
    const NAME: &str = "installed_libraries_become_smaller_and_come_back";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    fs::create_dir(at.join("site")).expect("a folder");
    for name in ["lib.so", "plain.so", "plain.c"] {
        fs::copy(at.join(name), at.join("site").join(name)).expect("a copy");
    }
    fs::copy(at.join("lib.so"), at.join("site/other.so")).expect("a copy");
    fs::set_permissions(at.join("site/lib.so"), fs::Permissions::from_mode(0o751)).expect("a mode");
    let read = |name: &str| fs::read(at.join("site").join(name)).expect("a file");
    let before = ["lib.so", "other.so", "plain.so", "plain.c"].map(read);
    let words =
        ["fatbin", "slim", "site", "--keep", "sm_80,ptx", "--mode", "size", "--backup", "kept"];
    let said = printed(at, &words);
    assert!(said.ends_with("2 files changed\n"), "{said}");
    assert_eq!(archs(at, "site/lib.so").len(), 3);
    assert!(read("lib.so").len() < before[0].len() && read("lib.so") == read("other.so"));
    assert!(printed(at, &words).ends_with("0 files changed\n"));
    // what was changed by others since is not touched
    let slim = read("other.so");
    fs::write(at.join("site/other.so"), b"another").expect("a file");
    assert!(refused(at, &["fatbin", "slim", "--undo", "kept"]).contains("was changed since"));
    fs::write(at.join("site/other.so"), slim).expect("a file");
    let said = printed(at, &["fatbin", "slim", "--undo", "kept"]);
    assert!(said.ends_with("1 files changed\n"), "{said}"); // the other one came back before
    assert!(before == ["lib.so", "other.so", "plain.so", "plain.c"].map(read));
    let mode = fs::metadata(at.join("site/lib.so")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
    assert!(printed(at, &["fatbin", "slim", "--undo", "kept"]).ends_with("0 files changed\n"));
    // what would be no smaller stays, which is told, and its time of loading is not
    let slim = |mode| printed(at, &["fatbin", "slim", "site", "--mode", mode, "--backup", mode]);
    slim("speed");
    let said = slim("size");
    let (changed, stays) = (" bytes before, ", " would be no smaller, and stays as it is");
    assert_eq!(said.matches(changed).count() + said.matches(stays).count(), 2, "{said}");
    assert_eq!(said.contains("note: loading: "), said.contains(changed), "{said}");
}
