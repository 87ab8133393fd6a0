//! What a wheel, an image or an installed library has besides its bytes, when it is changed where it is, and when it comes back: owner, mode,
//! capabilities, access lists, extended attributes, times, names.
#![cfg(target_os = "linux")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::{hoist, image, layout, libraries, printed, python};

/// `cap_net_raw=ep`, as the system has it (`vfs_cap_data`, revision 2).
const CAPABILITY: &[u8] = &[1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// `u::rwx,u:1000:r-x,g::r-x,m::r-x,o::--x` (`posix_acl_xattr_header`).
const ACCESS: &[u8] = &[
    2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 5, 0, 0xe8, 3, 0, 0, 4, 0, 5, 0, 255, 255,
    255, 255, 16, 0, 5, 0, 255, 255, 255, 255, 32, 0, 1, 0, 255, 255, 255, 255,
];
const ATTRIBUTES: [(&str, &[u8]); 4] = [
    ("user.hoist", b"kept"),
    ("security.capability", CAPABILITY),
    ("trusted.own", b"1"),
    ("system.posix_acl_access", ACCESS),
];
const KEEP: [&str; 4] = ["--keep", "sm_80,ptx", "--mode", "size"];

/// The files of a folder, or the one.
fn files(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = walkdir::WalkDir::new(path).into_iter().map(|entry| entry.expect("an entry"));
    entries.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect()
}

/// Gives files an owner, a mode that runs them with the owner's rights, attributes, and a time. Whether this process may do that.
fn given(path: &Path) -> bool {
    files(path).iter().all(|path| {
        fs::set_permissions(path, Permissions::from_mode(0o751)).expect("a mode");
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5);
        let file = File::options().write(true).open(path).expect("a file");
        file.set_modified(time).expect("a time");
        let attributes = || {
            ATTRIBUTES
                .iter()
                .all(|(name, value)| setxattr(path, *name, value, XattrFlags::empty()).is_ok())
        };
        // the system takes capabilities and such bits from a file that another gets
        chown(path, Some(1234), Some(2345)).is_ok() && attributes() && {
            fs::set_permissions(path, Permissions::from_mode(0o4751)).expect("a mode");
            true
        }
    })
}

/// Whether files have all of that still.
fn has(path: &Path, what: &str, with_time: bool) {
    for path in files(path) {
        let about = fs::metadata(&path).expect("a file");
        let shown = format!("{what}: {}", path.display());
        assert_eq!(
            (about.uid(), about.gid(), about.mode() & 0o7777),
            (1234, 2345, 0o4751),
            "{shown}"
        );
        assert!(!with_time || about.mtime() == 1_000_000_000, "{shown}");
        for (name, value) in ATTRIBUTES {
            let mut found = [0; 64];
            let size = getxattr(&path, name, &mut found[..]).expect(name);
            assert_eq!(&found[..size], value, "{shown}: {name}");
        }
    }
}

/// What is changed where it is: what it is called, the words before its name and behind it, and whether that can be undone.
const ALL: [(&str, &[&str], &[&str], bool); 7] = [
    ("in.whl", &["wheel", "slim"], &["-o", "in.whl"], false),
    ("in.tar", &["fatbin", "slim"], &["-o", "in.tar", "--backup", "kept"], true),
    ("image", &["fatbin", "slim"], &["--backup", "kept"], true),
    ("site", &["fatbin", "slim"], &["--backup", "kept"], true),
    ("lib.so", &["fatbin", "slim"], &["--backup", "kept"], true),
    ("lib.so", &["fatbin", "recompress"], &["-o", "lib.so", "--mode", "size"], false),
    ("lib.so", &["fatbin", "prune"], &["-o", "lib.so", "--keep", "sm_80,ptx"], false),
];

/// Makes all of them; nothing without a compiler or Python.
fn made(test: &str) -> Option<tempfile::TempDir> {
    let folder = libraries(test)?;
    let at = folder.path();
    if !python(at, &["make", "in.whl"]) {
        println!("skipped: {test}: needs python3");
        return None;
    }
    let library = fs::read(at.join("lib.so")).expect("a library");
    let oci = image::oci("gzip", true, &library);
    fs::write(at.join("in.tar"), &oci).expect("a file");
    layout::lay_out(at, "image", &oci);
    fs::create_dir(at.join("site")).expect("a folder");
    fs::write(at.join("site/a.so"), library).expect("a file");
    Some(folder)
}

fn words<'w>(
    (name, before, behind, can_undo): (&'w str, &[&'w str], &[&'w str], bool),
) -> Vec<&'w str> {
    let has_keep = can_undo || name == "in.whl";
    [before, &[name], behind, if has_keep { &KEEP } else { &[] }].concat()
}

#[test]
fn whatever_is_changed_where_it_is_keeps_owner_mode_and_attributes() {
    const NAME: &str = "whatever_is_changed_where_it_is_keeps_owner_mode_and_attributes";
    for one in ALL {
        let Some(folder) = made(NAME) else { return };
        let at = folder.path();
        let (name, .., can_undo) = one;
        if !given(&at.join(name)) {
            println!("skipped: {NAME}: needs the rights of root");
            return;
        }
        let old = layout::files(&at.join(name));
        let words = words(one);
        let said = printed(at, &words);
        assert!(
            said.contains("the time of modification is that of the change"),
            "{words:?}: {said}"
        );
        has(&at.join(name), &format!("{words:?}"), false);
        if can_undo {
            assert!(layout::files(&at.join(name)) != old, "{words:?}");
            printed(at, &["fatbin", "slim", "--undo", "kept"]);
            has(&at.join(name), "undone", true);
            assert!(layout::files(&at.join(name)) == old, "{words:?}");
        }
        // with the time, too
        given(&at.join(name));
        printed(at, &[&words[..], &["--preserve-dates"]].concat());
        has(&at.join(name), &format!("{words:?} --preserve-dates"), true);
    }
}

#[test]
fn a_kept_original_is_nobodys_to_run() {
    const NAME: &str = "a_kept_original_is_nobodys_to_run";
    let Some(folder) = made(NAME) else { return };
    let at = folder.path();
    if !given(&at.join("site")) {
        println!("skipped: {NAME}: needs the rights of root");
        return;
    }
    printed(at, &words(ALL[3]));
    // it belongs to the one whose rights it has
    let kept = files(&at.join("kept")).into_iter().filter(|path| !path.ends_with("slimmed.jsonl"));
    for path in kept {
        let about = fs::metadata(&path).expect("a file");
        assert_eq!((about.uid(), about.mode() & 0o7777), (1234, 0o4751));
    }
    // what is new under its name has no such bits
    printed(at, &["fatbin", "recompress", "site/a.so", "-o", "new.so", "--mode", "speed"]);
    assert_eq!(fs::metadata(at.join("new.so")).expect("a file").mode() & 0o7777, 0o751);
}

#[test]
fn other_names_of_whatever_is_changed_are_told() {
    let Some(folder) = made("other_names_of_whatever_is_changed_are_told") else { return };
    let at = folder.path();
    for one in ALL.into_iter().filter(|(name, ..)| !["image", "site"].contains(name)) {
        let name = one.0;
        let old = fs::read(at.join(name)).expect("a file");
        fs::hard_link(at.join(name), at.join("second")).expect("a link");
        let output = hoist(at, &words(one));
        let error = String::from_utf8(output.stderr).expect("text");
        let told = format!("{name}: is a new file: 1 more names (hard links) keep the old one");
        assert!(output.status.success() && error.contains(&told), "{name}: {error}");
        assert_eq!(error.lines().count(), 1, "{name}: {error}");
        assert!(fs::read(at.join("second")).expect("a file") == old, "{name}");
        fs::rename(at.join("second"), at.join(name)).expect("a file");
    }
}

#[test]
fn wheels_and_images_go_to_standard_output_alone() {
    let Some(folder) = made("wheels_and_images_go_to_standard_output_alone") else { return };
    let at = folder.path();
    for (kind, name) in [("wheel", "in.whl"), ("fatbin", "in.tar")] {
        for json in [&[][..], &["--json"]] {
            let run =
                |out| hoist(at, &[&[kind, "slim", name, "-o", out], &KEEP[..], json].concat());
            let [to_file, to_stdout] = ["out", "-"].map(run);
            assert!(to_file.status.success() && to_file.stderr.is_empty(), "{name}");
            assert!(to_stdout.stdout == fs::read(at.join("out")).expect("a file"), "{name}");
            let count = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count();
            assert_eq!(count(&to_stdout.stderr), count(&to_file.stdout), "{name}");
        }
    }
}
