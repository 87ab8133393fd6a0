//! NVIDIA's own runtime on a driver that records: what of a changed program or library reaches a driver.
//!
//! Since CUDA 11.2 at the latest cudart has the driver prove whose it is (export table d4082055-bde6-704b-8d34-ba123c66e1f2) before
//! it hands over anything, which only NVIDIA's can. So these are of CUDA 10: `HOIST_CUDART` names a `libcudart.so.10.1`, and
//! `HOIST_XGBOOST` the `libxgboost.so` of xgboost 1.0.2, which has cudart 10.0 linked into it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::printed;
use super::real::{CHANGES, SOURCES, handed_over};

/// Calls of a library that make its cudart load all that was registered. The stub has no GPU to go on with, so that they fail then.
const CALLER: &str = r#"
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
static void end(int signal) { _exit(0); }
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW), *matrix, *booster;
    if (!library) return 1;
    int (*make_matrix)(const float *, uint64_t, uint64_t, float, void **) = dlsym(library, "XGDMatrixCreateFromMat");
    int (*set_info)(void *, const char *, const float *, uint64_t) = dlsym(library, "XGDMatrixSetFloatInfo");
    int (*make_booster)(void **, uint64_t, void **) = dlsym(library, "XGBoosterCreate");
    int (*set)(void *, const char *, const char *) = dlsym(library, "XGBoosterSetParam");
    int (*update)(void *, int, void *) = dlsym(library, "XGBoosterUpdateOneIter");
    const float rows[8] = {1, 2, 3, 4, 5, 6, 7, 8}, labels[4] = {0, 1, 0, 1};
    if (make_matrix(rows, 4, 2, -1, &matrix) || set_info(matrix, "label", labels, 4)) return 2;
    if (make_booster(&matrix, 1, &booster) || set(booster, "tree_method", "gpu_hist")) return 3;
    signal(SIGABRT, end);
    update(booster, 0, matrix);
    _exit(0);
}
"#;

/// The functions of a driver that cudart asks for by name.
fn names(cudart: &[u8]) -> BTreeSet<&str> {
    let texts = cudart.split(|&byte| byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    let is_name = |text: &&str| {
        let mut rest = text.strip_prefix("cu").unwrap_or_default().chars();
        rest.next().is_some_and(|first| first.is_ascii_uppercase())
            && rest.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    texts.filter(is_name).collect()
}

/// Runs a tool in a folder; whether it succeeded.
fn run(at: &Path, tool: &str, words: &[&str]) -> bool {
    let output = Command::new(tool).args(words).current_dir(at).output();
    output.is_ok_and(|output| output.status.success())
}

/// Makes the driver `libcuda.so.1`, with all that `cudart` asks for.
fn make_driver(at: &Path, cudart: &[u8]) {
    let mut driver = String::from(include_str!("driver.c"));
    for name in names(cudart) {
        if !driver.contains(&format!("int {name}(")) {
            driver.push_str(&format!("int {name}(void) {{ return 0; }}\n"));
        }
    }
    fs::write(at.join("driver.c"), driver).expect("a file");
    assert!(run(at, "cc", &["-w", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]));
}

/// The file that an environment variable names; without it the test is skipped.
fn named(variable: &str, test: &str, what: &str) -> Option<OsString> {
    let path = std::env::var_os(variable);
    if path.is_none() {
        println!("skipped: {test}: needs {what} in {variable}");
    }
    path
}

#[test]
fn cudart_hands_changed_regions_to_the_driver() {
    const NAME: &str = "cudart_hands_changed_regions_to_the_driver";
    let Some(cudart) = named("HOIST_CUDART", NAME, "a libcudart.so of CUDA 10") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let cudart = fs::read(cudart).expect("a library");
    make_driver(at, &cudart);
    fs::write(at.join("libcudart.so.10.1"), &cudart).expect("a file");
    for (name, text) in SOURCES {
        fs::write(at.join(name), text).expect("a file");
    }
    fs::copy(super::fixture("k100f.cubin"), at.join("k100f.cubin")).expect("a fixture");
    let code = "arch=compute_80,code=[sm_80,compute_80]";
    let cudart = ["-cudart", "none", "-Xlinker", "./libcudart.so.10.1"];
    let sources = ["main.cu", "second.cu"];
    if !run(at, "nvcc", &[&["-gencode", code, "-o", "program"][..], &cudart, &sources].concat()) {
        println!("skipped: {NAME}: needs nvcc, of a version whose programs this cudart takes");
        return;
    }
    let before = handed_over(at, &["program"]);
    let functions = before.1.matches("function").count();
    assert!(before.0 >= 2 && functions == 2, "{} regions: {}", before.0, before.1);
    for change in CHANGES {
        printed(at, &[change, &["program", "-o", "changed"]].concat());
        assert_eq!(handed_over(at, &["changed"]), before, "{change:?}");
    }
}

#[test]
fn a_library_with_static_cudart_hands_changed_regions_to_the_driver() {
    const NAME: &str = "a_library_with_static_cudart_hands_changed_regions_to_the_driver";
    let library = named("HOIST_XGBOOST", NAME, "the libxgboost.so of xgboost 1.0.2");
    let Some(library) = library else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    make_driver(at, &fs::read(&library).expect("a library"));
    fs::copy(library, at.join("library.so")).expect("a file");
    fs::write(at.join("caller.c"), CALLER).expect("a file");
    fs::copy(super::fixture("k100f.cubin"), at.join("k100f.cubin")).expect("a fixture");
    assert!(run(at, "cc", &["-w", "caller.c", "-o", "caller", "-ldl"]));
    let before = handed_over(at, &["caller", "library.so"]);
    assert!(before.0 > 20 && before.1.lines().count() > 600, "{} regions", before.0);
    for change in [
        &["recompress", "--with", "none"][..],
        &["recompress", "--with", "lz4"],
        &["prune", "--keep", "sm_70,ptx"],
        &["replace", "--region", "1", "--entry", "0", "--with", "k100f.cubin", "--any"],
    ] {
        printed(at, &[change, &["library.so", "-o", "changed.so"]].concat());
        assert_eq!(handed_over(at, &["caller", "changed.so"]), before, "{change:?}");
    }
}
