//! Changed libraries under the tools that change libraries: whatever two of them do after us, the file loads, and has its images.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{folder, json, printed};

/// Writes what both wrappers lead to, as a runtime would read it; and uses what linkers have tables for.
const LIBRARY: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct wrapper { uint32_t magic, version; const char *data, *second; };
extern const struct wrapper kernels, others;
__thread int calls = 1;
int zeros[5000];
static const char *const words[] = {"one", "two"};
const char *const *volatile all = words;
static void region(const struct wrapper *wrapper) {
    uint64_t size;
    memcpy(&size, wrapper->data + 8, sizeof size);
    fwrite(wrapper->data, 1, size + 16, stdout);
}
int show(void) {
    if (kernels.magic != 0x466243b1 || calls++ != 1 || strcmp(all[1], "two") || zeros[4999]) return 1;
    region(&kernels);
    region(&others);
    return 0;
}
"#;

/// Loads the library by its path.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    int (*show)(void) = (int (*)(void))dlsym(library, "show");
    return show ? show() : 2;
}
"#;

/// How libraries are linked.
const KINDS: [(&str, &[&str]); 9] = [
    ("plain", &[]),
    ("now", &["-Wl,-z,now", "-Wl,--hash-style=gnu"]),
    ("no-relro", &["-Wl,-z,norelro", "-Wl,--hash-style=sysv"]),
    ("both-hashes", &["-Wl,--hash-style=both", "-Wl,--build-id=none"]),
    ("one-segment", &["-Wl,-z,noseparate-code"]),
    ("large-pages", &["-Wl,-z,max-page-size=0x200000", "-Wl,-z,noseparate-code"]),
    ("versions", &["-Wl,--version-script=versions"]),
    ("aligned", &["-DLARGE"]),
    ("relr", &["-Wl,-z,pack-relative-relocs"]),
];

/// What becomes of each library first: words for `hoist fatbin`, one call after another.
const CHANGES: [(&str, &[&[&str]]); 4] = [
    ("grown", &[&["recompress", "--with", "none"]]),
    ("pruned", &[&["prune", "--keep", "sm_80,ptx"]]),
    ("grown and pruned", &[&["recompress", "--with", "none"], &["prune", "--keep", "sm_80,ptx"]]),
    ("pruned and grown", &[&["prune", "--keep", "sm_80,ptx"], &["recompress", "--with", "none"]]),
];

/// What others do to it.
const TOOLS: [&[&str]; 7] = [
    &["strip"],
    &["strip", "--strip-debug"],
    &["objcopy", "--add-section", ".more=show.c"],
    &["objcopy", "--compress-debug-sections=zlib"],
    &["patchelf", "--set-rpath", "/a/folder/that/is/not/there:/another/one/with/a/long/name"],
    &["patchelf", "--set-soname", "libanother-and-longer-name.so.1"],
    &["patchelf", "--replace-needed", "libc.so.6", "libc.so.6", "--add-needed", "libm.so.6"],
];

fn is_there(tool: &str) -> bool {
    let output = Command::new(tool).arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs a tool on a file; what it says.
fn run(at: &Path, words: &[&str], file: &str) -> String {
    let (tool, words) = words.split_first().expect("a tool");
    let output = Command::new(tool).args(words).arg(file).current_dir(at).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{tool} {words:?} {file}: {said}");
    said
}

/// What the library shows when it is loaded.
fn shown(at: &Path, file: &str, what: &str) -> Vec<u8> {
    let output = Command::new(at.join("load")).arg(at.join(file)).current_dir(at).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {} {said}", output.status);
    output.stdout
}

/// Bytes of all regions in the section that tools look into.
fn images(at: &Path, file: &str) -> Vec<u8> {
    let bytes = fs::read(at.join(file)).expect("a file");
    let listed = json(at, &["list", "--no-search", "--json", file]);
    let mut all = Vec::new();
    for row in listed["files"][0]["regions"].as_array().expect("regions") {
        assert_eq!(row["section"], ".nv_fatbin", "{file}");
        let number = |key: &str| usize::try_from(row[key].as_u64().unwrap()).unwrap();
        all.extend(&bytes[number("offset")..][..number("size")]);
    }
    all
}

/// What readelf and eu-elflint complain of.
fn complaints(at: &Path, file: &str) -> Vec<String> {
    let mut all = Vec::new();
    for words in [&["readelf", "-aW"][..], &["eu-elflint", "--gnu-ld"]] {
        let output = Command::new(words[0]).args(&words[1..]).arg(file).current_dir(at).output();
        let Ok(output) = output else { continue };
        let text = if words[0] == "readelf" { output.stderr } else { output.stdout };
        all.extend(String::from_utf8_lossy(&text).lines().map(without_numbers));
    }
    all.sort();
    all.dedup();
    all
}

/// A complaint without the numbers of sections and addresses, which are others after a change.
fn without_numbers(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn other_tools_keep_changed_libraries_whole() {
    const NAME: &str = "other_tools_keep_changed_libraries_whole";
    for tool in ["cc", "strip", "objcopy", "patchelf", "eu-elflint"] {
        if !is_there(tool) {
            println!("skipped: {NAME}: needs {tool}");
            return;
        }
    }
    let folder = folder(&["k75.cubin", "k80.cubin", "k100f.cubin", "k.ptx"]);
    let at = folder.path();
    let many = ["k75.cubin"; 6];
    for (object, wrapper) in [("first.o", "kernels"), ("second.o", "others")] {
        let words = ["pack", "-o", object, "--wrapper", wrapper, "--compress", "lz4"];
        let images = ["k80.cubin", "k100f.cubin", "k.ptx"];
        printed(at, &[&words[..], &many, &images, &many, &many].concat());
    }
    let source = format!(
        "#ifdef LARGE\n__attribute__((aligned(65536))) char large[70000] = {{1}};\n#endif\n{LIBRARY}"
    );
    for (name, text) in [
        ("show.c", &*source),
        ("load.c", PROGRAM),
        ("versions", "V1 { global: show; local: *; };\n"),
    ] {
        fs::write(at.join(name), text).expect("a file");
    }
    let cc = |words: &[&str]| {
        let status = Command::new("cc").args(words).current_dir(at).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    assert!(cc(&["load.c", "-o", "load", "-ldl"]));
    let (mut files, mut pairs) = (0, 0);
    for (kind, options) in KINDS {
        let words = ["-g", "-fPIC", "-shared", "show.c", "first.o", "second.o", "-o", "lib.so"];
        if !cc(&[&words[..], options].concat()) {
            assert_eq!(kind, "relr", "the linker is too old");
            continue;
        }
        let complained = complaints(at, "lib.so");
        for (change, steps) in CHANGES {
            let what = format!("{kind}, {change}");
            fs::copy(at.join("lib.so"), at.join("new.so")).expect("a copy");
            for step in steps {
                let said = printed(at, &[step, &["new.so", "-o", "new.so"][..]].concat());
                assert!(!said.contains("program headers had to move"), "{what}: {said}");
            }
            let images = images(at, "new.so");
            assert!(shown(at, "new.so", &what) == images, "{what}");
            assert_eq!(complaints(at, "new.so"), complained, "{what}");
            if change == "pruned" {
                let size = |name: &str| fs::metadata(at.join(name)).expect("a file").len();
                assert!(size("new.so") + 4096 <= size("lib.so"), "{what}");
            }
            again(at, &what);
            files += 1;
            for first in TOOLS {
                fs::copy(at.join("new.so"), at.join("one.so")).expect("a copy");
                run(at, first, "one.so");
                let what = format!("{what}, {first:?}");
                assert!(shown(at, "one.so", &what) == images, "{what}");
                for second in TOOLS.iter().filter(|second| **second != first) {
                    fs::copy(at.join("one.so"), at.join("two.so")).expect("a copy");
                    run(at, second, "two.so");
                    let what = format!("{what}, {second:?}");
                    assert!(shown(at, "two.so", &what) == images, "{what}");
                    pairs += 1;
                }
                assert!(self::images(at, "two.so") == images, "{what}");
            }
            let said = run(at, &["ldconfig", "-N", "-n"], ".");
            assert!(!said.contains("so"), "{what}: {said}");
        }
    }
    println!("{files} changed libraries, {pairs} times two tools after");
    assert!(files >= 32 && pairs >= 32 * 42, "{files} {pairs}");
}

/// Changed twice and thrice is as good as once.
fn again(at: &Path, what: &str) {
    fs::copy(at.join("new.so"), at.join("again.so")).expect("a copy");
    let step = |method: &str| {
        printed(at, &["recompress", "--with", method, "again.so", "-o", "again.so"]);
        (fs::read(at.join("again.so")).expect("a file"), shown(at, "again.so", what))
    };
    let [one, small, two, _, three] = ["none", "zstd", "none", "zstd", "none"].map(step);
    assert!(one == two && two == three, "{what}: thrice");
    assert!(small.0.len() < one.0.len() && small.1.len() < one.1.len(), "{what}");
}
