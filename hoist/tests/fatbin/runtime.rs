//! NVIDIA's own runtime on a driver that records: what of a changed program reaches a driver.
//!
//! `HOIST_CUDART` names a `libcudart.so.10.1`, or another of CUDA 10. Since CUDA 11.2 at the latest cudart has the driver prove whose
//! it is (export table d4082055-bde6-704b-8d34-ba123c66e1f2) before it hands over anything, which only NVIDIA's can.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::printed;
use super::real::{SOURCES, handed_over};

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

#[test]
fn cudart_hands_changed_regions_to_the_driver() {
    const NAME: &str = "cudart_hands_changed_regions_to_the_driver";
    let Some(cudart) = std::env::var_os("HOIST_CUDART") else {
        println!("skipped: {NAME}: needs a libcudart.so of CUDA 10 in HOIST_CUDART");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let cudart = fs::read(cudart).expect("a library");
    let mut driver = String::from(include_str!("driver.c"));
    for name in names(&cudart)
        .into_iter()
        .filter(|name| !driver.contains(&format!("int {name}(")))
        .map(str::to_owned)
        .collect::<Vec<_>>()
    {
        driver.push_str(&format!("int {name}(void) {{ return 0; }}\n"));
    }
    for (name, bytes) in [("driver.c", driver.as_bytes()), ("libcudart.so.10.1", &cudart)] {
        fs::write(at.join(name), bytes).expect("a file");
    }
    for (name, text) in SOURCES {
        fs::write(at.join(name), text).expect("a file");
    }
    fs::copy(super::fixture("k100f.cubin"), at.join("k100f.cubin")).expect("a fixture");
    let run = |tool: &str, words: &[&str]| {
        let output = Command::new(tool).args(words).current_dir(at).output();
        output.is_ok_and(|output| output.status.success())
    };
    assert!(run("cc", &["-w", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]));
    let code = "arch=compute_80,code=[sm_80,compute_80]";
    let cudart = ["-cudart", "none", "-Xlinker", "./libcudart.so.10.1"];
    let sources = ["main.cu", "second.cu"];
    if !run("nvcc", &[&["-gencode", code, "-o", "program"][..], &cudart, &sources].concat()) {
        println!("skipped: {NAME}: needs nvcc, of a version whose programs this cudart takes");
        return;
    }
    let before = handed_over(at, "program");
    let launches = before.1.matches("launch").count();
    assert!(before.0 >= 2 && launches == 2, "{} regions: {}", before.0, before.1);
    for change in [
        &["recompress", "--with", "none"][..],
        &["recompress", "--with", "zstd"],
        &["prune", "--keep", "ptx"],
        &["replace", "--region", "1", "--entry", "0", "--with", "k100f.cubin", "--any"],
    ] {
        printed(at, &[change, &["program", "-o", "changed"]].concat());
        assert_eq!(handed_over(at, "changed"), before, "{change:?}");
    }
}
