//! Changed libraries under the tools that change libraries: whatever two of them do after us, the file loads, and has its images.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{folder, json, printed};
use kinds::{Kind, Maker};
use symbols::{Symbols, symbols};

#[path = "tools/kinds.rs"]
mod kinds;
#[path = "tools/symbols.rs"]
mod symbols;

/// Writes what both wrappers lead to, as a runtime would read it; and uses what linkers have tables for.
/// Values of thread-local symbols are addresses of tables, were they addresses.
const LIBRARY: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct wrapper { uint32_t magic, version; const char *data, *second; };
extern const struct wrapper kernels, others;
__thread int calls = 1;
__thread char before[512] = {1};
#define LOCAL(n) __thread int local##n[8] = {n};
#define SIXTEEN(A) A(0) A(1) A(2) A(3) A(4) A(5) A(6) A(7) A(8) A(9) A(10) A(11) A(12) A(13) A(14) A(15)
SIXTEEN(LOCAL)
int zeros[5000];
#ifdef LARGE
__attribute__((aligned(65536))) char large[70000] = {1};
#endif
#ifdef FAR
__attribute__((section("far"))) char distant[64] = {1};
#endif
static const char *const words[] = {"one", "two"};
const char *const *volatile all = words;
static void region(const struct wrapper *wrapper) {
    uint64_t size;
    memcpy(&size, wrapper->data + 8, sizeof size);
    fwrite(wrapper->data, 1, size + 16, stdout);
}
int show(void) {
    if (kernels.magic != 0x466243b1 || calls++ != 1 || strcmp(all[1], "two") || zeros[4999]) return 1;
#define IS_THERE(n) if (local##n[0] != n) return 4;
    SIXTEEN(IS_THERE)
#ifdef FAR
    if (*(char *volatile){distant} != 1) return 3;
#endif
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

/// Libraries in a folder, and how they are made and loaded.
struct Libraries<'a> {
    at: &'a Path,
    maker: &'a Maker,
    /// Pairs of tools that broke the library as it was linked, too.
    broken: usize,
    /// Those that gave its sections numbers that its symbols do not have.
    renumbered: usize,
}

impl Libraries<'_> {
    /// Runs a tool on a file; whether it succeeded, and what it says.
    fn run(&self, words: &[&str], file: &str) -> Result<String, String> {
        let (tool, words) = words.split_first().expect("a tool");
        let mut command = Command::new(self.maker.tool(tool));
        let output = command.args(words).arg(file).current_dir(self.at).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(said) } else { Err(said) }
    }

    /// What the library shows when it is loaded.
    fn shown(&self, file: &str) -> Result<Vec<u8>, String> {
        let words = self.maker.emulator.iter().map(|word| (*word).to_owned());
        let files = ["load", file].map(|name| self.at.join(name).to_string_lossy().into_owned());
        let words: Vec<_> = words.chain(files).collect();
        let output = Command::new(&words[0]).args(&words[1..]).current_dir(self.at).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!("{}: {said}", output.status))
        }
    }

    /// Lets tools change a copy of a file.
    fn used(&self, from: &str, to: &str, tools: &[&[&str]]) -> Result<(), String> {
        fs::copy(self.at.join(from), self.at.join(to)).expect("a copy");
        tools.iter().try_for_each(|tool| self.run(tool, to).map(drop))
    }

    /// What is shown after tools have changed a copy of a file.
    fn after(&self, from: &str, to: &str, tools: &[&[&str]]) -> Result<Vec<u8>, String> {
        self.used(from, to, tools)?;
        self.shown(to)
    }

    /// Whether the last of these tools, used on `from`, leaves `images` in `to`. What they break of the library as it was linked, too,
    /// does not count.
    fn stays(
        &mut self,
        from: &str,
        to: &str,
        tools: &[&[&str]],
        images: &[u8],
        what: &str,
    ) -> bool {
        let found = self.after(from, to, &tools[tools.len() - 1..]);
        if found.as_deref() == Ok(images) {
            return true;
        }
        let original = self.after("lib.so", "original.so", tools);
        assert!(original.is_err(), "{what}, {tools:?}: {:?}", found.map(|found| found.len()));
        self.broken += 1;
        false
    }

    /// After these tools symbols are in the same sections as before, unless tools put those of the library as it was linked elsewhere:
    /// `strip` leaves the numbers of sections in `.dynsym` as they are, and gives sections others after `patchelf`.
    fn same_symbols(&mut self, file: &str, tools: &[&[&str]], what: &str) {
        if self.used("lib.so", "original.so", tools).is_err() {
            return;
        }
        let [first, old, new] =
            ["lib.so", "original.so", file].map(|name| symbols_of(self.at, name));
        if !old.sections.is_subset(&first.sections) {
            self.renumbered += 1;
            return;
        }
        assert_eq!(new.sections, old.sections, "{what}, {tools:?}");
        assert!(new.astray.is_subset(&old.astray), "{what}, {tools:?}: {:?}", new.astray);
    }

    /// A library of a kind, changed, and what others do to it then: pairs that were tried.
    fn try_out(&mut self, kind: &str, change: &str, steps: &[&[&str]]) -> usize {
        let at = self.at;
        let what = format!("{}, {kind}, {change}", self.maker.name);
        fs::copy(at.join("lib.so"), at.join("new.so")).expect("a copy");
        for step in steps {
            let said = printed(at, &[step, &["new.so", "-o", "new.so"][..]].concat());
            assert!(!said.contains("program headers had to move"), "{what}: {said}");
        }
        let images = images(at, "new.so");
        assert!(
            self.shown("new.so").as_ref() == Ok(&images),
            "{what}: {:?}",
            self.shown("new.so").err()
        );
        assert_eq!(complaints(at, "new.so"), complaints(at, "lib.so"), "{what}");
        let [old, new] = ["lib.so", "new.so"].map(|name| symbols_of(at, name));
        assert_eq!(new.offsets, old.offsets, "{what}");
        assert_eq!(new.sections, old.sections, "{what}");
        assert!(new.astray.is_subset(&old.astray), "{what}: {:?}", new.astray);
        same_as_cuobjdump(at, "new.so", change.contains("pruned"), &what);
        if change == "pruned" {
            let size = |name: &str| fs::metadata(at.join(name)).expect("a file").len();
            assert!(size("new.so") + 4096 <= size("lib.so"), "{what}");
        }
        self.again(&what);
        let mut pairs = 0;
        for first in TOOLS {
            if !self.stays("new.so", "one.so", &[first], &images, &what) {
                continue;
            }
            self.same_symbols("one.so", &[first], &what);
            for second in TOOLS.iter().filter(|second| **second != first) {
                if self.stays("one.so", "two.so", &[first, second], &images, &what) {
                    pairs += 1;
                    self.same_symbols("two.so", &[first, second], &what);
                    // the order of sections is another for some
                    let found = self::images(at, "two.so");
                    assert!(found == images, "{what}, {first:?}, {second:?}");
                }
            }
        }
        same_as_cuobjdump(at, "two.so", change.contains("pruned"), &what);
        if self.maker.emulator.is_empty() {
            let said = self.run(&["ldconfig", "-N", "-n"], ".").expect("ldconfig");
            assert!(!said.contains("so"), "{what}: {said}");
        }
        pairs
    }

    /// Changed twice and thrice is as good as once, and the first bytes are back where a change is undone.
    fn again(&self, what: &str) {
        let at = self.at;
        fs::copy(at.join("new.so"), at.join("again.so")).expect("a copy");
        let step = |method: &str| {
            printed(at, &["recompress", "--with", method, "again.so", "-o", "again.so"]);
            (fs::read(at.join("again.so")).expect("a file"), self.shown("again.so").expect(what))
        };
        let [one, small, two, _, three] = ["none", "zstd", "none", "zstd", "none"].map(step);
        assert!(one == two && two == three, "{what}: thrice");
        assert!(small.0.len() < one.0.len() && small.1.len() < one.1.len(), "{what}");
    }
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

/// Symbols of a file.
fn symbols_of(at: &Path, file: &str) -> Symbols {
    symbols(&fs::read(at.join(file)).expect("a file")).expect(file)
}

/// What cuobjdump takes out of a file, in the order of contents: names without that of the file, and contents.
fn taken(at: &Path, file: &str) -> Option<Vec<(Vec<u8>, String)>> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(at.join(file), folder.path().join("x.so")).expect("a copy");
    let words = ["-xelf", "all", "-xptx", "all", "x.so"];
    let output = Command::new("cuobjdump").args(words).current_dir(folder.path()).output().ok()?;
    assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    fs::remove_file(folder.path().join("x.so")).expect("a file");
    let entries = fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("one"));
    let entries = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (_, name) = name.split_once(".sm_").expect("an architecture");
        (fs::read(entry.path()).expect("a file"), name.to_owned())
    });
    let mut all: Vec<_> = entries.collect();
    all.sort();
    Some(all)
}

/// cuobjdump, if it is there, finds the images of the library that were to be kept, and no others.
fn same_as_cuobjdump(at: &Path, file: &str, is_pruned: bool, what: &str) {
    let (Some(mut old), Some(new)) = (taken(at, "lib.so"), taken(at, file)) else { return };
    assert!(!old.is_empty(), "{what}");
    old.retain(|(_, name)| !is_pruned || name == "80.cubin" || name.ends_with(".ptx"));
    let names =
        |all: &[(Vec<u8>, String)]| all.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
    assert!(old == new, "{what}, {file}: {:?} {:?}", names(&old), names(&new));
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
    let text: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
    // numbers of sections are as wide as others
    text.replace("[ ", "[")
}

/// Makes libraries of all kinds, changes each in so many ways, and uses all tools on them, two after one another.
fn stay_whole(test: &str, maker: &Maker, kinds: &[Kind], ways: usize) {
    if !maker.is_there(test) {
        return;
    }
    let folder = folder(&["k75.cubin", "k80.cubin", "k100f.cubin", "k.ptx"]);
    let at = folder.path();
    let many = vec!["k75.cubin"; maker.images];
    for (object, wrapper) in [("first.o", "kernels"), ("second.o", "others")] {
        let words = ["pack", "-o", object, "--wrapper", wrapper, "--compress", "lz4", "--machine"];
        let images = ["k80.cubin", "k100f.cubin", "k.ptx"];
        printed(at, &[&words[..], &[maker.machine], &many, &images, &many, &many].concat());
    }
    for (name, text) in [
        ("show.c", LIBRARY),
        ("load.c", PROGRAM),
        ("versions", "V1 { global: show; local: *; };\n"),
    ] {
        fs::write(at.join(name), text).expect("a file");
    }
    let cc = |words: &[&str]| {
        let (compiler, options) = maker.compiler.split_first().expect("a compiler");
        let mut command = Command::new(compiler);
        command.args(options).args(words).current_dir(at).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    assert!(cc(&["load.c", "-o", "load", "-ldl"]), "{}", maker.name);
    let mut libraries = Libraries { at, maker, broken: 0, renumbered: 0 };
    let (mut files, mut pairs) = (0, 0);
    for (number, kind) in kinds.iter().enumerate() {
        let words = ["-g", "-fPIC", "-shared", "show.c", "first.o", "second.o", "-o", "lib.so"];
        if !cc(&[&words[..], kind.options].concat()) {
            assert!(kind.is_new, "{}: {} was not made", maker.name, kind.name);
            continue;
        }
        for way in 0..ways {
            let (change, steps) = CHANGES[(number + way) % CHANGES.len()];
            pairs += libraries.try_out(kind.name, change, steps);
            files += 1;
        }
    }
    let Libraries { broken, renumbered, .. } = libraries;
    println!(
        "{}: {files} changed libraries, {pairs} times two tools after; {broken} break it as it was linked, too, {renumbered} leave its symbols with other sections",
        maker.name
    );
    let made = kinds.iter().filter(|kind| !kind.is_new).count();
    assert!(files >= made * ways && pairs >= made * ways * 30, "{files} {pairs}");
}

#[test]
fn other_tools_keep_changed_libraries_whole() {
    stay_whole("other_tools_keep_changed_libraries_whole", &kinds::HERE, kinds::OF_GNU, 1);
}

#[test]
fn other_tools_keep_changed_libraries_of_gold_whole() {
    let test = "other_tools_keep_changed_libraries_of_gold_whole";
    stay_whole(test, &kinds::GOLD, kinds::OF_GOLD, 1);
}

#[test]
fn other_tools_keep_changed_libraries_of_lld_whole() {
    stay_whole("other_tools_keep_changed_libraries_of_lld_whole", &kinds::LLD, kinds::OF_LLD, 1);
}

#[test]
fn other_tools_keep_changed_libraries_of_aarch64_whole() {
    let test = "other_tools_keep_changed_libraries_of_aarch64_whole";
    stay_whole(test, &kinds::AARCH64, kinds::OF_AARCH64, 1);
}

#[test]
#[ignore = "minutes: every kind of library, changed in every way"]
fn other_tools_keep_all_changed_libraries_whole() {
    const NAME: &str = "other_tools_keep_all_changed_libraries_whole";
    stay_whole(NAME, &kinds::HERE, kinds::OF_GNU, CHANGES.len());
}

#[test]
#[ignore = "minutes: every kind of library, changed in every way"]
fn other_tools_keep_all_changed_libraries_of_gold_whole() {
    const NAME: &str = "other_tools_keep_all_changed_libraries_of_gold_whole";
    stay_whole(NAME, &kinds::GOLD, kinds::OF_GOLD, CHANGES.len());
}

#[test]
#[ignore = "minutes: every kind of library, changed in every way"]
fn other_tools_keep_all_changed_libraries_of_lld_whole() {
    const NAME: &str = "other_tools_keep_all_changed_libraries_of_lld_whole";
    stay_whole(NAME, &kinds::LLD, kinds::OF_LLD, CHANGES.len());
}

#[test]
#[ignore = "minutes: every kind of library, changed in every way"]
fn other_tools_keep_all_changed_libraries_of_aarch64_whole() {
    const NAME: &str = "other_tools_keep_all_changed_libraries_of_aarch64_whole";
    stay_whole(NAME, &kinds::AARCH64, kinds::OF_AARCH64, CHANGES.len());
}
