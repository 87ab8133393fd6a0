//! `hoist fatbin find`, `size` and `diff`, on cubins of fixtures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda")
}

fn hoist(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.arg("fatbin").args(words).current_dir(folder()).env("COLUMNS", "100");
    command.output().expect("hoist runs")
}

/// What is printed, on a terminal of 100 columns: no line wraps.
fn printed(words: &[&str]) -> String {
    let output = hoist(words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{words:?}: {error}");
    let text = String::from_utf8(output.stdout).expect("text");
    if !words.contains(&"--json") && !words.contains(&"markdown") {
        let long = text.lines().find(|line| line.width() > 100);
        assert_eq!(long, None, "{words:?}");
    }
    text
}

fn json(words: &[&str]) -> Value {
    serde_json::from_str(&printed(words)).expect("JSON")
}

/// The cells of the first line that ends with these words.
fn cells(text: &str, end: &str) -> String {
    let line = text.lines().find(|line| line.trim_end().ends_with(end));
    let line = line.unwrap_or_else(|| panic!("no line ends with {end}: {text}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_kernel_is_found_in_every_file() {
    let text = printed(&["find", "shared_mem*", "."]);
    assert!(text.starts_with("shared_memory\n"), "{text}");
    assert_eq!(
        cells(&text, "./kernels-13.5-sm_80.cubin"),
        "sm_80 10 1040 0 0 384 0.0 ./kernels-13.5-sm_80.cubin"
    );
    // what a driver would compile is found too
    let rows = json(&["find", "globals", "kernels.ptx", "gpu-13.0-ptx.fatbin", "--json"]);
    let row = &rows["kernels"][0];
    assert_eq!((&row["kind"], &row["arch"]), (&Value::from("ptx"), &Value::from("compute_30")));
    assert!(row["registers"].is_null() && row["code_size"].as_u64() > Some(200), "{row}");
    let text = printed(&["find", "globals", "kernels.ptx"]);
    assert!(cells(&text, "kernels.ptx").starts_with("compute_30 - - - - "), "{text}");
    let rows = json(&["find", "/^shared/", ".", "--json", "--arch", "80,90a"]);
    let rows = rows["kernels"].as_array().expect("a list");
    assert!(rows.len() >= 3, "{rows:?}");
    assert!(rows.iter().all(|row| row["arch"] == "sm_80" || row["arch"] == "sm_90a"));
    // as `cubin show` says
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(["cubin", "show", "--json"]).arg("kernels-13.5-sm_80.cubin").current_dir(folder());
    let shown = command.output().expect("hoist runs").stdout;
    let shown: Value = serde_json::from_slice(&shown).expect("JSON");
    let all = json(&["find", "*", "kernels-13.5-sm_80.cubin", "--json"]);
    let (one, other) = (&shown["files"][0]["kernels"], &all["kernels"]);
    assert_eq!(one.as_array().map(Vec::len), other.as_array().map(Vec::len));
    for (one, other) in one.as_array().unwrap().iter().zip(other.as_array().unwrap()) {
        for key in ["name", "demangled", "registers", "shared", "local", "code_size", "stack"] {
            assert_eq!(one[key], other[key], "{key}");
        }
    }
    // a stack without a bound is none of some bytes
    let text = printed(&["find", "recurses", "calls-13.5-sm_80.cubin"]);
    assert!(cells(&text, "calls-13.5-sm_80.cubin").contains(" unbounded "), "{text}");
    let rows = json(&["find", "recurses", "calls-13.5-sm_80.cubin", "--json"]);
    let row = &rows["kernels"][0];
    assert!(row["stack"].is_null() && row["stack_unbounded"] == true, "{row:?}");
    let output = hoist(&["find", "no_such_kernel", "."]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("no kernel no_such_kernel in these files"),
        "{said}"
    );
}

#[test]
fn sizes_add_up() {
    let found = json(&["size", "kernels-13.5-sm_80.cubin", "calls-13.5-sm_90.cubin", "--json"]);
    let bytes = |name: &str| std::fs::metadata(folder().join(name)).expect("a file").len();
    let whole = bytes("kernels-13.5-sm_80.cubin") + bytes("calls-13.5-sm_90.cubin");
    assert_eq!(found["all"]["stored"], whole);
    let sum = |list: &Value, of: &dyn Fn(&Value) -> u64| -> u64 {
        list.as_array().expect("a list").iter().map(of).sum()
    };
    let stored = |row: &Value| row["bytes"]["stored"].as_u64().expect("a number");
    assert_eq!(sum(&found["files"], &stored), whole);
    assert_eq!(sum(&found["archs"], &stored), whole);
    let sections = found["sections"].as_object().expect("an object").values();
    assert_eq!(sections.map(|one| one.as_u64().expect("a number")).sum::<u64>(), whole);
    let kernels = sum(&found["families"], &|row| row["kernels"].as_u64().expect("a number"));
    let all = json(&["find", "*", "kernels-13.5-sm_80.cubin", "calls-13.5-sm_90.cubin", "--json"]);
    assert_eq!(kernels, all["kernels"].as_array().expect("a list").len() as u64);
    let text = printed(&["size", ".", "--compression"]);
    assert!(
        text.contains("prune --keep it saves") && text.contains("would be stored as"),
        "{text}"
    );
}

#[test]
fn differences_are_told_and_conditions_end_with_status_1() {
    let (old, new) = ("kernels-12.9-sm_80.cubin", "kernels-13.5-sm_80.cubin");
    let same = json(&["diff", old, old, "--json"]);
    assert_eq!(
        (&same["changed"], &same["added"], &same["gone"]),
        (&Value::Array(vec![]), &Value::Array(vec![]), &Value::Array(vec![]))
    );
    let found = json(&["diff", old, new, "--json"]);
    let changed = found["changed"].as_array().expect("a list");
    let kernels = |name: &str| {
        json(&["find", "*", name, "--json"])["kernels"].as_array().expect("a list").len()
    };
    let count = changed.len() + found["added"].as_array().expect("a list").len();
    assert_eq!(count as u64 + found["same"].as_u64().expect("a number"), kernels(new) as u64);
    let text = printed(&["diff", "calls-13.5-sm_80.cubin", "calls-13.5-sm_90.cubin"]);
    assert!(text.contains("architectures before: sm_80\narchitectures after: sm_90\n"), "{text}");
    let text = printed(&["diff", old, new, "--kernel", "*", "--arch", "sm_90"]);
    assert!(text.ends_with("architectures: none\n"), "{text}");
    let markdown = printed(&[
        "diff",
        "calls-13.5-sm_80.cubin",
        "calls-13.5-sm_90.cubin",
        "--format",
        "markdown",
    ]);
    assert!(markdown.contains("### added\n\n| kernel | arch |"), "{markdown}");
    let output = hoist(&[
        "diff",
        "calls-13.5-sm_80.cubin",
        "calls-13.5-sm_90.cubin",
        "--fail-on",
        "gone > 0",
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("hoist: gone > 0: ") && !output.stdout.is_empty(), "{said}");
}

/// A kernel whose code is another one, of the same size.
#[test]
fn other_code_is_a_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = folder.path().join("new.cubin");
    let (old, new) = ("kernels-13.5-sm_80.cubin", new.to_str().expect("text"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(["cubin", "patch", old, "-f", "globals", "--code", "0=00", "-o", new]);
    assert!(command.current_dir(self::folder()).output().expect("hoist runs").status.success());
    let found = json(&["diff", old, new, "--json"]);
    let changed = found["changed"].as_array().expect("a list");
    assert_eq!((changed.len(), &changed[0]["name"]), (1, &Value::from("globals")));
    assert_eq!(
        (&changed[0]["other_code"], &changed[0]["old"]),
        (&Value::from(true), &changed[0]["new"])
    );
    let text = printed(&["diff", old, new]);
    assert!(
        text.contains(", other code") && text.contains("1 changed (1 in code alone), 4 the same"),
        "{text}"
    );
    assert_eq!(hoist(&["diff", old, new, "--fail-on", "changed > 0"]).status.code(), Some(1));
    // PTX is compared as such
    let text = printed(&["diff", "kernels.ptx", "kernels.ptx"]);
    assert!(text.contains("5 the same") && text.contains("architectures: compute_30"), "{text}");
    // a limit is one of JSON, too
    let found = json(&[
        "diff",
        "calls-13.5-sm_80.cubin",
        "calls-13.5-sm_90.cubin",
        "--json",
        "--limit",
        "1",
    ]);
    assert_eq!(found["added"].as_array().map(Vec::len), Some(1));
    assert!(found["left_out"]["added"].as_u64() > Some(0), "{found}");
}

/// Filters by kernels, orders and limits, of all that has them.
#[test]
fn kernels_choose_entries_and_files() {
    let files = ["kernels-13.5-sm_80.cubin", "calls-13.5-sm_90.cubin", "kernels.ptx"];
    let with = |words: &[&str]| json(&[&words[..1], &files, &words[1..], &["--json"]].concat());
    // sizes are of images with the kernel
    let found = with(&["size", "--kernel", "globals"]);
    let names: Vec<_> =
        found["files"].as_array().expect("a list").iter().map(|one| &one["file"]).collect();
    assert_eq!(names, [files[0], files[2]]);
    assert_eq!(found["families"].as_array().map(Vec::len), Some(1));
    let found = with(&["size", "--sort", "registers", "--limit", "2", "--keep", "sm_90,ptx"]);
    let most: Vec<_> = found["families"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["registers"].as_u64())
        .collect();
    assert!(most.len() == 2 && most[0] >= most[1], "{most:?}");
    assert_eq!(found["kept"]["images"], 2);
    let text = printed(&["size", files[0], files[1], "--keep", "sm_90"]);
    assert!(text.contains("\n--keep sm_90: 1 images with "), "{text}");
    // entries, files
    let listed = json(&["list", files[0], files[1], "--kernel", "glob*", "--json"]);
    let count = |index: usize| listed["files"][index]["regions"].as_array().map(Vec::len);
    assert_eq!((count(0), count(1)), (Some(1), Some(0)));
    let scanned =
        json(&["scan", ".", "--kernel", "globals", "--sort", "size", "--limit", "2", "--json"]);
    let sizes: Vec<_> = scanned["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["stored_size"].as_u64())
        .collect();
    assert!(sizes.len() == 2 && sizes[0] >= sizes[1], "{sizes:?}");
    let text = printed(&["list", "../fatbin/suffixes.fatbin", "--sort", "size", "--limit", "2"]);
    assert!(text.contains("\nand ") && text.contains(" more entries"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("text");
    hoist(&["extract", files[0], files[1], "--kernel", "globals", "-o", out]);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    // what the driver would compile, of this kernel
    let words =
        ["select", "--sm", "90", "--kind", "ptx", "gpu-13.0-ptx.fatbin", "gpu-13.0-sm_90.fatbin"];
    let chosen = hoist(&[&words[..], &["--json"]].concat());
    let chosen: Value = serde_json::from_slice(&chosen.stdout).expect("JSON");
    let chosen = chosen["choices"].as_array().expect("a list");
    assert!(chosen.len() == 1 && chosen[0]["kind"] == "ptx", "{chosen:?}");
    let rows = json(&["offload", "list", "../fatbin/omp.o", "--json"]);
    let kind = rows["files"][0]["images"][0]["kind"].as_str().expect("a kind");
    assert_eq!(json(&["offload", "list", "../fatbin/omp.o", "--kind", kind, "--json"]), rows);
    let none = hoist(&["offload", "list", "../fatbin/omp.o", "--kind", "no such"]);
    assert_eq!(none.status.code(), Some(1));
    // nothing found is said
    for words in [&["scan", "make.sh"][..], &["scan", files[1], "--kernel", "globals"]] {
        let output = hoist(words);
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{words:?}: {said}");
        assert!(said.contains("device code"), "{said}");
    }
}

/// Orders and limits are of all cubins together.
#[test]
fn shown_kernels_are_the_first_of_all() {
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        let output = command
            .args(["cubin", "show", ".", "--json"])
            .args(words)
            .current_dir(folder())
            .output();
        serde_json::from_slice::<Value>(&output.expect("hoist runs").stdout).expect("JSON")
    };
    let registers = |found: &Value| -> Vec<u64> {
        let files = found["files"].as_array().expect("a list").iter();
        let kernels = files.flat_map(|file| file["kernels"].as_array().expect("a list"));
        kernels.map(|kernel| kernel["registers"].as_u64().unwrap_or(0)).collect()
    };
    let mut all = registers(&run(&[]));
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.truncate(4);
    let mut most = registers(&run(&["--sort", "registers", "--limit", "4"]));
    most.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(most, all);
    // architectures, several of them
    let found = run(&["--arch", "80,sm_90a"]);
    let names: Vec<_> = found["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| file["kernels"].as_array().expect("a list").len())
        .collect();
    assert!(names.len() > 4, "{names:?}");
}

/// Every command that prints tables, on a terminal of 100 columns.
#[test]
fn no_line_wraps() {
    for words in [
        &["list", "../fatbin"][..],
        &["list", "--no-search", "../fatbin/libt.so", "../fatbin/offloading.o"],
        &["scan", "..", "--unpack-at-most", "100000000"],
        &["select", "--sm", "90", "../fatbin/suffixes.fatbin", "../fatbin/concat.fatbin"],
        &["find", "*", "../fatbin", "."],
        &["size", ".."],
    ] {
        let output = hoist(words); // some fixtures are damaged on purpose
        let text = String::from_utf8(output.stdout).expect("text");
        let long: Vec<_> = text.lines().filter(|line| line.width() > 100).collect();
        assert!(long.is_empty() && !text.is_empty(), "{words:?}: {long:#?}");
    }
}

/// PTX in fatbins and in files of its own: kernels, their text, lines of it, JSON.
#[test]
fn ptx_is_listed_printed_and_searched() {
    let files = ["k.ptx", "k90a.ptx", "k100f.ptx", "zstd.fatbin", "suffixes.fatbin"];
    let files = files.map(|name| format!("../fatbin/{name}"));
    let words = |more: &'static str| -> Vec<&str> {
        ["ptx"].into_iter().chain(files.iter().map(String::as_str)).chain([more]).collect()
    };
    let list = printed(&words("--raw"));
    assert!(list.contains("region  version  target"), "{list}");
    let rows = json(&words("--json"));
    let rows = rows["ptx"].as_array().expect("a list");
    let alone = rows.iter().filter(|row| row["region"].is_null()).count();
    assert!(alone == 3 && rows.len() > alone, "{rows:?}");
    let kernel = rows[0]["kernels"][0]["name"].as_str().expect("a kernel");
    let text = printed(&["ptx", "../fatbin/k.ptx", "--print", "--kernel", kernel]);
    assert!(text.contains(&format!(".entry {kernel}")) && text.ends_with("}\n\n"), "{text}");
    let found = printed(&["ptx", "../fatbin/k.ptx", "--search", "^\\s*ret"]);
    assert!(found.contains("ret;"), "{found}");
    // outside of kernels, too, but not if kernels are named
    let found = json(&["ptx", "kernels.ptx", "--search", "^\\.func|stays a function", "--json"]);
    let matches = found["ptx"][0]["matches"].as_array().expect("a list");
    assert!(matches.iter().any(|one| one["function"]["name"] == "square"), "{matches:?}");
    assert!(matches.iter().any(|one| one["function"].is_null()), "{matches:?}");
    let none = hoist(&["ptx", "kernels.ptx", "--search", "^\\.func", "--kernel", "globals"]);
    assert_eq!(none.status.code(), Some(1));
    // a file in a folder, and one that is for another architecture
    assert!(printed(&["ptx", "."]).contains("./kernels.ptx\n"));
    assert_eq!(hoist(&["ptx", "kernels.ptx", "--arch", "90"]).status.code(), Some(1));
    assert_eq!(hoist(&["ptx", "kernels.ptx", "--sort", "registers"]).status.code(), Some(1));
    let none = hoist(&["ptx", "../fatbin/k.ptx", "--kernel", "no such"]);
    let none = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none, "hoist: ../fatbin/k.ptx: no PTX with a kernel no such\n");
}

/// Entries of a kind or an architecture alone, of whatever is listed.
#[test]
fn code_is_filtered_by_kind_and_architecture() {
    let files = ["../fatbin/zstd.fatbin", "../fatbin/suffixes.fatbin", "../fatbin/concat.fatbin"];
    let entries = |more: &[&str]| -> Vec<String> {
        let found = json(&[&["list", "--json"], &files[..], more].concat());
        let entries = found["files"].as_array().expect("a list").iter().flat_map(|file| {
            let regions = file["regions"].as_array().expect("a list").iter();
            regions.flat_map(|region| region["entries"].as_array().expect("a list"))
        });
        let name = |entry: &Value| {
            format!("{} {}", entry["kind"].as_str().unwrap(), entry["arch"].as_str().unwrap_or("-"))
        };
        entries.map(name).collect()
    };
    let all = entries(&[]);
    let ptx = entries(&["--kind", "ptx"]);
    assert_eq!(ptx, ["ptx compute_75", "ptx compute_90a"]);
    assert_eq!(
        entries(&["--kind", "elf,ptx", "--arch", "sm_90a"]),
        ["elf sm_90a", "ptx compute_90a", "concatenated -"]
    );
    // of one that is several, a part is enough
    assert!(entries(&["--arch", "80"]).contains(&"concatenated -".to_owned()), "{all:?}");
    assert!(entries(&["--arch", "70"]).is_empty() && all.len() == 6, "{all:?}");
    let scanned = json(&[&["scan", "--json", "--kind", "ptx"], &files[..]].concat());
    let scanned = scanned["files"].as_array().expect("a list");
    assert!(scanned.len() == 2 && scanned.iter().all(|file| file["code"] == Value::Array(vec![])));
    let wrong = hoist(&["list", "--kind", "bytes", "../fatbin/zstd.fatbin"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// JSON stays JSON, whatever a file is called.
#[test]
fn names_of_files_are_escaped_in_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = "a\u{202e}\u{7f}\"b";
    let path = folder.path().join(name);
    std::fs::copy(self::folder().join("../fatbin/zstd.fatbin"), &path).expect("a copy");
    let path = path.to_str().expect("text");
    for words in [
        &["find", "*", path][..],
        &["size", path],
        &["diff", path, path],
        &["list", path],
        &["scan", path],
        &["ptx", path],
    ] {
        let output = hoist(&[words, &["--json"]].concat());
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success() && !text.contains('\u{202e}'), "{words:?}");
        let _: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"));
    }
}

/// Code through a disassembler that has the same answer for all: what is chosen, in which order, and the PTX beside it.
#[test]
#[cfg(unix)]
fn disassembled_kernels_are_chosen_and_have_their_ptx() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let tool = folder.path().join("nvdisasm");
    let script = "#!/bin/sh\nprintf '//--------------------- .text.k  --------------------------\\n\\\n        /*0000*/  EXIT ;\\n\\\n        /*0010*/  NOP ;\\n'\n";
    std::fs::write(&tool, script).expect("a script");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("it may run");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.args(["fatbin", "disasm"]).args(words).current_dir(self::folder());
        let output = command.env("NVDISASM", &tool).output().expect("hoist runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && error.is_empty(), "{words:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = run(&["../fatbin/zstd.fatbin", "--ptx"]);
    assert!(text.starts_with("k\n  ../fatbin/zstd.fatbin region 0 entry 0 sm_75\n"), "{text}");
    assert!(
        text.contains("  0000  EXIT\n\n") && text.contains(".entry k") && !text.contains("NOP"),
        "{text}"
    );
    // code for an architecture without PTX of its own has that of an older one
    let found: Value =
        serde_json::from_str(&run(&["../fatbin/suffixes.fatbin", "--ptx", "--json"]))
            .expect("JSON");
    let functions = found["functions"].as_array().expect("a list");
    assert_eq!(functions.len(), 2);
    for one in functions {
        assert!(one["ptx"].as_str().is_some_and(|text| text.contains(".entry k")), "{one}");
    }
    let text = run(&["../fatbin/k75.cubin", "--ptx"]);
    assert!(text.ends_with("// no PTX in this file\n"), "{text}");
    // of what is beyond the limit nothing is disassembled
    let calls = folder.path().join("calls");
    let counting = script.replacen('\n', &format!("\necho >>'{}'\n", calls.display()), 1);
    std::fs::write(&tool, counting).expect("a script");
    run(&["../fatbin/suffixes.fatbin", "--limit", "1"]);
    assert_eq!(std::fs::read(&calls).expect("calls").len(), 1);
    for more in [
        &["--limit", "1"][..],
        &["--limit", "1", "--sort", "registers"],
        &["--kernel", "k", "--limit", "1", "--sort", "size"],
    ] {
        let words = [&["../fatbin/suffixes.fatbin", "../fatbin/zstd.fatbin"], more].concat();
        assert_eq!(run(&words).matches("EXIT").count(), 1, "{words:?}");
    }
}

/// Every key that is printed is documented.
#[test]
fn every_key_is_documented() {
    fn collect(value: &Value, keys: &mut std::collections::BTreeSet<String>) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| collect(value, keys)),
            Value::Object(entries) => {
                for (key, value) in entries {
                    keys.insert(key.clone());
                    // the keys in these are names of sections and methods
                    if key != "sections" && key != "packed" {
                        collect(value, keys);
                    }
                }
            }
            _ => {}
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("text");
    let mut keys = std::collections::BTreeSet::new();
    for words in [
        &["list", "../fatbin/concat.fatbin", "../fatbin/omp.o"][..],
        &["scan", "../fatbin/zstd.fatbin"],
        &["extract", "../fatbin/zstd.fatbin", "-o", out],
        &["select", "--sm", "90", "../fatbin/zstd.fatbin", "../fatbin/concat.fatbin"],
        &["find", "*", "../fatbin/concat.fatbin", "../fatbin/zstd.fatbin"],
        &["size", "../fatbin/zstd.fatbin", "--compression", "--keep", "ptx"],
        &["diff", "calls-13.5-sm_80.cubin", "calls-13.5-sm_90.cubin"],
        &["ptx", "../fatbin/zstd.fatbin", "../fatbin/k.ptx", "--print"],
        &["ptx", "../fatbin/k.ptx", "--search", "ret"],
        &["ptx", "kernels.ptx", "--search", "square"],
        &["offload", "list", "../fatbin/omp.o"],
    ] {
        collect(&json(&[words, &["--json"]].concat()), &mut keys);
    }
    let documented = include_str!("../src/cmd/fatbin/JSON.md");
    let missing: Vec<_> =
        keys.iter().filter(|key| !documented.contains(&format!("`{key}`"))).collect();
    assert!(keys.len() > 50, "{keys:?}");
    assert!(missing.is_empty(), "not documented: {missing:?}");
}

/// A folder of wheels as a person at a terminal of 100 columns reads it: no line wraps, none ends in blanks.
#[test]
fn wheels_fit_the_terminal() {
    let Some(wheels) = std::env::var_os("HOIST_WHEELS") else {
        println!("skipped: wheels_fit_the_terminal: needs a folder of wheels in HOIST_WHEELS");
        return;
    };
    let wheels = wheels.to_str().expect("text");
    let mut lines = 0;
    for words in [
        &["scan", wheels][..],
        &["list", wheels],
        &["size", wheels],
        &["find", "*gemm*", wheels],
        &["find", "/fft|sort/", wheels, "--raw", "--sort", "registers", "--limit", "100"],
        &["diff", wheels, wheels],
    ] {
        let text = printed(words);
        let ends = text.lines().find(|line| line.ends_with(' '));
        assert_eq!(ends, None, "{words:?}");
        lines += text.lines().count();
        println!("{words:?}: {} lines", text.lines().count());
    }
    assert!(lines > 100, "{lines} lines");
}
