//! What a file has besides its bytes, when it is changed where it is: names, owner, times, capabilities, extended attributes.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::{fixture, folder, hoist, read};

/// `cap_net_raw=ep`, as the system has it (`vfs_cap_data`, revision 2).
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Changes a file where it is; what is said of it, on standard output and error.
fn changed(at: &Path, words: &[&str]) -> (String, String) {
    let words = [&["recompress", "--with", "none", "libt.so", "-o", "libt.so"][..], words].concat();
    let output = hoist(at, &words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (out, error) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{error}");
    (out, error)
}

#[test]
fn times_are_kept_or_told() {
    let folder = folder(&["libt.so"]);
    let at = folder.path();
    let modified = || fs::metadata(at.join("libt.so")).expect("a file").modified().expect("a time");
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5);
    let original = read(at, "libt.so");
    for (words, is_kept) in [(&[][..], false), (&["-p"], true), (&["--preserve-dates"], true)] {
        fs::write(at.join("libt.so"), &original).expect("a file");
        let file = fs::File::options().write(true).open(at.join("libt.so")).expect("a file");
        file.set_modified(old).expect("a time");
        let (said, error) = changed(at, words);
        assert_eq!(modified() == old, is_kept, "{words:?}");
        assert_eq!(said.contains("the time of modification"), !is_kept, "{said}");
        assert_eq!(error, "");
        assert!(read(at, "libt.so") != original);
    }
    // nothing is said of another file
    let words = ["recompress", "--with", "none", "libt.so", "-o", "other.so"];
    let said = String::from_utf8(hoist(at, &words).stdout).expect("text");
    assert!(!said.contains("the time of modification"), "{said}");
}

#[test]
fn other_names_of_a_file_are_told() {
    let folder = folder(&["libt.so"]);
    let at = folder.path();
    fs::hard_link(at.join("libt.so"), at.join("second.so")).expect("a link");
    let old = read(at, "libt.so");
    let (_, error) = changed(at, &[]);
    assert!(error.contains("1 more names (hard links) keep the old one"), "{error}");
    assert!(read(at, "second.so") == old && read(at, "libt.so") != old);
}

#[test]
fn owner_mode_and_attributes_stay() {
    const NAME: &str = "owner_mode_and_attributes_stay";
    let folder = folder(&["libt.so"]);
    let at = folder.path();
    let path = at.join("libt.so");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).expect("a mode");
    if chown(&path, Some(1234), Some(2345)).is_err() {
        println!("skipped: {NAME}: needs the rights of root");
        return;
    }
    let attributes =
        [("user.hoist", &b"kept"[..]), ("security.capability", &CAPABILITY), ("trusted.own", b"1")];
    for (name, value) in attributes {
        if setxattr(&path, name, value, XattrFlags::empty()).is_err() {
            println!("skipped: {NAME}: needs extended attributes");
            return;
        }
    }
    let (_, error) = changed(at, &[]);
    assert_eq!(error, "");
    let new = fs::metadata(&path).expect("a file");
    assert_eq!((new.uid(), new.gid(), new.mode() & 0o7777), (1234, 2345, 0o751));
    for (name, value) in attributes {
        let mut found = [0; 64];
        let size = getxattr(&path, name, &mut found[..]).expect(name);
        assert_eq!(&found[..size], value, "{name}");
    }
}

#[test]
fn an_owner_that_is_lost_is_told() {
    const NAME: &str = "an_owner_that_is_lost_is_told";
    let folder = folder(&["libt.so"]);
    let at = folder.path();
    let path = at.join("libt.so");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).expect("a mode");
    let old = fs::metadata(&path).expect("a file");
    // the file is of the one who runs this test, the folder of another
    let run = || {
        chown(at, Some(1234), Some(2345)).ok()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.args(["fatbin", "recompress", "--with", "none", "libt.so", "-o", "libt.so"]);
        command.current_dir(at).uid(1234).gid(2345).stdin(Stdio::null()).output().ok()
    };
    let Some(output) = run() else {
        println!("skipped: {NAME}: needs the rights of root");
        return;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let told = format!(
        "libt.so: belongs to user 1234 and group 2345 from now on, and belonged to {} and {}: ",
        old.uid(),
        old.gid()
    );
    assert!(error.contains(&told) && error.lines().count() == 1, "{error}");
    let new = fs::metadata(&path).expect("a file");
    // nobody runs it with the rights of another
    assert_eq!((new.uid(), new.gid(), new.mode() & 0o7777), (1234, 2345, 0o755));
}

#[test]
fn standard_output_has_the_bytes_alone() {
    let folder = folder(&["libt.so"]);
    let at = folder.path();
    fs::copy(fixture("k100f.cubin"), at.join("k100f.cubin")).expect("a fixture");
    for words in [
        &["recompress", "--with", "none"][..],
        &["recompress", "--mode", "size"],
        &["prune", "--keep", "sm_75"],
        &["replace", "--region", "0", "--entry", "0", "--with", "k100f.cubin", "--any"],
    ] {
        for json in [&[][..], &["--json"]] {
            let run = |out: &str| hoist(at, &[words, json, &["libt.so", "-o", out]].concat());
            let [to_file, to_stdout] = ["out.so", "-"].map(run);
            assert!(to_file.status.success() && to_file.stderr.is_empty(), "{words:?}");
            assert!(to_stdout.status.success(), "{words:?}");
            assert!(to_stdout.stdout == read(at, "out.so"), "{words:?}");
            // what is said goes beside it; of speeds it is not the same twice
            let count = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count();
            assert_eq!(count(&to_stdout.stderr), count(&to_file.stdout), "{words:?}");
        }
    }
}

#[test]
fn what_does_not_become_smaller_is_refused_where_that_was_asked_for() {
    let folder = folder(&["libt.so"]);
    let at = folder.path();
    let words = ["recompress", "--shrink", "--with", "none", "libt.so", "-o", "out.so"];
    let said = super::refused(at, &words);
    assert!(said.starts_with("libt.so: would not become smaller: "), "{said}");
    assert!(!at.join("out.so").exists());
}
