//! Changed libraries under the tools that change libraries: whatever two of them do after us, the file loads, and has its images.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{folder, json, printed};
use kinds::{Kind, Maker};
use peers::{complaints, same_as_cuobjdump};
use symbols::{Symbols, symbols};

#[path = "tools/kinds.rs"]
mod kinds;
#[path = "tools/numbers.rs"]
mod numbers;
#[path = "tools/peers.rs"]
mod peers;
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
const CHANGES: [(&str, &[&[&str]]); 7] = [
    ("grown", &[&["recompress", "--with", "none"]]),
    ("pruned", &[&["prune", "--keep", "sm_80,ptx"]]),
    ("grown and pruned", &[&["recompress", "--with", "none"], &["prune", "--keep", "sm_80,ptx"]]),
    ("pruned and grown", &[&["prune", "--keep", "sm_80,ptx"], &["recompress", "--with", "none"]]),
    ("packed", &[&["recompress", "--mode", "size"]]),
    ("packed in balance", &[&["recompress", "--mode", "balance"]]),
    ("pruned and packed", &[&["prune", "--keep", "sm_80,ptx"], &["recompress", "--mode", "size"]]),
];

/// What others do to it. The last is used where there is time.
const TOOLS: [&[&str]; 8] = [
    &["strip"],
    &["strip", "--strip-debug"],
    &["objcopy", "--add-section", ".more=show.c"],
    &["objcopy", "--compress-debug-sections=zlib"],
    &["patchelf", "--set-rpath", "/a/folder/that/is/not/there:/another/one/with/a/long/name"],
    &["patchelf", "--set-soname", "libanother-and-longer-name.so.1"],
    &["patchelf", "--replace-needed", "libc.so.6", "libc.so.6", "--add-needed", "libm.so.6"],
    &["objcopy", "--remove-section", ".comment"],
];

/// Libraries in a folder, and how they are made and loaded.
struct Libraries<'a> {
    at: &'a Path,
    maker: &'a Maker,
    tools: &'a [&'a [&'a str]],
    /// Whether complaints after tools are compared as well.
    is_thorough: bool,
    /// How many were packed, packed as before, and had their first bytes.
    first_bytes: usize,
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

    /// After these tools nobody complains of more than of the library as it was linked, after the same. And symbols are in the same sections
    /// as before, unless tools put those of the library as it was linked elsewhere: `strip` leaves the numbers of sections in `.dynsym` as they are, and gives sections others after `patchelf`.
    fn same_as_original(&mut self, file: &str, tools: &[&[&str]], what: &str) {
        if self.used("lib.so", "original.so", tools).is_err() {
            return;
        }
        let first = symbols_of(self.at, "lib.so");
        let old = symbols(&fs::read(self.at.join("original.so")).expect("a file"));
        // symbols may be in sections that are no more
        let old = old.ok().filter(|old| old.sections.is_subset(&first.sections));
        let is_renumbered = old.is_none();
        if self.is_thorough {
            let [old, new] = ["original.so", file].map(|name| complaints(self.at, name));
            let is_other = |line: &&String| {
                // by a wrong number a symbol is in another section, which is another one here
                let is_of_number = is_renumbered && line.contains("'.dynsym': symbol");
                !is_of_number && !old.contains(line)
            };
            let more: Vec<_> = new.iter().filter(is_other).collect();
            assert!(more.is_empty(), "{what}, {tools:?}: {more:?}");
        }
        let Some(old) = old else {
            self.renumbered += 1;
            return;
        };
        let new = symbols_of(self.at, file);
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
        let [old, new] = ["lib.so", "new.so"].map(|name| complaints(at, name));
        let more: Vec<_> = new.iter().filter(|line| !old.contains(line)).collect();
        assert!(more.is_empty(), "{what}: {more:?}");
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
        if change == "grown" {
            self.unpacked_and_packed(&what);
        }
        let mut pairs = 0;
        let all = self.tools;
        for &first in all {
            if !self.stays("new.so", "one.so", &[first], &images, &what) {
                continue;
            }
            self.same_as_original("one.so", &[first], &what);
            for second in all.iter().filter(|second| **second != first) {
                if self.stays("one.so", "two.so", &[first, second], &images, &what) {
                    pairs += 1;
                    self.same_as_original("two.so", &[first, second], &what);
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

impl Libraries<'_> {
    /// As it was linked, unpacked, and packed again as it was: the same regions, wherever they are.
    fn unpacked_and_packed(&mut self, what: &str) {
        let at = self.at;
        fs::copy(at.join("lib.so"), at.join("again.so")).expect("a copy");
        for method in ["none", "lz4"] {
            printed(at, &["recompress", "--with", method, "again.so", "-o", "again.so"]);
        }
        let [old, new] = ["lib.so", "again.so"].map(|name| images(at, name));
        assert!(old == new, "{what}: unpacked and packed");
        assert!(self.shown("again.so").as_ref() == Ok(&old), "{what}: unpacked and packed");
        // what became smaller where it is has its first bytes then, as a rule
        fs::copy(at.join("lib.so"), at.join("again.so")).expect("a copy");
        for how in [["--mode", "size"], ["--with", "lz4"]] {
            printed(at, &[&["recompress"], &how[..], &["again.so", "-o", "again.so"]].concat());
        }
        assert!(images(at, "again.so") == old, "{what}: packed twice");
        assert!(self.shown("again.so").as_ref() == Ok(&old), "{what}: packed twice");
        let bytes = ["lib.so", "again.so"].map(|name| fs::read(at.join(name)).expect("a file"));
        self.first_bytes += usize::from(bytes[0] == bytes[1]);
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
    let is_thorough = ways == CHANGES.len();
    let tools = if is_thorough { &TOOLS[..] } else { &TOOLS[..TOOLS.len() - 1] };
    let mut libraries =
        Libraries { at, maker, tools, is_thorough, first_bytes: 0, broken: 0, renumbered: 0 };
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
    let Libraries { broken, renumbered, first_bytes, .. } = libraries;
    println!(
        "{}: {files} changed libraries, {pairs} times two tools after; {broken} break it as it was linked, too, {renumbered} leave its symbols with other sections; {first_bytes} of {} packed and packed as before have their first bytes",
        maker.name,
        if is_thorough { files / ways } else { files.div_ceil(CHANGES.len()) }
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
fn other_tools_keep_changed_libraries_of_mold_whole() {
    let test = "other_tools_keep_changed_libraries_of_mold_whole";
    stay_whole(test, &kinds::MOLD, kinds::OF_MOLD, 1);
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
fn other_tools_keep_all_changed_libraries_of_mold_whole() {
    const NAME: &str = "other_tools_keep_all_changed_libraries_of_mold_whole";
    stay_whole(NAME, &kinds::MOLD, kinds::OF_MOLD, CHANGES.len());
}

#[test]
#[ignore = "minutes: every kind of library, changed in every way"]
fn other_tools_keep_all_changed_libraries_of_aarch64_whole() {
    const NAME: &str = "other_tools_keep_all_changed_libraries_of_aarch64_whole";
    stay_whole(NAME, &kinds::AARCH64, kinds::OF_AARCH64, CHANGES.len());
}
