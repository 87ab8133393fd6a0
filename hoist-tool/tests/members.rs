//! Members of archives where a command takes a file: libraries and objects for `hoist run`, programs for `hoist exec`.
#![cfg(test)]
#![cfg(all(feature = "device-code", feature = "host", target_arch = "x86_64"))]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// Files of a wheel by their paths there: a library, and those that it needs, which are where `DT_RUNPATH` says. A library with their name
/// is elsewhere in there, too.
const LIBRARIES: [(&str, &str, &[&str]); 4] = [
    ("pkg.libs/libdeep.so", "int deep(void) { return 40; }", &[]),
    (
        "pkg.libs/libinner.so",
        "int deep(void); int inner(void) { return deep() + 1; }",
        &["-Wl,-rpath,$ORIGIN", "pkg.libs/libdeep.so"],
    ),
    (
        "pkg/core/outer.so",
        "int inner(void); int outer(void) { return inner() + 1; }",
        &["-Wl,-rpath,${ORIGIN}/../../pkg.libs", "pkg.libs/libinner.so"],
    ),
    ("other/libinner.so", "int inner(void) { return 1000; }", &[]),
];

fn hoist(at: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hoist")).current_dir(at).args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(at: &Path, words: &[&str]) -> String {
    let output = hoist(at, words);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn compile(at: &Path, to: &str, source: &str, flags: &[&str]) {
    fs::create_dir_all(at.join(to).parent().unwrap()).unwrap();
    fs::write(at.join("source.c"), source).unwrap();
    let mut cc = Command::new("cc");
    cc.current_dir(at).args(["-O1", "-fPIC", "-L.", "-o", to, "source.c"]).args(flags);
    assert!(cc.status().unwrap().success(), "{to}");
}

fn libraries(at: &Path) {
    for (path, source, flags) in LIBRARIES {
        let name = format!("-Wl,-soname,{}", path.rsplit('/').next().unwrap());
        let mut all = vec!["-shared", &name, "-Wl,--enable-new-dtags"];
        all.extend(flags);
        compile(at, path, source, &all);
    }
}

fn zip(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = Vec::new();
    let mut writer = rawzip::ZipArchiveWriter::new(&mut zip);
    for (name, content) in files {
        let method = rawzip::CompressionMethod::Deflate;
        let (mut entry, config) = writer.new_file(name).compression_method(method).start().unwrap();
        let encoder =
            flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
        let mut packed = config.wrap(encoder);
        packed.write_all(content).unwrap();
        let (encoder, descriptor) = packed.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    writer.finish().unwrap();
    zip
}

/// A tar archive as `tar` makes it, compressed if its name says so.
fn tar(at: &Path, name: &str, words: &[&str]) {
    let mut command = Command::new("tar");
    assert!(command.current_dir(at).args(["-caf", name]).args(words).status().unwrap().success());
}

#[test]
fn libraries_of_wheels_and_what_they_need() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    libraries(at);
    let files = LIBRARIES.map(|(path, ..)| (path, fs::read(at.join(path)).unwrap()));
    fs::write(at.join("a.whl"), zip(&files)).unwrap();
    tar(at, "b.tar.gz", &["./pkg.libs", "./pkg"]);
    tar(at, "nested.tar", &["a.whl"]);
    LIBRARIES.iter().for_each(|(path, ..)| fs::remove_file(at.join(path)).unwrap());
    for member in [
        "a.whl:pkg/core/outer.so",
        "./a.whl:pkg/core/outer.so",
        "b.tar.gz:./pkg/core/outer.so",
        "nested.tar:a.whl:pkg/core/outer.so",
    ] {
        assert_eq!(text(&hoist(at, &["run", member, "outer", "--ret", "i32"])), "42\n", "{member}");
        // what it needs is behind it
        assert_eq!(text(&hoist(at, &["run", member, "deep", "--ret", "i32"])), "40\n", "{member}");
    }
    let words = refused(at, &["run", "a.whl:pkg/outer.so", "outer"]);
    assert_eq!(words, "hoist: a.whl: no member pkg/outer.so that may hold code\n");
    // without the others
    fs::write(at.join("alone.whl"), zip(&files[2..3])).unwrap();
    let words = refused(at, &["run", "alone.whl:pkg/core/outer.so", "outer"]);
    assert!(words.contains("alone.whl:pkg/core/outer.so: needs libinner.so"), "{words}");
    // one of the needed ones is damaged: its checksum says so
    let mut damaged = fs::read(at.join("a.whl")).unwrap();
    damaged[400] ^= 1;
    fs::write(at.join("damaged.whl"), damaged).unwrap();
    let words = refused(at, &["run", "damaged.whl:pkg/core/outer.so", "outer"]);
    assert!(words.contains("damaged.whl:pkg.libs/libdeep.so: "), "{words}");
    let words = refused(at, &["run", "source.c:outer.so", "outer"]);
    assert_eq!(words, "hoist: source.c: no archive: it has no member outer.so\n");
}

/// Symbolic and hard links, of files, folders and archives; what a library needs is found by them, too.
#[test]
fn links_in_tar_archives() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    libraries(at);
    let link =
        |target: &str, path: &str| std::os::unix::fs::symlink(target, at.join(path)).unwrap();
    let renamed = |from: &str, to: &str| fs::rename(at.join(from), at.join(to)).unwrap();
    // as packages have it: the name that others need is a link, here one of two
    renamed("pkg.libs/libinner.so", "pkg.libs/libinner.so.1.2");
    link("libinner.so.1", "pkg.libs/libinner.so");
    link("../pkg.libs/libinner.so.1.2", "pkg.libs/libinner.so.1");
    link("pkg", "short");
    link("/pkg/core/outer.so", "pkg/absolute.so");
    link("around.so", "pkg/around.so");
    link("../../outside.so", "pkg/outside.so");
    fs::hard_link(at.join("pkg/core/outer.so"), at.join("pkg/core/hard.so")).unwrap();
    tar(at, "b.tar.gz", &["./pkg.libs", "./pkg", "./short"]);
    tar(at, "c.tar", &["pkg.libs", "pkg", "short"]);
    link("c.tar", "linked.tar");
    tar(at, "nested.tar", &["linked.tar", "c.tar"]);
    for member in [
        "b.tar.gz:./short/core/outer.so",
        "b.tar.gz:./pkg/core/hard.so",
        "c.tar:short/core/outer.so",
        "c.tar:pkg/core/hard.so",
        "nested.tar:linked.tar:short/core/hard.so",
    ] {
        assert_eq!(text(&hoist(at, &["run", member, "outer", "--ret", "i32"])), "42\n", "{member}");
    }
    // what it needs is looked for beside the link
    let words = refused(at, &["run", "c.tar:pkg/absolute.so", "outer"]);
    assert!(words.contains("c.tar:pkg/absolute.so: needs libinner.so"), "{words}");
    let words = refused(at, &["run", "c.tar:pkg/around.so", "outer"]);
    assert_eq!(words, "hoist: c.tar: more than 40 links lead to one another\n");
    let words = refused(at, &["run", "c.tar:pkg/outside.so", "outer"]);
    assert_eq!(words, "hoist: c.tar: no member pkg/outside.so that may hold code\n");
}

#[test]
fn members_of_archives() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    libraries(at);
    compile(at, "object.o", "int twice(int x) { return 2 * x; }", &["-c"]);
    fs::copy(at.join("pkg/core/outer.so"), at.join("outer.so")).unwrap();
    for path in ["pkg.libs/libinner.so", "pkg.libs/libdeep.so"] {
        fs::copy(at.join(path), at.join(path.rsplit('/').next().unwrap())).unwrap();
    }
    let mut ar = Command::new("ar");
    ar.current_dir(at).args(["rcS", "lib.a", "object.o", "libdeep.so", "libinner.so"]);
    assert!(ar.status().unwrap().success());
    for member in ["lib.a(libinner.so)", "lib.a:libinner.so"] {
        assert_eq!(text(&hoist(at, &["run", member, "inner", "--ret", "i32"])), "41\n");
    }
    let call = ["run", "lib.a(object.o)", "twice", "i32:21", "--ret", "i32"];
    assert_eq!(text(&hoist(at, &call)), "42\n");
    let words = refused(at, &["run", "lib.a(object)", "twice"]);
    assert_eq!(words, "hoist: lib.a: no member object that may hold code\n");
    // a file of this name is meant before a member
    fs::copy(at.join("outer.so"), at.join("lib.a:libinner.so")).unwrap();
    let words = refused(at, &["run", "lib.a:libinner.so", "no_such"]);
    assert!(words.contains("lib.a:libinner.so: needs libinner.so"), "{words}");
    // other commands read the same names
    let shown = text(&hoist(at, &["show", "lib.a(object.o)"]));
    assert!(shown.contains("twice"), "{shown}");
}

#[test]
fn programs_of_wheels() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let source = "#include <stdio.h>\nint main(int n, char **v) { printf(\"%d %s\\n\", n, v[1]); return 7; }";
    compile(at, "program", source, &[]);
    let program = fs::read(at.join("program")).unwrap();
    fs::write(at.join("a.whl"), zip(&[("a.data/scripts/program", program)])).unwrap();
    fs::remove_file(at.join("program")).unwrap();
    let output = hoist(at, &["exec", "a.whl:a.data/scripts/program", "-x"]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(7), &b"2 -x\n"[..]), "{output:?}");
    let words = refused(at, &["exec", "a.whl:program"]);
    assert_eq!(words, "hoist: a.whl: no member program that may hold code\n");
}

#[test]
fn all_that_is_in_a_wheel_or_folder_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    libraries(at);
    let mut files: Vec<(&str, Vec<u8>)> =
        LIBRARIES.map(|(path, ..)| (path, fs::read(at.join(path)).unwrap())).into();
    files.push(("pkg/__init__.py", b"import core".to_vec()));
    fs::write(at.join("x.whl"), zip(&files)).unwrap();
    fs::write(at.join("none.whl"), zip(&files[LIBRARIES.len()..])).unwrap();
    let one = |path: &str| text(&hoist(at, &["show", path]));
    let each: Vec<String> =
        LIBRARIES.iter().map(|(path, ..)| one(&format!("x.whl:{path}"))).collect();
    assert_eq!(one("x.whl"), each.join("\n"));
    let all = text(&hoist(at, &["show", "--json", "x.whl", "x.whl:pkg/core/outer.so"]));
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["files"].as_array().unwrap().len(), LIBRARIES.len() + 1);
    assert_eq!(one("pkg.libs").matches("file type  DYN").count(), 2);
    assert!(text(&hoist(at, &["show", "--svg", "x.whl"])).contains("libdeep"));
    assert!(refused(at, &["show", "none.whl"]).contains("none.whl: no ELF file is in there"));
}
