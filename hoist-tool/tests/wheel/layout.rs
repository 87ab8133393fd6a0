//! `hoist fatbin slim FOLDER`: images as OCI lays them out in folders, where they are and in others, back again, and killed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::SystemTime;

use super::image::{digest, oci, verified};
use super::{archs, libraries, printed, refused};

const KEEP: [&str; 4] = ["--keep", "sm_80,ptx", "--mode", "size"];

/// Lays an image out in a folder, with a blob that nothing names and permissions of its own.
pub(super) fn lay_out(at: &Path, name: &str, image: &[u8]) {
    let folder = at.join(name);
    tar::Archive::new(image).unpack(&folder).expect("an image");
    let blobs = folder.join("blobs/sha256");
    fs::write(blobs.join(digest(b"alone")), "alone").expect("a file");
    for entry in fs::read_dir(blobs).expect("a folder") {
        let path = entry.expect("an entry").path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o640)).expect("permissions");
    }
}

/// Contents, permissions and times of all files of a folder, by their names.
type Files = BTreeMap<String, (Vec<u8>, u32, SystemTime)>;

pub(super) fn files(at: &Path) -> Files {
    let mut all = Files::new();
    for entry in walkdir::WalkDir::new(at).into_iter().map(|entry| entry.expect("an entry")) {
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(at).expect("inside").display().to_string();
            let about = entry.metadata().expect("a file");
            let content = fs::read(entry.path()).expect("a file");
            let modified = about.modified().expect("a time");
            all.insert(name, (content, about.mode() & 0o7777, modified));
        }
    }
    all
}

/// The contents alone.
pub(super) fn contents(files: &Files) -> BTreeMap<&str, &[u8]> {
    files.iter().map(|(name, (content, ..))| (name.as_str(), content.as_slice())).collect()
}

/// Those files in a tar file.
pub(super) fn packed(files: &Files) -> Vec<u8> {
    let all: Vec<_> = contents(files).into_iter().collect();
    super::image::tar(&all)
}

#[test]
fn images_in_folders_become_smaller_and_come_back() {
    let Some(folder) = libraries("images_in_folders_become_smaller_and_come_back") else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a file");
    for (what, image) in [
        ("plain", oci("", false, &library)),
        ("gzip", oci("gzip", true, &library)),
        ("zstd", oci("zstd", false, &library)),
    ] {
        let here = format!("{what}-here");
        let [there, kept] = ["there", "kept"].map(|name| format!("{what}-{name}"));
        lay_out(at, &here, &image);
        let old = files(&at.join(&here));
        let layers = verified(&packed(&old));
        // in another folder
        let slim = |words: &[&str]| {
            printed(at, &[&["fatbin", "slim", &here][..], words, &KEEP[..]].concat())
        };
        let said = slim(&["-o", &there]);
        assert!(said.contains("2 files changed"), "{what}: {said}");
        assert!(files(&at.join(&here)) == old, "{what}");
        let new = files(&at.join(&there));
        assert_eq!(new.len(), old.len(), "{what}");
        assert!(new.iter().all(|(name, (_, mode, _))| !name.contains('/') || *mode == 0o640));
        let now = verified(&packed(&new));
        assert_eq!((now.len(), now.intersection(&layers).count()), (2, 1), "{what}");
        fs::write(at.join("new.tar"), packed(&new)).expect("a file");
        assert_eq!(archs(at, "new.tar").len(), 3, "{what}");
        let words = [&["fatbin", "slim", &here, "-o", &there][..], &KEEP[..]].concat();
        assert!(refused(at, &words).contains("is there already"), "{what}");
        // where it is: the same, and once more not a byte
        let said = slim(&["--backup", &kept]);
        assert!(said.contains("brings it back"), "{what}: {said}");
        assert!(contents(&files(&at.join(&here))) == contents(&new), "{what}");
        let here_now = files(&at.join(&here));
        assert!(slim(&["--backup", &kept]).contains("nothing of the image changes"), "{what}");
        assert!(files(&at.join(&here)) == here_now, "{what}");
        printed(at, &["fatbin", "slim", "--undo", &kept]);
        assert!(files(&at.join(&here)) == old, "{what}");
        // in two steps, of which the first has files that only the second one removes
        printed(at, &["fatbin", "slim", &here, "--backup", &kept, "--mode", "speed"]);
        let said = slim(&["--backup", &kept, "--json", "-o", &here]);
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert!(said["backup"].as_str().expect("a folder").ends_with(&kept), "{said}");
        assert!(files(&at.join(&here)) != old, "{what}");
        printed(at, &["fatbin", "slim", "--undo", &kept]);
        assert!(files(&at.join(&here)) == old, "{what}");
        assert!(printed(at, &["fatbin", "slim", "--undo", &kept]).ends_with("0 files changed\n"));
    }
}

#[test]
fn an_image_that_others_changed_keeps_what_it_needs() {
    let Some(folder) = libraries("an_image_that_others_changed_keeps_what_it_needs") else {
        return;
    };
    let at = folder.path();
    lay_out(at, "image", &oci("gzip", false, &fs::read(at.join("lib.so")).expect("a file")));
    let old = files(&at.join("image"));
    printed(at, &[&["fatbin", "slim", "image", "--backup", "kept"][..], &KEEP[..]].concat());
    let slimmed = files(&at.join("image"));
    let index = at.join("image/index.json");
    let mut text = fs::read(&index).expect("a file");
    text.push(b'\n');
    fs::write(&index, text).expect("a file");
    let said = refused(at, &["fatbin", "slim", "--undo", "kept"]);
    assert!(said.contains("index.json: was changed since"), "{said}");
    let now = files(&at.join("image"));
    verified(&packed(&now));
    assert!(old.keys().chain(slimmed.keys()).all(|name| now.contains_key(name)));
}

#[test]
fn bad_images_in_folders_are_refused_and_stay() {
    let Some(folder) = libraries("bad_images_in_folders_are_refused_and_stay") else { return };
    let at = folder.path();
    let library = fs::read(at.join("lib.so")).expect("a file");
    lay_out(at, "image", &oci("gzip", false, &library));
    lay_out(at, "other", &oci("stargz", false, &library));
    let says = |paths: &[&str], word: &str| {
        let before = files(&at.join("image"));
        let said = refused(at, &[&["fatbin", "slim"][..], paths, &KEEP[..]].concat());
        assert!(said.contains(word), "{said}");
        assert!(files(&at.join("image")) == before, "{paths:?}");
    };
    says(&["other", "--backup", "kept"], "says where files are in it");
    says(&["image", "other", "--backup", "kept"], "image: is an image in a folder");
    says(&["image", "-o", "-"], "image: is an image in a folder: -o names a folder");
    says(&["image", "-o", "lib.so"], "lib.so: is there already");
    says(&["image", "-o", "none/new"], "none/new: ");
    assert!(!at.join("none").exists());
    // blobs of other images, too
    fs::rename(at.join("other/blobs"), at.join("blobs")).expect("a folder");
    symlink("../blobs", at.join("other/blobs")).expect("a link");
    says(&["other", "--backup", "kept"], "blobs: leads to blobs that other images may have");
    // a blob that is another than its name says
    let layer = |name: &String| archs_of_blob(at, name);
    let name = files(&at.join("image")).into_keys().find(layer).expect("a layer");
    let path = at.join("image").join(&name);
    let content = fs::read(&path).expect("a file");
    let layer = super::image::packed("gzip", &super::image::unpacked(&content)[..]);
    fs::write(&path, [&layer[..4], &[9; 4], &layer[8..]].concat()).expect("a file");
    says(&["image", "--backup", "kept"], "has the digest");
    // and one that is called by another digest
    let own = digest(&content);
    let other = format!("{own}{own}");
    fs::create_dir(at.join("image/blobs/sha512")).expect("a folder");
    fs::write(at.join("image/blobs/sha512").join(&other), content).expect("a file");
    fs::remove_file(&path).expect("a file");
    for (name, (text, ..)) in files(&at.join("image")) {
        let text = String::from_utf8_lossy(&text);
        if text.starts_with('{') {
            let text = text.replace(&format!("sha256:{own}"), &format!("sha512:{other}"));
            fs::write(at.join("image").join(name), text).expect("a file");
        }
    }
    says(&["image", "--backup", "kept"], "is called by no SHA-256");
}

/// Whether a blob of `image` is a layer with device code.
fn archs_of_blob(at: &Path, name: &str) -> bool {
    let content = fs::read(at.join("image").join(name)).expect("a file");
    content.starts_with(&[0x1f, 0x8b]) && super::image::unpacked(&content).len() > 20_000
}
