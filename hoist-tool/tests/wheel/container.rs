//! `hoist fatbin slim IMAGE -o OUT` and `DIR`: images that umoci makes and skopeo copies into other forms, and the file system that umoci
//! unpacks of what they became.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{archs, libraries, printed};

const LIBRARY: &str = "rootfs/usr/lib/thing/libthing.so";

/// The forms: what skopeo calls it, and what it is told to make it of the layers as they are.
const FORMS: [(&str, &str, &[&str]); 4] = [
    ("gzip", "oci-archive:gzip.tar:a", &[]),
    ("zstd", "oci-archive:zstd.tar:a", &["--dest-compress-format", "zstd"]),
    ("plain", "oci-archive:plain.tar:a", &["--dest-oci-accept-uncompressed-layers"]),
    ("docker", "docker-archive:docker.tar:thing:a", &[]),
];

fn run(at: &Path, program: &str, words: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(words).current_dir(at).stdin(Stdio::null()).output().expect(program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// skopeo compares every digest and size of what it copies.
fn copy(at: &Path, words: &[&str]) {
    run(at, "skopeo", &[&["--insecure-policy", "copy", "--quiet"], words].concat());
}

/// An image of two layers, `oci:a`, and the same with layers that are not compressed, `dir:layers`.
fn make(at: &Path) {
    let thing = at.join("usr/lib/thing");
    fs::create_dir_all(&thing).expect("a folder");
    fs::copy(at.join("lib.so"), thing.join("libthing.so")).expect("a copy");
    fs::hard_link(thing.join("libthing.so"), thing.join("again.so")).expect("a link");
    symlink("libthing.so", thing.join("libthing.so.1")).expect("a link");
    fs::write(at.join("text"), "text\n").expect("a file");
    run(at, "umoci", &["init", "--layout", "oci"]);
    run(at, "umoci", &["new", "--image", "oci:a"]);
    for (from, to) in [("usr", "/usr"), ("text", "/etc/text")] {
        run(at, "umoci", &["insert", "--rootless", "--image", "oci:a", from, to]);
    }
    copy(at, &["--dest-decompress", "oci:oci:a", "dir:layers"]);
}

/// The file system of an image, in a folder; umoci is given gzip, which it knows.
fn unpack(at: &Path, image: &str, folder: &str) {
    let _ = fs::remove_dir_all(at.join("plain-layers"));
    copy(at, &["--dest-decompress", image, "dir:plain-layers"]);
    copy(at, &["dir:plain-layers", &format!("oci:{folder}-oci:a")]);
    run(at, "umoci", &["unpack", "--rootless", "--image", &format!("{folder}-oci:a"), folder]);
}

/// Whether the library of a file system loads, under all its names, and what it has.
fn loaded(at: &Path, folder: &str) -> Vec<String> {
    let thing = at.join(folder).join("rootfs/usr/lib/thing");
    let [one, again] = ["libthing.so", "again.so"]
        .map(|name| fs::metadata(thing.join(name)).expect("a file").ino());
    assert_eq!(one, again, "{folder}: a hard link");
    assert_eq!(
        fs::read_link(thing.join("libthing.so.1")).expect("a link"),
        Path::new("libthing.so")
    );
    assert_eq!(fs::read(thing.join("../../../etc/text")).expect("a file"), b"text\n");
    let load = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).answer())";
    assert_eq!(run(&thing, "python3", &["-c", load, "./libthing.so.1"]), "42\n");
    archs(at, &format!("{folder}/{LIBRARY}"))
}

#[test]
fn skopeo_and_umoci_take_what_became_of_images() {
    const NAME: &str = "skopeo_and_umoci_take_what_became_of_images";
    let is_there = |program: &&str| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    if !["skopeo", "umoci", "python3"].iter().all(is_there) {
        println!("skipped: {NAME}: needs skopeo, umoci, python3");
        return;
    }
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    let source =
        "extern char one, two; char *all[] = {&one, &two}; int answer(void) { return 42; }\n";
    fs::write(at.join("lib.c"), source).expect("a file");
    run(at, "cc", &["-fPIC", "-shared", "-o", "lib.so", "lib.c", "one.o", "two.o"]);
    make(at);
    for (form, image, words) in FORMS {
        let from = if words.is_empty() { "oci:oci:a" } else { "dir:layers" };
        copy(at, &[words, &[from, image]].concat());
        let (old, new) = (format!("{form}.tar"), format!("{form}-new.tar"));
        let words = ["fatbin", "slim", &old, "-o", &new, "--keep", "sm_80,ptx", "--mode", "size"];
        let said = printed(at, &words);
        assert!(said.contains("1 files changed"), "{form}: {said}");
        unpack(at, &image.replacen(&old, &new, 1), form);
        assert_eq!(loaded(at, form).len(), 3, "{form}");
    }
    // an image that lies in a folder: in another one, and where it is
    let keep = ["--keep", "sm_80,ptx", "--mode", "size"];
    for words in [["-o", "new-oci"], ["--backup", "kept-oci"]] {
        let said = printed(at, &[&["fatbin", "slim", "oci"][..], &words, &keep].concat());
        assert!(said.contains("1 files changed"), "{said}");
    }
    unpack(at, "oci:new-oci:a", "new");
    unpack(at, "oci:oci:a", "here");
    assert_eq!([loaded(at, "new").len(), loaded(at, "here").len()], [3, 3]);
    printed(at, &["fatbin", "slim", "--undo", "kept-oci"]);
    // the file system of an image, and back
    unpack(at, "oci:oci:a", "first");
    let before = fs::read(at.join("lib.so")).expect("a file");
    let words = ["fatbin", "slim", "first/rootfs", "--backup", "kept", "--mode", "size"];
    assert!(printed(at, &words).contains("2 files changed"));
    assert_eq!(loaded(at, "first").len(), 8);
    assert!(fs::read(at.join("first").join(LIBRARY)).expect("a file").len() < before.len());
    printed(at, &["fatbin", "slim", "--undo", "kept"]);
    assert_eq!(loaded(at, "first").len(), 8);
    assert!(fs::read(at.join("first").join(LIBRARY)).expect("a file") == before);
}
