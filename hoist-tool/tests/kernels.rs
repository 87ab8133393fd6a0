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
    let none = hoist(&["ptx", "../fatbin/k.ptx", "--kernel", "no such"]);
    let none = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none, "hoist: ../fatbin/k.ptx: no PTX with a kernel no such\n");
}
